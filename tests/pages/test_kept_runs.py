"""What people do with runs on the Runs page, by pressing its buttons: pin, hide, tag; delete, restore, remove for good."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.frame import session
from dashboard.runs import bin_view
from dashboard.runs import view as runs_view
from gan_runtime import disk
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime.bin import BinnedRun
from gan_runtime.store import queries

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def texts(app: AppTest) -> str:
    """All markdown and captions of the page."""
    return "\n".join(one.value for one in (*app.markdown, *app.caption))


def press(app: AppTest, label: str) -> None:
    next(button for button in app.button if button.label == label).click().run()
    assert not app.exception


def stored() -> list[str]:
    return [row.run_id for row in queries.runs(session.runtime().store)]


def test_a_deleted_run_is_restored_from_the_bin(show: Show, trained: Make) -> None:
    for number in (1, 2):
        trained(f"quick-000{number}", seconds=number)
    app = show("runs")
    assert not any("Bin" in one.label for one in app.expander)
    session.runtime().delete("quick-0001")
    app.run()
    assert [one.label for one in app.expander if one.label.startswith("Bin: 1 run")]
    assert "30 days left" in texts(app)
    assert stored() == ["quick-0002"]
    press(app, "Restore")
    assert stored() == ["quick-0002", "quick-0001"]
    assert not any("Bin" in one.label for one in app.expander)


def test_the_bin_is_emptied_after_a_question_and_shown_where_no_run_is_left(
    show: Show, trained: Make
) -> None:
    trained("quick-0001")
    app = show("runs")
    session.runtime().delete("quick-0001")
    app.run()
    press(app, "Empty the bin now")
    assert "This cannot be undone." in texts(app)
    assert "Remove 1 run for good" in [button.label for button in app.button]
    assert len(session.runtime().keeping.binned()) == 1, "it was only asked"
    session.runtime().keeping.remove_for_good(["quick-0001"])
    app.run()
    assert not any("Bin" in one.label for one in app.expander)


@pytest.mark.parametrize(
    ("days", "said"),
    [(30.0, "30 days left"), (1.2, "1 day left"), (0.4, "removed within a day"), (None, "stays until")],
)
def test_the_bin_tells_who_deleted_a_run_and_how_long_it_stays(days: float | None, said: str) -> None:
    moment = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)
    told = bin_view.told(
        BinnedRun("a-0001", "a-0001", "a-0001", "finished", moment, "dashboard", 2_000_000, days)
    )
    assert told.startswith("deleted on 2026-01-01 at 12:05 UTC from the dashboard · 2 MB · ")
    assert said in told


def test_names_in_the_bin_are_no_markup(show: Show, trained: Make) -> None:
    trained("quick-0001")
    runtime = session.runtime()
    app = show("runs")
    runtime.delete("quick-0001")
    note = runtime.home.bin / "quick-0001" / "deleted.json"
    note.write_text(
        note.read_text().replace('"name": "quick-0001"', '"name": "![x](http://evil.example) <b>"')
    )
    app.run()
    assert "![x](" not in texts(app)


# ---- pinned, hidden, tagged ---------------------------------------------------------------------------------------------


def listed(app: AppTest) -> list[str]:
    return list(app.dataframe[0].value["run_id"])


def tick(app: AppTest, run_id: str) -> None:
    shown = listed(app)
    selection = {"rows": [shown.index(run_id)], "columns": [], "cells": []}
    app.session_state[runs_view.table_key(shown)] = {"selection": selection}
    app.run()


def test_a_run_is_pinned_and_hidden_with_the_buttons_below_the_table(show: Show, trained: Make) -> None:
    for number in (1, 2, 3):
        trained(f"quick-000{number}", seconds=number)
    app = show("runs")
    tick(app, "quick-0001")
    press(app, "Pin")
    assert listed(app) == ["quick-0001", "quick-0003", "quick-0002"]
    assert "Unpin" in [button.label for button in app.button]
    tick(app, "quick-0001")
    press(app, "Unpin")
    tick(app, "quick-0002")
    press(app, "Hide")
    assert listed(app) == ["quick-0003", "quick-0001"]
    app.toggle[0].set_value(True).run()
    assert listed(app) == ["quick-0003", "quick-0002", "quick-0001"]


def test_a_hidden_run_is_offered_for_comparison_only_where_it_is_asked_for(show: Show, trained: Make) -> None:
    for number in (1, 2):
        trained(f"quick-000{number}", seconds=number)
    show("runs")
    session.runtime().keeping.mark(["quick-0002"], hidden=True)
    assert show("compare").multiselect[0].options == ["quick-0001"]
    asked = show("compare", runs="quick-0002")
    assert asked.multiselect[0].value == ["quick-0002"]
    assert show("live").selectbox[0].value == "quick-0001"
    assert show("live", run="quick-0002").selectbox[0].value == "quick-0002"


def test_where_all_runs_are_hidden_the_page_says_so(show: Show, trained: Make) -> None:
    trained("quick-0001")
    show("runs")
    session.runtime().keeping.mark(["quick-0001"], hidden=True)
    app = show("runs")
    assert not app.exception
    assert not app.dataframe
    assert app.toggle[0].label == "Show 1 hidden run, here and in the lists of other pages"
    assert "No run fits this search" in app.info[0].value


def test_runs_are_filtered_by_their_tags_and_found_by_their_notes(show: Show, trained: Make) -> None:
    for number in (1, 2):
        trained(f"quick-000{number}", seconds=number)
    show("runs")
    session.runtime().keeping.mark(["quick-0001"], tags=["good"], remark="the one for the talk")
    app = show("runs")
    pills = next(group for group in app.button_group if group.options and "good" in str(group.options))
    pills.set_value(["good"]).run()
    assert listed(app) == ["quick-0001"]
    app = show("runs")
    app.text_input[0].set_value("the talk").run()
    assert listed(app) == ["quick-0001"]


def test_the_dialog_of_tags_and_note_begins_with_what_is_there(show: Show, trained: Make) -> None:
    trained("quick-0001")
    show("runs")
    session.runtime().keeping.mark(["quick-0001"], tags=["good"], remark="fine")
    app = show("runs")
    tick(app, "quick-0001")
    press(app, "Tags and note")
    assert app.multiselect[0].value == ["good"]
    assert app.text_area[0].value == "fine"


# ---- space --------------------------------------------------------------------------------------------------------------


def test_runs_shows_the_space_of_each_run_and_of_all_else(show: Show, trained: Make) -> None:
    run = trained("quick-0001")
    (run.path / "log.txt").write_bytes(b"x" * 2_000_000)
    show("runs")
    session.runtime().keeping.housekeeping.look()
    app = show("runs")
    assert app.dataframe[0].value["space"][0] > 2_000_000
    line = next(caption.value for caption in app.caption if caption.value.startswith("Space: "))
    assert line.startswith("Space: runs 2 MB · ")
    assert line.endswith(" free on the disk")


@pytest.mark.parametrize("page", ["home", "launch", "runs"])
def test_every_page_warns_of_a_disk_that_is_low(
    show: Show, trained: Make, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    trained("quick-0001")
    assert not show(page).warning
    monkeypatch.setattr(disk, "free_bytes", lambda _: 42_000_000)
    session.runtime().keeping.housekeeping.look()
    assert (
        "has 42 MB left. A run that trains saves and stops before it is full." in show(page).warning[0].value
    )
