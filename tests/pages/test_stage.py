"""The stage: one or two runs for an audience."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from gan_runtime.records.run_folder import RunDir
from tests.pages.reading import texts

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run()


def shown_epoch(app: AppTest) -> str:
    return next(each.value for each in app.subheader if each.value.startswith("Epoch"))


def test_keys_step_through_the_epochs_and_play_them(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("stage")
    assert [title.value for title in app.title] == ["quick-0001"], "the newest run"
    assert shown_epoch(app) == "Epoch 2 of 2"
    assert shown_epoch(press(app, "Next")) == "Epoch 1 of 2", "after the last comes the first"
    assert shown_epoch(press(app, "Back")) == "Epoch 2 of 2"
    assert shown_epoch(press(app, "Play")) == "Epoch 1 of 2"
    assert shown_epoch(app.run()) == "Epoch 2 of 2"
    assert shown_epoch(press(app, "Pause")) == "Epoch 2 of 2"
    assert shown_epoch(app.run()) == "Epoch 2 of 2"


def test_two_runs_stand_side_by_side_at_one_epoch(show: Show, trained: Make) -> None:
    for seconds, run_id in enumerate(("quick-0001", "quick-0002", "quick-0003")):
        trained(run_id, seconds=seconds)
    app = show("stage", runs="quick-0001,quick-0002,quick-0003,none-0001")
    assert not app.exception
    assert [title.value for title in app.title] == ["quick-0001", "quick-0002"]
    press(app, "Back")
    assert texts(app).count("Epoch 1 of") == 2


def test_a_run_that_trains_comes_before_newer_ones_that_wait(
    show: Show, running: RunDir, new_run: Make
) -> None:
    new_run("quick-0009", seconds=100)
    assert [title.value for title in show("stage").title] == [running.run_id]


def test_the_stage_without_a_run_says_when_it_shows_one(show: Show) -> None:
    app = show("stage")
    assert not app.exception
    assert "The stage shows the newest one as soon as it trains." in texts(app)


def test_a_run_is_presented_by_a_button(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = press(show("run", run="quick-0001"), "Present")
    assert [title.value for title in app.title] == ["quick-0001"]
    assert app.query_params["runs"] == "quick-0001"
