"""The Compare page in a real browser: a click on a curve names its run, and the link opens it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from gan_runtime.records.home import Home
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.stored_runs import queued, stored


@pytest.fixture(scope="module")
def of_two_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard on a home with two runs."""
    folder = tmp_path_factory.mktemp("two")
    for loss in (0.5, 1.5):
        stored(queued(Home(folder / "home")), loss)
    started = Dashboard(folder / "home", folder / "dashboard.log")
    yield started
    started.stop()


def test_click_on_a_curve_shows_a_link_that_opens_its_run(
    browser: Browser, of_two_runs: Dashboard
) -> None:
    page = open_page(
        browser, f"{of_two_runs.address}/compare?runs=quick-0001,quick-0002&tab=curves"
    )
    chart = page.get_by_test_id("stVegaLiteChart").first
    expect(chart.locator("canvas")).to_be_visible()
    click_highest_curve(page, chart)
    link = page.get_by_role("link", name="Open quick-0002")
    expect(link).to_be_visible()
    link.click()
    expect(page).to_have_url(re.compile(r"/run\?run=quick-0002$"))
    page.close()


def click_highest_curve(page: Page, chart: Locator) -> None:
    """Moves down the middle of a chart until a tooltip appears, and clicks there."""
    box = chart.bounding_box()
    assert box is not None
    for below in range(30, int(box["height"]), 3):
        place = box["x"] + box["width"] / 2, box["y"] + below
        page.mouse.move(*place)
        if page.locator("#vg-tooltip-element.visible").count():
            page.mouse.click(*place)
            return
    raise AssertionError("no curve was found in the chart")


def test_charts_render_without_layout_shifts(browser: Browser, of_two_runs: Dashboard) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    requests: list[str] = []
    page.on(
        "request", lambda request: requests.append(request.url.removeprefix(of_two_runs.address))
    )
    page.add_init_script("""window.undrawn = [];
        new MutationObserver(() => {
            for (const chart of document.querySelectorAll('[data-testid="stVegaLiteChart"]'))
                if (!chart.querySelector('canvas, svg')) window.undrawn.push(chart.offsetHeight);
        }).observe(document, {subtree: true, childList: true})""")
    page.goto(f"{of_two_runs.address}/compare?runs=quick-0001,quick-0002&tab=curves")
    losses = page.get_by_test_id("stVegaLiteChart").first
    expect(losses.locator("canvas")).to_be_visible()
    top = losses.bounding_box()
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(2)
    assert losses.bounding_box() == top, "nothing moves"
    settled(page)  # no chart appears later
    charts = page.get_by_test_id("stVegaLiteChart")
    expect(charts.locator("canvas, svg")).to_have_count(charts.count())
    heights = charts.evaluate_all("charts => charts.map(chart => chart.offsetHeight)")
    assert min(page.evaluate("window.undrawn")) == min(heights) > 100, (
        "a chart has its height before it is drawn"
    )
    assert "/_stcore/health" in requests
    assert [path for path in requests if path.startswith("/compare/_stcore")] == []
    page.close()
