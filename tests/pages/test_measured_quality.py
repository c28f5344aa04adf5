"""Measured quality on pages that do not measure it: a run's curve, the Runs table, and Compare."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from pandas.api.types import is_numeric_dtype
from streamlit.testing.v1 import AppTest

from dashboard import rendering
from dashboard.evaluation.answers import NOT_COMPARABLE
from dashboard.frame import session
from dashboard.run import overview
from dashboard.run.overview import BEING_MEASURED
from gan_runtime.evaluation import jobs
from gan_runtime.evaluation.training_requests import SWITCH
from gan_runtime.jobs import job_queue
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from tests.pages.reading import charts, texts, titles
from tests.support.measured_images import answer
from tests.support.measured_showers import measured

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]
AWAITED = "The measured quality appears here after its first measurement."
TITLE = "How good is what it generates?"


@pytest.fixture
def two_runs(trained: Make) -> None:
    """Two runs: the second is better, and best in its first epoch."""
    first, second = trained("quick-0001"), trained("quick-0002", seconds=10)
    journal.append(first.evaluations_journal, 1, answer(1, kcd=9.0), answer(2, kcd=7.0))
    journal.append(second.evaluations_journal, 1, answer(1, kcd=0.5), answer(2, kcd=0.6))


@pytest.mark.usefixtures("two_runs")
def test_run_page_draws_quality_with_its_interval(show: Show, trained: Make) -> None:
    trained("quick-0003", seconds=20)
    assert TITLE not in titles(show("run", run="quick-0003"))
    app = show("run", run="quick-0001")
    assert titles(app).count(TITLE) == 1
    [chart] = [chart for chart in charts(app) if TITLE in str(chart.get("title"))]
    encodings = [layer["encoding"]["y"]["field"] for layer in chart["layer"]]  # type: ignore[attr-defined]
    assert encodings == ["low", "low", "floor", "value", "value"]
    assert chart["layer"][0]["encoding"]["y2"]["field"] == "high"  # type: ignore[index]


@pytest.mark.usefixtures("running")
def test_a_run_in_training_reserves_space_for_its_quality_curve(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the start, so that later charts stay in place."""
    monkeypatch.delenv(SWITCH)
    assert AWAITED in texts(show("run", run="quick-0001"))


