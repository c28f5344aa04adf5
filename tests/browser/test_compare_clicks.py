"""The Compare page in a real browser: a click on a curve names its run, and the link opens it."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Browser, Locator, Page, expect

from dashboard import first_screen
from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.rundir import RunDir
from tests.browser.dashboard_process import Dashboard, open_page, settled

STEPS = 200


def stored(run: RunDir, loss: float) -> None:
    """A finished run whose losses stay the same, so that its curve is a level line."""
    values = {name: [loss] * STEPS for name in ("loss_generator", "loss_discriminator")}
    wall_s = [float(step) for step in range(1, STEPS + 1)]
    journal.append(
        run.trainer_journal(),
        1,
        StatusChange(status="running", reason="training"),
        journal.Plan(images=32 * STEPS, steps_per_epoch=STEPS, epochs=1),
        journal.Scalars(epoch=1, first_step=1, wall_s=wall_s, values=values),
        StatusChange(status="finished", reason="all 1 epochs done"),
    )


def test_a_click_on_a_curve_names_its_run_and_the_link_opens_it(
    new_run: Callable[..., RunDir], browser: Browser, dashboard: Dashboard
) -> None:
    for number, loss in ((1, 0.5), (2, 1.5)):
        stored(new_run(f"quick-000{number}", seconds=number), loss)
    page = open_page(browser, f"{dashboard.address}/compare?runs=quick-0001,quick-0002")
    chart = page.get_by_test_id("stVegaLiteChart").first
    expect(chart.locator("canvas")).to_be_visible()
    click_highest_curve(page, chart)
    link = page.get_by_role("link", name="Open quick-0002")
    expect(link).to_be_visible()
    link.click()
    expect(page).to_have_url(re.compile(r"/live\?run=quick-0002$"))


def click_highest_curve(page: Page, chart: Locator) -> None:
    """Goes down the middle of a chart until a tooltip says that something is there, and clicks it."""
    box = chart.bounding_box()
    assert box is not None
    for below in range(30, int(box["height"]), 3):
        place = box["x"] + box["width"] / 2, box["y"] + below
        page.mouse.move(*place)
        if page.locator("#vg-tooltip-element.visible").count():
            page.mouse.click(*place)
            return
    raise AssertionError("no curve was found in the chart")


def test_the_server_is_found_at_once_and_the_first_screen_comes_before_the_rest(
    new_run: Callable[..., RunDir], browser: Browser, dashboard: Dashboard
) -> None:
    for number in (1, 2):
        stored(new_run(f"quick-000{number}", seconds=number), float(number))
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(dashboard.address)))
    page.add_init_script(
        f"""window.undrawn = [];
        new MutationObserver(() => {{
            if (document.querySelector('.st-key-{first_screen.MARK}')) window.before ??= document.querySelectorAll('h2').length;
            for (const chart of document.querySelectorAll('[data-testid="stVegaLiteChart"]'))
                if (!chart.querySelector('canvas, svg')) window.undrawn.push(chart.offsetHeight);
        }}).observe(document, {{subtree: true, childList: true}})"""
    )
    page.goto(f"{dashboard.address}/compare?runs=quick-0001,quick-0002")
    losses = page.get_by_test_id("stVegaLiteChart").first
    expect(losses.locator("canvas")).to_be_visible()
    top = losses.bounding_box()
    expect(page.get_by_role("heading", name="Samples and scores at the same epoch")).to_be_attached()
    expect(page.locator(f".st-key-{first_screen.MARK}")).to_have_count(0)
    assert page.evaluate("window.before") == 0, "no part below the first screen had come"
    assert losses.bounding_box() == top, "nothing moves"
    settled(page)  # no chart comes after it
    charts = page.get_by_test_id("stVegaLiteChart")
    expect(charts.locator("canvas, svg")).to_have_count(charts.count())
    drawn = charts.evaluate_all("charts => charts.map(chart => chart.offsetHeight)")
    assert min(page.evaluate("window.undrawn")) == min(drawn) > 100, (
        "a chart has its height before it is drawn"
    )
    assert "/_stcore/health" in asked
    assert [path for path in asked if path.startswith("/compare/_stcore")] == []
    page.close()
