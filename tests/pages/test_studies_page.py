"""The Studies page: asking a question, watching it being answered, reading how sure the answer is."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import study_words
from gan_runtime import commands
from gan_runtime.home import Home
from gan_runtime.hosts import Host
from gan_runtime.rundir import RunDir
from gan_runtime.studies.design import StudyDesign
from gan_runtime.studies.statistics import difference
from tests.pages.test_pages import charts, texts
from tests.studies.hand_written import At, from_now, train

Show = Callable[..., AppTest]
BASE = {"workload": "mlp_gan", "epochs": 3}


@pytest.fixture
def at() -> At:
    """See `from_now`."""
    return from_now()


@pytest.fixture
def study(home: Home, host: Host, at: At) -> list[RunDir]:
    """Batch 64 and 128, three times each, finished: batch 128 takes 3 s an epoch instead of 4 s."""
    runs = commands.submit_study(home, StudyDesign.parse("batch_size", BASE, ["64", "128"], 3), host)
    for number, run in enumerate(runs):
        train(run, at, 100.0 * number, 4.0 if number % 2 == 0 else 3.0)
    return runs


def test_an_empty_page_offers_the_form(show: Show) -> None:
    app = show("studies")
    assert not app.exception
    assert "No study is stored yet" in texts(app)
    assert [metric.value for metric in app.metric if metric.label == "Runs"] == ["12"]  # 4 batch sizes, 3 repeats
    assert "study batch_size --values 64,128,256,512 --repeats 3 --preset quick --set epochs=15" in app.code[0].value
    assert charts(app) == []


def test_a_wrong_value_is_told_beside_the_form_and_nothing_can_be_started(show: Show) -> None:
    app = show("studies")
    app.text_input(key="study.values.batch_size").set_value("64, many").run()
    assert "batch\\_size\\_global is 'many'" in app.error[0].value or "batch_size_global is 'many'" in app.error[0].value
    assert "Start study" not in [button.label for button in app.button]


@pytest.mark.usefixtures("study")
def test_a_finished_study_says_what_differs_and_how_sure_that_is(show: Show) -> None:
    app = show("studies", study="study-0001")
    assert not app.exception
    text = texts(app)
    assert "**batch 128** takes 25 % less time per epoch than batch 64 (× 0.75, 0.75 to 0.75): clear." in text
    [table] = [item.value for item in app.dataframe]
    assert list(table["Variant"]) == ["batch 64", "batch 128"]
    assert list(table["Runs"]) == [3, 3]
    assert list(table["Time per epoch (s)"]) == ["4 (4 to 4)", "3 (3 to 3)"]
    assert list(table["Loss G (nats)"]) == ["3.000 (3.000 to 3.000)"] * 2
    assert [chart["title"] for chart in charts(app)] == ["Time per epoch (s)", "Spread of images (real ones = 1)"]


def test_a_study_that_waits_can_be_stopped_and_taken_up_again(show: Show, home: Home, host: Host) -> None:
    commands.submit_study(home, StudyDesign.parse("batch_size", BASE, ["64", "128"]), host)
    app = show("studies")
    assert "0 of 2 runs are finished" in str([item.proto for item in app.get("progress")])
    app.button(key="study.stop").click().run()
    assert {commands.latest_status(run).status for run in home.run_dirs()} == {"stopped"}
    app.button(key="study.resume").click().run()
    assert {commands.latest_status(run).status for run in home.run_dirs()} == {"queued"}


def test_home_shows_a_waiting_study_as_one_item(show: Show, home: Home, host: Host) -> None:
    commands.submit_study(home, StudyDesign.parse("batch_size", BASE, ["64", "128"], 2), host)
    text = texts(show("home"))
    assert "Queue (1)" in text
    assert "1. Study: Batch size · 4 of its 4 runs wait · next batch 64 seed 1" in text


def test_too_few_repeats_are_said_to_be_too_few() -> None:
    effect = difference({1: 3.0, 2: 3.3}, {1: 4.0, 2: 4.0})
    assert effect is not None
    assert study_words.sentence("batch 128", "batch 64", effect) == (
        "**batch 128** takes 21 % less time per epoch than batch 64 (× 0.79, 0.75 to 0.82): 2 repeats: too few to tell from noise."
    )


def test_a_run_that_has_not_measured_a_value_is_no_point() -> None:
    rows = [
        {"variant": "a", "variant_index": 0, "repeat": 1, "run_id": "x", "epoch_seconds": 2.0},
        {"variant": "a", "variant_index": 0, "repeat": 2, "run_id": "y", "epoch_seconds": float("nan")},
    ]
    points = study_words.points(pd.DataFrame(rows), "epoch_seconds")
    assert list(points["run_id"]) == ["x"]
    assert list(points["median"]) == [2.0]
