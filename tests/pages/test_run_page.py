"""The page of a run: its address keeps run and tab, a waiting run shows known facts, and the
verdict is stable.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.frame import places, session
from dashboard.run import record_view
from dashboard.run import view as run_view
from gan_runtime.evaluation import jobs
from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from tests.pages.reading import charts, texts
from tests.support.measured_showers import measured

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def tabs(app: AppTest) -> list[str]:
    return [tab.label for tab in app.tabs]


def test_selecting_a_run_updates_the_address_and_keeps_the_tab(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("run", run="quick-0001", tab="options")
    assert app.title[0].value == "quick-0001"
    app.selectbox(key="run.picked").set_value("quick-0002").run()
    assert (app.query_params["run"], app.query_params["tab"]) == ("quick-0002", "options")
    assert app.title[0].value == "quick-0002"
    assert len(app.dataframe) == 1


def test_a_changed_address_switches_run_and_tab(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("run", run="quick-0001", tab="log")
    app.query_params["run"], app.query_params["tab"] = "quick-0002", "histograms"
    app.run()
    assert app.title[0].value == "quick-0002"
    assert (len(app.code), app.selectbox(key="run.picked").value) == (0, "quick-0002")
    assert charts(app)


def test_an_unknown_tab_opens_the_overview(show: Show, trained: Make) -> None:
    trained("quick-0001")
    assert [metric.label for metric in show("run", run="quick-0001", tab="nothing").metric]


def test_evaluation_tab_requires_an_applicable_or_stored_evaluation(
    show: Show, trained: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "evaluations_of", lambda *_: [])
    trained("quick-0001")
    measured(trained("showers-0002", seconds=10, workload="shower_3dgan", dataset="showers"), 2)
    assert "Evaluation" not in tabs(show("run", run="quick-0001"))
    app = show("run", run="showers-0002", tab="evaluation")
    assert not app.exception
    assert set(run_view.TITLES.values()) <= set(tabs(app))


def test_the_opened_run_is_kept_after_visiting_another_page(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("run", run="quick-0001")
    for page in (places.DATA, places.RUN):
        app.query_params.clear()
        app.switch_page(str(page)).run()
    assert app.title[0].value == "quick-0001"
    app.query_params.clear()
    app.switch_page(str(places.COMPARE)).run()
    assert app.multiselect(key="compare.runs").value == ["quick-0001"]


def test_compare_reopens_with_the_runs_last_compared(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    app.query_params.clear()
    app.switch_page(str(places.HOME)).run()
    app.switch_page(str(places.COMPARE)).run()
    assert app.multiselect(key="compare.runs").value == ["quick-0001", "quick-0002"]


@pytest.mark.parametrize("tab", ["overview", "samples", "histograms", "log", "options"])
def test_a_waiting_run_shows_its_known_facts(show: Show, new_run: Make, tab: str) -> None:
    new_run("quick-0001")
    new_run("quick-0002", seconds=10)
    app = show("run", run="quick-0002", tab=tab)
    assert not app.exception
    assert "queued" in texts(app)
    assert "batch 256" in texts(app)
    if tab == "overview":
        assert {metric.label: metric.value for metric in app.metric}[
            "Place in the queue"
        ] == "2 of 2"
        assert "appear here when training starts" in texts(app)
        assert "Learning rate, generator" in set(app.dataframe[0].value["Option"])


def test_changed_options_come_first_and_options_are_found_by_words(
    show: Show, new_run: Make
) -> None:
    new_run("quick-0001", label_smoothing=0.1)
    app = show("run", run="quick-0001", tab="options")
    [table] = [element.value for element in app.dataframe]
    changed = table[table[record_view.USUAL] != ""]
    assert list(changed.index) == list(range(len(changed))), "changed ones come first"
    [smoothing] = changed.index[changed["Name in --set"] == "label_smoothing"]
    assert changed.loc[smoothing, ["Value", record_view.USUAL]].tolist() == ["0.1", "0"]
    assert len(table) > 40
    app.text_input[0].set_value("smoothing").run()
    [table] = [element.value for element in app.dataframe]
    assert set(table["Name in --set"]) == {"label_smoothing"}
    app.text_input[0].set_value("of no kind").run()
    assert "No option has “of no kind”" in texts(app)


def test_the_verdict_does_not_change_within_an_epoch(show: Show, running: RunDir) -> None:
    scores = {"probe_score_real": 0.6, "probe_score_fake": 0.4}
    for epoch in (1, 2, 3, 4):
        measured = journal.EpochScores(epoch=epoch, step=10 * epoch, wall_s=1.0, values=scores)
        journal.append(running.trainer_journal(), 1, measured)
    before = html(show("run", run=running.run_id))
    values = {"d_real": [0.99] * 9, "d_fake": [0.01] * 9}
    steps = [float(step) for step in range(9)]
    scalars = journal.Scalars(epoch=5, first_step=41, wall_s=steps, values=values)
    journal.append(running.trainer_journal(), 1, scalars)
    session.shared_runtime().refresh()
    after = html(show("run", run=running.run_id))
    for head in (before, after):
        assert "No alarm: D scores real 0.60, generated 0.40 in epochs 2 to 4;" in head


@pytest.mark.parametrize("page", ["run", "runs"])
def test_the_page_of_a_run_that_just_ended_shows_its_last_verdict(
    show: Show, running: RunDir, page: str
) -> None:
    """An ended run is not drawn again, so the page must not show a verdict from before its end."""

    def drawn() -> str:
        app = show(page, run=running.run_id)
        tables = [element.value.to_string() for element in app.dataframe]
        return "\n".join([texts(app), *tables]).lower()

    scores = {"probe_score_real": 0.6, "probe_score_fake": 0.4}
    for epoch in (1, 2, 3, 4):
        measured = journal.EpochScores(epoch=epoch, step=10 * epoch, wall_s=1.0, values=scores)
        journal.append(running.trainer_journal(), 1, measured)
        if epoch == 1:
            assert "no alarm" not in drawn()
    finished = journal.StatusChange(status="finished", reason="all 4 epochs done")
    journal.append(running.trainer_journal(), 1, finished)
    session.shared_runtime().refresh()
    assert "no alarm" in drawn()


@pytest.mark.parametrize("status", ["finished", "stopped", "failed", "lost"])
def test_an_ended_run_shows_when_it_ended_and_no_age_that_would_stand_still(
    show: Show, running: RunDir, status: str
) -> None:
    scalars = journal.Scalars(epoch=1, first_step=1, wall_s=[1.0], values={"d_real": [0.6]})
    journal.append(running.trainer_journal(), 1, scalars)
    assert "updated " in html(show("run", run=running.run_id))
    end = journal.StatusChange(status=status, reason="an end")  # type: ignore[arg-type]
    journal.append(running.trainer_journal(), 1, end)
    session.shared_runtime().refresh()
    head = html(show("run", run=running.run_id))
    assert "An end · ended on 20" in head
    assert "updated" not in head


def test_the_verdict_has_its_own_container_with_a_minimum_height(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("run", run="quick-0001")
    style = next(
        element.proto.body for element in app.get("html") if ".run-state" in element.proto.body
    )
    assert ".st-key-run_verdict { min-height:" in style
    assert any("run_verdict" in block.proto.id for block in app.get("container"))


def test_a_collapsed_run_is_reported_on_every_page(show: Show, trained: Make) -> None:
    """The last epochs decide: an alarm is logged when it begins, not when it ends."""
    collapse = journal.Event(level="warning", topic="alarm_collapse", message="collapsed")
    trained("quick-0001", collapse_share=0.6, after_epoch_1=(collapse,))
    trained("quick-0002", seconds=10, after_epoch_1=(collapse,))
    head = html(show("run", run="quick-0001"))
    assert "dot-alarm" in head
    assert "Collapsed: generated images vary 50.0% as much as real images in epoch 2." in head
    assert "dot-alarm" not in html(show("run", run="quick-0002"))
    home = html(show("home"))
    assert home.count("Collapsed:") == home.count("dot-alarm") == 1
    [runs] = [element.value for element in show("runs").dataframe]
    assert sorted(runs["verdict"]) == ["generator collapsed", "no alarm"]
    table = show("compare", runs="quick-0001,quick-0002").dataframe[0].value
    assert list(table["Verdict"]) == ["generator collapsed", "no alarm"]


@pytest.mark.parametrize("tab", ["overview", "histograms"])
def test_each_chart_has_a_help_button_with_its_description(
    show: Show, trained: Make, tab: str
) -> None:
    trained("quick-0001")
    app = show("run", run="quick-0001", tab=tab)
    helps = [
        element.proto.body
        for element in app.get("html")
        if element.proto.body.startswith("<button type='button' class='chart-help'")
    ]
    described = [escape(str(chart["description"])) for chart in charts(app)]
    assert described
    for body, description in zip(helps, described, strict=True):
        assert description in body


def html(app: AppTest) -> str:
    """The HTML of the run states on the page."""
    bodies = [element.proto.body for element in app.get("html")]
    return "\n".join(body for body in bodies if body.startswith("<span class='run-state'"))


def test_a_hinge_loss_has_no_unit(show: Show, trained: Make) -> None:
    trained("quick-0001", loss="hinge")
    trained("quick-0002", seconds=10)
    axes = [losses_axis(show("run", run=run_id)) for run_id in ("quick-0001", "quick-0002")]
    assert axes == ["Loss", "Loss (nats)"]


def losses_axis(app: AppTest) -> object:
    """The title of the y axis of the first chart."""
    return charts(app)[0]["layer"][1]["encoding"]["y"]["title"]  # type: ignore[index]
