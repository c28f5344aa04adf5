"""The Runs page: several workloads in the table, delete dialog, selection; the cards of Home."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from dashboard.frame import session
from dashboard.runs import view as runs_view
from gan_runtime.records.run_folder import RunDir
from tests.pages.reading import texts
from tests.pages.test_table_of_runs import offered_for_deletion, tick

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def test_delete_dialog_names_runs_like_the_table(show: Show, trained: Make) -> None:
    trained("quick-0001", name="thin strokes")
    trained("quick-0002", name="twins", seconds=10)
    trained("quick-0003", name="twins", seconds=20)
    app = show("runs")
    tick(app, "quick-0001", "quick-0003")
    assert offered_for_deletion(app).startswith("twins (quick-0003), thin strokes:"), texts(app)


def test_a_restored_run_is_not_selected(show: Show, trained: Make) -> None:
    for number in (1, 2):
        trained(f"quick-000{number}", seconds=number)
    app = show("runs")
    tick(app, "quick-0001")
    runtime = session.runtime()
    runtime.commands.delete("quick-0001")
    app.run()
    assert "not in this search" not in texts(app)
    runtime.commands.restore("quick-0001")
    app.run()
    assert list(app.dataframe[0].value["run_id"]) == ["quick-0002", "quick-0001"]
    assert app.session_state[runs_view.TICKED] == []


def test_losses_of_different_workloads_share_one_column(
    show: Show, trained: Make, new_run: Make
) -> None:
    trained("quick-0001")
    assert "loss_generator" in show("runs").dataframe[0].value
    new_run("showers-0001", workload="shower_3dgan", dataset="showers_tiny", seconds=5)
    session.close()
    table = show("runs").dataframe[0].value
    assert list(table["losses"]) == ["–", "G 0.900 · D 1.100"]
    assert not [name for name in table if name.startswith("loss_")]
    assert list(table).index("losses") == list(table).index("quality") + 1


def test_the_table_is_tall_enough_for_all_runs(show: Show, trained: Make) -> None:
    for number in range(1, 13):
        trained(f"quick-00{number:02}", seconds=number)
    heights = [block.proto.height_config.pixel_height for block in show("runs").get("container")]
    assert max(heights) >= 13 * runs_view.ROW_PIXELS


def test_home_cards_are_ordered_newest_first(show: Show, trained: Make) -> None:
    for number in range(1, 7):
        trained(f"quick-000{number}", seconds=number)
    labels = [link.proto.label for link in show("home").get("page_link")]
    assert [label for label in labels if label.startswith("Open quick")] == [
        f"Open quick-000{number}" for number in (6, 5, 4, 3, 2, 1)
    ]
