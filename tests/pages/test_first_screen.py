"""The first screen of Live and Compare comes alone once in each window, and then the page as
a whole.
"""

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
FIRST = {
    "run": ["Generator and discriminator loss"],
    "compare": ["Generator loss"],
}


@pytest.mark.parametrize("page", rendering.PAGES)
def test_the_first_pass_draws_the_first_screen_and_the_next_one_all_of_the_page(
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


@pytest.mark.parametrize("page", rendering.PAGES)
def test_the_first_pass_has_fewer_points_and_the_next_one_only_gives_the_same_charts_more_rows(
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
    """How many each curve of a chart has, chart by chart: two curves are in each of these."""
    tables = [
        dataset.data.data
        for item in app.get("vega_lite_chart")
        for dataset in item.proto.datasets
        if dataset.name == plots.ROWS
    ]
    return [len(pa.ipc.open_stream(table).read_all()) // 2 for table in tables]


def test_a_window_that_has_seen_a_page_gets_it_whole_when_it_comes_back(
    show: Show, trained: Make
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("run", whole=False, run="quick-0001")
    assert titles(app) == FIRST["run"]
    app.switch_page(str(places.HOME)).run()
    app.switch_page(str(places.RUN)).run()
    assert len(titles(app)) > len(FIRST["run"])


def test_a_page_with_nothing_to_draw_says_so_at_once(show: Show) -> None:
    app = show("run", whole=False)
    assert "No run is stored yet" in texts(app)
    assert "follow in a moment." not in texts(app)