def test_a_run_that_is_being_measured_reserves_space_for_its_quality_curve(
    show: Show, home: Home, running: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert AWAITED not in texts(show("run", run="quick-0001")), "measuring is off"
    saved = {"weight": np.zeros(1, np.float32)}
    checkpoints.save(running.checkpoints, saved, 10, wall_s=1.0, retained=1)
    monkeypatch.setattr(job_queue, "start", lambda _: None)
    job = jobs.request(home, running.run_id, "quality", {"while_training": 5}, "a test")
    session.runtime().refresh()
    assert AWAITED in texts(show("run", run="quick-0001"))
    job.add_progress(3, 10, "epoch 2 waits for the processor")
    measuring = "Measuring the quality, 30% done: epoch 2 waits for the processor."
    assert f"{measuring} {AWAITED}" in texts(show("run", run="quick-0001"))
    journal.append(running.evaluations_journal, 1, answer(1))
    session.runtime().refresh()
    monkeypatch.setattr(rendering, "OLD", 0.0)  # viewers share no answer of before
    app = show("run", run="quick-0001")
    assert TITLE in titles(app)
    assert measuring in texts(app), "below the curve of what is measured"


def test_run_that_just_ended_reserves_space_until_its_job_is_stored(
    show: Show, trained: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SWITCH)
    monkeypatch.setattr(job_queue, "start", lambda _: None)
    monkeypatch.setattr(overview, "SOON", timedelta(hours=1))
    run = trained("quick-0001", quality_every=2)
    assert BEING_MEASURED not in texts(show("run", run="quick-0001")), "it has no checkpoint"
    saved = {"weight": np.zeros(1, np.float32)}
    checkpoints.save(run.checkpoints, saved, 10, wall_s=1.0, retained=1)
    assert BEING_MEASURED in texts(show("run", run="quick-0001"))
    monkeypatch.setattr(overview, "SOON", timedelta(0))
    assert BEING_MEASURED not in texts(show("run", run="quick-0001")), "no job measures it"


@pytest.mark.parametrize(
    ("facts", "caution"),
    [
        ({"warning": "The classifier is often wrong."}, "The classifier is often wrong."),
        ({"protocol": 2}, f"{NOT_COMPARABLE} protocol."),
    ],
    ids=["a warning", "another protocol"],
)
def test_run_page_says_why_its_scores_need_care(
    show: Show, trained: Make, facts: dict[str, object], caution: str
) -> None:
    run = trained("quick-0001")
    first, second = answer(1), answer(2)
    changed = second.model_copy(update={"facts": {**second.facts, **facts}})
    journal.append(run.evaluations_journal, 1, first, changed)
    assert caution in texts(show("run", run="quick-0001"))


@pytest.mark.usefixtures("two_runs")
def test_runs_table_shows_the_best_quality_with_its_interval(show: Show, trained: Make) -> None:
    trained("quick-0003", seconds=20)
    inaccurate = answer(1, kcd=5.0, warning="The classifier is often wrong.")
    journal.append(trained("quick-0004", seconds=30).evaluations_journal, 1, inaccurate)
    table = show("runs").dataframe[0].value.set_index("run_id")
    assert table["quality"].to_dict() == pytest.approx(
        {"quick-0001": 7.0, "quick-0002": 0.5, "quick-0003": float("nan"), "quick-0004": 5.0},
        nan_ok=True,
    )
    assert table["quality_range"].to_dict() == {
        "quick-0001": "6.8 to 7.2, epoch 2",
        "quick-0002": "0.3 to 0.7, epoch 1",
        "quick-0003": "–",
        "quick-0004": "inaccurate classifier, 4.8 to 5.2, epoch 1",
    }


@pytest.mark.usefixtures("two_runs")
def test_runs_table_names_the_scores_of_different_workloads(show: Show, new_run: Make) -> None:
    showers = new_run("showers-0001", seconds=20, workload="shower_3dgan", dataset="showers")
    measured(showers, 1, fault=0.4)
    table = show("runs").dataframe[0].value.set_index("run_id")
    assert table["quality"]["quick-0002"] == 0.5
    assert 0 < table["quality"]["showers-0001"] < 10
    assert is_numeric_dtype(table["quality"]), "the browser sorts numbers"
    assert table["quality_range"]["quick-0002"] == "KCD, 0.3 to 0.7, epoch 1"
    assert "KCD" not in table["quality_range"]["showers-0001"]
    assert table["quality_range"]["showers-0001"].endswith("epoch 1")


def test_runs_table_has_no_quality_column_without_measurements(show: Show, trained: Make) -> None:
    trained("quick-0001")
    order = show("runs").dataframe[0].proto.column_order
    assert "quality" not in order
    assert "status" in order


@pytest.mark.usefixtures("two_runs")
def test_compare_shows_quality_with_interval_against_device_time(show: Show) -> None:
    app = show("compare", runs="quick-0001,quick-0002")
    tables = [frame.value for frame in app.dataframe if "KCD, best" in frame.value]
    assert len(tables) == 1
    assert list(tables[0]["KCD, best"]) == [7.0, 0.5]
    assert list(tables[0]["KCD, 95%"]) == ["6.8 to 7.2", "0.3 to 0.7"]
    [chart] = [chart for chart in charts(app) if chart.get("title") == "KCD"]
    assert '"title": "Device time (s)"' in str(chart).replace("'", '"')
    assert app.selectbox(key="compare.result").value == "quality_kcd_best"
    assert "Band: 95% interval." in texts(app)


@pytest.mark.parametrize(
    ("facts", "caution"),
    [
        ({}, ""),
        ({"warning": "The classifier is often wrong."}, "The classifier is often wrong."),
        ({"classifier": "another"}, f"{NOT_COMPARABLE} classifier."),
        ({"protocol": 2}, f"{NOT_COMPARABLE} protocol."),
        ({"features": "imagenet", "classifier": None}, ""),
    ],
    ids=["alike", "a warning", "another classifier", "another protocol", "another network"],
)
def test_compare_says_if_scores_are_not_comparable(
    show: Show, trained: Make, facts: dict[str, object], caution: str
) -> None:
    for run_id, changes in (("quick-0001", {}), ("quick-0002", facts)):
        run, measured = trained(run_id, seconds=10.0 * bool(changes)), answer(2)
        changed = measured.model_copy(update={"facts": {**measured.facts, **changes}})
        journal.append(run.evaluations_journal, 1, changed)
    page = texts(show("compare", runs="quick-0001,quick-0002"))
    assert caution in page
    assert ("not comparable" in page) == caution.startswith(NOT_COMPARABLE)


def test_compare_draws_scores_smaller_than_their_error_on_a_log_axis(
    show: Show, trained: Make
) -> None:
    for run_id, seconds in (("quick-0001", 0.0), ("quick-0002", 10.0)):
        run = trained(run_id, seconds=seconds)
        journal.append(run.evaluations_journal, 1, answer(1, kcd=0.05), answer(2, kcd=-0.01))
    app = show("compare", tab="curves", runs="quick-0001,quick-0002")
    app.multiselect(key="compare.metrics").set_value(["quality_kcd"]).run()
    assert "no value is above 0" not in texts(app)
    assert "A logarithmic axis cannot show values of 0 and below." in texts(app)
    [chart] = [each for each in app.get("vega_lite_chart") if '"KCD"' in each.proto.spec]
    tables = [pa.ipc.open_stream(each.data.data).read_pandas() for each in chart.proto.datasets]
    [rows] = [table for table in tables if "mean" in table]
    assert list(rows["mean"]) == [0.05, 0.05]
    assert (rows["drawn_low"] > 0).all()
    assert (rows["low"] < 0).all()
