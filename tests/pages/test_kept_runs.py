"""Buttons of the Runs page: pin, hide, tag, delete, restore and permanently remove runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import run_selection, tables
from dashboard.frame import session
from dashboard.runs import changes
from dashboard.runs import view as runs_view
from gan_runtime.base import disk
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.studies.design import StudyDesign
from gan_runtime.supervision import trash
from gan_runtime.supervision.trash import DeletedRun
from tests.evaluation.hand_made import surface
from tests.pages.reading import evaluation
from tests.pages.test_flow_page import iterated
from tests.studies.hand_written import from_now, train
from tests.support.asking import ask
from tests.support.measured_showers import measured

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def texts(app: AppTest) -> str:
    """All markdown and captions of the page."""
    return "\n".join(element.value for element in (*app.markdown, *app.caption))


def press(app: AppTest, label: str) -> None:
    next(button for button in app.button if button.label == label).click().run()
    assert not app.exception


def stored() -> list[str]:
    return [row.run_id for row in queries.runs(session.runtime().store)]


def test_a_deleted_run_is_restored_from_the_trash(show: Show, trained: Make) -> None:
    for number in (1, 2):
        trained(f"quick-000{number}", seconds=number)
    app = show("runs")
    assert not any("Trash" in element.label for element in app.expander)
    session.runtime().commands.delete("quick-0001")
    app.run()
    assert [element.label for element in app.expander if element.label.startswith("Trash: 1 run")]
    assert "30 days left" in texts(app)
    assert stored() == ["quick-0002"]
    press(app, "Restore")
    assert stored() == ["quick-0002", "quick-0001"]
    assert not any("Trash" in element.label for element in app.expander)


def test_emptying_the_trash_requires_confirmation(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("runs")
    session.runtime().commands.delete("quick-0001")
    app.run()
    press(app, "Empty the trash now")
    assert "This cannot be undone." in texts(app)
    assert "Remove 1 run for good" in [button.label for button in app.button]
    assert len(trash.deleted_runs(session.runtime().home)) == 1, "it was only asked"
    session.runtime().commands.remove_for_good(["quick-0001"])
    app.run()
    assert not any("Trash" in element.label for element in app.expander)


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (30.0, "30 days left"),
        (1.2, "1 day left"),
        (0.4, "removed within a day"),
        (None, "stays until"),
    ],
)
def test_trash_shows_who_deleted_a_run_and_when_it_expires(days: float | None, said: str) -> None:
    moment = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)
    sentence = changes.trash_line(
        DeletedRun("a-0001", "a-0001", "a-0001", "finished", moment, "dashboard", 2_000_000, days)
    )
    assert sentence.startswith("deleted on 2026-01-01 at 12:05 UTC from the dashboard · 2 MB · ")
    assert said in sentence


def test_markup_in_trash_names_is_escaped(show: Show, trained: Make) -> None:
    trained("quick-0001")
    runtime = session.runtime()
    app = show("runs")
    runtime.commands.delete("quick-0001")
    note = runtime.home.bin / "quick-0001" / "deleted.json"
    note.write_text(
        note.read_text().replace('"name": "quick-0001"', '"name": "![x](http://evil.example) <b>"')
    )
    app.run()
    assert "![x](" not in texts(app)


# ---- pins, hidden runs, tags ---------------------------------------------------------------------


def shown_ids(app: AppTest) -> list[str]:
    return list(app.dataframe[0].value["run_id"])


def tick(app: AppTest, run_id: str) -> None:
    ids = shown_ids(app)
    selection = {"rows": [ids.index(run_id)], "columns": [], "cells": []}
    app.session_state[runs_view.table_key(ids)] = {"selection": selection}
    app.run()


def test_buttons_below_the_table_pin_and_hide_a_run(show: Show, trained: Make) -> None:
    for number in (1, 2, 3):
        trained(f"quick-000{number}", seconds=number)
    app = show("runs")
    tick(app, "quick-0001")
    press(app, "Pin")
    assert shown_ids(app) == ["quick-0001", "quick-0003", "quick-0002"]
    assert "Unpin" in [button.label for button in app.button]
    tick(app, "quick-0001")
    press(app, "Unpin")
    tick(app, "quick-0002")
    press(app, "Hide")
    assert shown_ids(app) == ["quick-0003", "quick-0001"]
    app.toggle[0].set_value(True).run()
    assert shown_ids(app) == ["quick-0003", "quick-0002", "quick-0001"]


def test_a_hidden_run_is_selectable_only_when_the_address_names_it(
    show: Show, trained: Make
) -> None:
    for number in (1, 2):
        trained(f"quick-000{number}", seconds=number)
    show("runs")
    session.runtime().commands.mark(["quick-0002"], hidden=True)
    assert show("compare").multiselect[0].options == ["quick-0001"]
    page = show("compare", runs="quick-0002")
    assert page.multiselect[0].value == ["quick-0002"]
    assert show("run").selectbox[0].value == "quick-0001"
    assert show("run", run="quick-0002").selectbox[0].value == "quick-0002"


def hide(*run_ids: str) -> None:
    session.runtime().commands.mark(run_ids, hidden=True)


@pytest.mark.parametrize("kind", ["physics", "rollout"])
def test_an_evaluation_offers_a_hidden_run_only_on_request(
    show: Show, trained: Make, kind: str
) -> None:
    for number in (1, 2, 3):
        run = trained(f"quick-000{number}", seconds=number)
        measured(run, 2) if kind == "physics" else iterated(run)
    show("runs")
    hide("quick-0002")
    key = "evaluation.with.quick-0001"
    app = evaluation(show, "quick-0001")
    assert not app.exception
    assert app.multiselect(key=key).options == ["quick-0003"]
    assert evaluation(show, "quick-0001", "quick-0002").multiselect(key=key).value == ["quick-0002"]
    app.session_state[run_selection.SHOW_HIDDEN] = True
    assert app.run().multiselect(key=key).options == ["quick-0003", "quick-0002"]


def test_variants_count_a_hidden_run_only_on_request(show: Show, trained: Make) -> None:
    for number, xla in enumerate(("off", "jit", "jit"), start=1):
        run = trained(f"quick-000{number}", seconds=number, xla=xla)
        times = {"first_call": 1.1, "compile": 1.0, "steady_step": 0.1}
        phases = [
            journal.PhaseSeconds(phase=name, seconds=seconds) for name, seconds in times.items()
        ]
        journal.append(run.trainer_journal(), 1, *phases)
    show("runs")
    hide("quick-0003")
    assert list(show("studies/xla").dataframe[0].value["Runs"]) == ["1", "1"]
    assert list(show("studies/xla", run="quick-0003").dataframe[0].value["Runs"]) == ["1", "2"]
    assert show("studies/xla").selectbox[0].options[0].startswith("XLA off (1), XLA jit (1)")
    hide("quick-0002")
    assert list(show("studies/xla").dataframe[0].value["Runs"]) == [
        "1",
        "2",
    ], "there is no set without hidden runs"


def test_the_previous_run_skips_hidden_runs(show: Show, trained: Make) -> None:
    for number in (1, 2, 3):
        trained(f"quick-000{number}", seconds=number)
    show("runs")
    hide("quick-0002")
    links = [link.proto for link in show("run", run="quick-0003").get("page_link")]
    assert "runs=quick-0001%2Cquick-0003" in [link.query_string for link in links]


def test_figure_11_offers_no_hidden_run(show: Show, trained: Make) -> None:
    for number in (1, 2):
        run = trained(f"paper-000{number}", seconds=number, weight_snapshots="yes")
        journal.append(
            run.earlier_journal("surface"),
            1,
            surface("generator", 1.0),
            surface("discriminator", 2.0),
        )
    show("runs")
    hide("paper-0002")
    app = show("studies/paper")
    assert not app.exception
    assert app.selectbox(key="paper.11.run").options == ["paper-0001"]


def test_a_study_of_hidden_runs_is_listed_only_on_request(
    show: Show, home: Home, host: Host
) -> None:
    at, ids = from_now(), []
    for begin in (0.0, 1_000.0):
        design = StudyDesign.parse(
            "batch_size", {"workload": "mlp_gan", "epochs": 3}, ["64", "128"], 1
        )
        runs = ask(home, host).submit_study(design)
        for number, run in enumerate(runs):
            train(run, at, begin + 100.0 * number, 4.0)
        ids.append([run.run_id for run in runs])
    show("runs")
    older, newer = [row.study_id for row in reversed(queries.studies(session.runtime().store))]
    hide(ids[1][0])
    assert len(show("studies").selectbox[0].options) == 2, "one of its runs is not hidden"
    hide(ids[1][1])
    app = show("studies")
    assert [newer in option for option in app.selectbox[0].options] == [False]
    assert older in app.selectbox[0].options[0]
    assert newer in show("studies", study=newer).selectbox[0].value
    assert not [
        element for element in show("studies/paper").selectbox if element.key == "paper.study"
    ], "there is one to draw"
    hide(*ids[0])
    app = show("studies")
    assert "All runs of studies are hidden." in app.info[-1].value
    app.session_state[run_selection.SHOW_HIDDEN] = True
    assert len(app.run().selectbox[0].options) == 2


def test_runs_page_reports_that_all_runs_are_hidden(show: Show, trained: Make) -> None:
    trained("quick-0001")
    show("runs")
    session.runtime().commands.mark(["quick-0001"], hidden=True)
    app = show("runs")
    assert not app.exception
    assert not app.dataframe
    assert app.toggle[0].label == "Show 1 hidden run, here and in the lists of other pages"
    assert "No run matches" in app.info[0].value


def test_runs_are_filtered_by_tags_and_notes(show: Show, trained: Make) -> None:
    for number in (1, 2):
        trained(f"quick-000{number}", seconds=number)
    show("runs")
    session.runtime().commands.mark(["quick-0001"], tags=["good"], remark="the one for the talk")
    app = show("runs")
    pills = next(
        group for group in app.button_group if group.options and "good" in str(group.options)
    )
    pills.set_value(["good"]).run()
    assert shown_ids(app) == ["quick-0001"]
    app = show("runs")
    app.text_input[0].set_value("the talk").run()
    assert shown_ids(app) == ["quick-0001"]


def test_tags_and_note_dialog_shows_the_stored_values(show: Show, trained: Make) -> None:
    trained("quick-0001")
    show("runs")
    session.runtime().commands.mark(["quick-0001"], tags=["good"], remark="fine")
    app = show("runs")
    tick(app, "quick-0001")
    press(app, "Tags and note")
    assert app.multiselect[0].value == ["good"]
    assert app.text_area[0].value == "fine"


# ---- disk usage ----------------------------------------------------------------------------------


def test_runs_page_shows_disk_usage_per_run_and_in_total(
    show: Show, trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    cache = tmp_path / "keras" / "datasets"
    cache.mkdir(parents=True)
    (cache / "mnist.npz").write_bytes(b"x" * 1_200_000)
    run = trained("quick-0001")
    (run.path / "log.txt").write_bytes(b"x" * 2_000_000)
    show("runs")
    session.runtime().maintenance.run_round()
    app = show("runs")
    assert app.dataframe[0].value["space"][0] > 2_000_000
    line = next(caption.value for caption in app.caption if caption.value.startswith("Space: "))
    assert line.startswith("Space: runs 2 MB · ")
    assert " · Keras' cache 1 MB · " in line
    assert line.endswith(" free on the disk")


@pytest.mark.parametrize(("most_in_words", "format_name"), [(500, None), (0, "bytes")])
def test_a_long_table_shows_disk_usage_as_sizes_too(
    show: Show,
    trained: Make,
    monkeypatch: pytest.MonkeyPatch,
    most_in_words: int,
    format_name: str | None,
) -> None:
    trained("quick-0001")
    monkeypatch.setattr(tables, "MOST_ROWS_IN_WORDS", most_in_words)
    space = json.loads(show("runs").dataframe[0].proto.columns)["space"]
    assert space["type_config"].get("format") == format_name


@pytest.mark.parametrize("page", ["home", "launch", "runs"])
def test_every_page_warns_of_low_disk_space(
    show: Show, trained: Make, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    trained("quick-0001")
    assert not show(page).warning
    monkeypatch.setattr(disk, "free_bytes", lambda _: 42_000_000)
    session.runtime().maintenance.run_round()
    assert (
        "has 42 MB left. A training run saves and stops before it is full."
        in show(page).warning[0].value
    )


def test_pages_warn_of_low_space_on_a_separate_runs_disk(
    show: Show, trained: Make, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained("quick-0001")
    show("home")
    monkeypatch.setattr(disk, "is_other", lambda *_: True)
    monkeypatch.setattr(
        disk, "free_bytes", lambda folder: 42_000_000 if folder == home.runs else 10**12
    )
    session.runtime().maintenance.run_round()
    [warning] = show("home").warning
    assert "/runs has 42 MB left." in warning.value.replace("\\", "").replace("\u2060", "")
