"""The first screen of Live and Compare is drawn alone once per window, then the whole page."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import plots, rendering
from dashboard.frame import places
from gan_runtime.records.run_folder import RunDir
from tests.pages.reading import charts, texts, titles

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]
QUERIES = {
    "run": {"run": "quick-0001"},
    "compare": {"runs": "quick-0001,quick-0002", "tab": "curves"},
}
FIRST = {"run": [], "compare": ["Generator loss"]}  # Vega charts


@pytest.mark.parametrize("page", QUERIES)
def test_first_pass_draws_the_first_screen_and_the_next_the_whole_page(
    show: Show, trained: Make, page: str
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show(page, whole=False, **QUERIES[page])
    assert not app.exception
    assert titles(app) == FIRST[page]
    assert "follow in a moment." in texts(app)
    assert (len(app.dataframe), len(app.expander)) == (0, 0)
    app.run()
    assert titles(app)[: len(FIRST[page])] == FIRST[page]
    assert titles(app) == titles(show(page, **QUERIES[page]))
    assert len(titles(app)) > len(FIRST[page])
    assert "follow in a moment." not in texts(app)


def test_first_pass_of_a_run_draws_its_losses_as_html(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("run", whole=False, run="quick-0001")
    [sketch] = sketches(app)
    assert "<h6>Generator and discriminator loss</h6>" in sketch
    assert "Loss (nats)" in sketch
    assert sketch.count("%3Cpolyline") == 4, "raw and smoothed, of two networks"
    app.run()
    assert sketches(app) == []
    assert titles(app)[0] == "Generator and discriminator loss"


def sketches(app: AppTest) -> list[str]:
    """The page's charts in plain HTML."""
    bodies = [element.proto.body for element in app.get("html")]
    return [body for body in bodies if body.startswith("<div class='sketch'")]


@pytest.mark.parametrize("page", ["compare"])
def test_the_second_pass_only_adds_points_to_the_same_charts(
    show: Show, trained: Make, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    monkeypatch.setattr(rendering, "POINTS", 5)
    app = show(page, whole=False, **QUERIES[page])
    first, few = charts(app), points(app)
    app.run()
    assert charts(app)[: len(first)] == first
    assert few == [5] * len(first)
    assert points(app)[: len(first)] == [20] * len(first)


def points(app: AppTest) -> list[int]:
    """Points per curve of each chart; each of these charts has two curves."""
    tables = [
        dataset.data.data
        for element in app.get("vega_lite_chart")
        for dataset in element.proto.datasets
        if dataset.name == plots.ROWS
    ]
    return [len(pa.ipc.open_stream(table).read_all()) // 2 for table in tables]


def test_a_revisited_page_is_drawn_whole(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("run", whole=False, run="quick-0001")
    assert len(sketches(app)) == 1
    app.switch_page(str(places.HOME)).run()
    app.switch_page(str(places.RUN)).run()
    assert len(titles(app)) > len(FIRST["run"])


def test_an_empty_page_shows_its_message_on_the_first_pass(show: Show) -> None:
    app = show("run", whole=False)
    assert "No run is stored yet" in texts(app)
    assert "follow in a moment." not in texts(app)


def test_first_pass_of_launch_ends_at_accelerator_and_can_start_a_run(
    show: Show,
) -> None:
    app = show("launch", whole=False)
    assert not app.exception
    assert "Schedule and more options follow in a moment." in texts(app)
    assert [header.value for header in app.header] == ["Model and data", "Accelerator", "This run"]
    assert "Start run" in [button.label for button in app.button]
    assert len(app.expander) == 0
    app.run()
    assert len(app.expander) > 3
    assert "follow in a moment." not in texts(app)
