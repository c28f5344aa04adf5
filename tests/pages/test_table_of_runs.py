"""The table of the Runs page: search, ticks, deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlit.testing.v1 import AppTest

from dashboard.frame import session
from dashboard.runs import view as runs_view
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec.presets import PRESETS
from gan_runtime.store import queries
from tests.pages.reading import texts

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def test_unreadable_run_folders_are_named_and_skipped(
    show: Show, trained: Make, home: Home
) -> None:
    trained("quick-0001")
    for number in range(7):
        (home.runs / f"![x](evil) {number}").mkdir()
    app = show("runs")
    assert not app.exception
    assert len(app.dataframe[0].value) == 1
    [unreadable] = [c.value for c in app.caption if "cannot be read" in c.value]
    lines = unreadable.split("  \n")
    assert (
        lines[0]
        == "!\\[x\\](evil) 0 cannot be read and is not listed: its folder has a name that no run"
        " can have."
    )
    assert (len(lines), lines[5]) == (6, "2 more cannot be read.")


def test_runs_can_be_searched_by_text(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("paper-0002", seconds=10, dataset="mnist")
    app = show("runs")
    assert list(app.dataframe[0].value["run_id"]) == ["paper-0002", "quick-0001"]
    app.text_input[0].set_value("digits").run()
    assert list(app.dataframe[0].value["run_id"]) == ["quick-0001"], "by its data set"
    app.text_input[0].set_value("paper").run()
    assert list(app.dataframe[0].value["run_id"]) == ["paper-0002"]
    app.text_input[0].set_value("nothing like it").run()
    assert "No run matches" in texts(app)


def test_runs_shows_and_searches_options_changed_from_the_preset(show: Show, trained: Make) -> None:
    quick = {
        name: value
        for name, value in PRESETS["quick"].values.items()
        if name not in ("epochs", "batch_size_global")
    }
    trained("quick-0001", **quick)
    trained("quick-0002", seconds=10, **{**quick, "ema_decay": 0.99, "r1_weight": 0.1})
    app = show("runs")
    assert list(app.dataframe[0].value["options"]) == [
        "R1 penalty 0.1 · moving average 0.99",
        "",
    ]
    app.text_input[0].set_value("penalty").run()
    assert list(app.dataframe[0].value["run_id"]) == ["quick-0002"]


def tick(app: AppTest, *run_ids: str) -> None:
    """Ticks only these rows of the current table."""
    order = list(app.dataframe[0].value["run_id"])
    rows = [order.index(run_id) for run_id in run_ids]
    app.session_state[runs_view.table_key(order)] = {
        "selection": {"rows": rows, "columns": [], "cells": []}
    }
    app.run()


def offered_for_deletion(app: AppTest) -> str:
    """Presses Delete and returns the dialog's sentence about the runs to move to the trash."""
    next(button for button in app.button if button.label == "Delete").click().run()
    assert not app.exception
    return next(
        text for text in texts(app).splitlines() if "The trash below the table holds it" in text
    )


def test_a_selection_survives_a_search_a_new_run_and_a_deletion(
    show: Show, trained: Make, wait_until: Callable[..., Any]
) -> None:
    for number in (1, 2, 3):
        trained(f"quick-000{number}", seconds=number)
    app = show("runs")
    tick(app, "quick-0001")
    app.text_input[0].set_value("0001").run()
    assert offered_for_deletion(app).startswith("quick-0001:")
    app.text_input[0].set_value("").run()
    assert offered_for_deletion(app).startswith("quick-0001:")
    trained("quick-0004", seconds=4)
    wait_until(lambda: len(queries.runs(session.runtime().store)) == 4, "the new run is stored")
    app.run()
    assert len(app.dataframe[0].value) == 4
    assert offered_for_deletion(app).startswith("quick-0001:")
    session.runtime().commands.delete("quick-0002")
    app.run()
    assert len(app.dataframe[0].value) == 3
    assert offered_for_deletion(app).startswith("quick-0001:")


def test_runs_outside_the_search_are_not_deleted_but_stay_selected(
    show: Show, trained: Make
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("runs")
    tick(app, "quick-0001", "quick-0002")
    app.text_input[0].set_value("0002").run()
    assert offered_for_deletion(app).startswith("quick-0002:")
    tick(app)
    app.text_input[0].set_value("").run()
    assert offered_for_deletion(app).startswith("quick-0001:")
