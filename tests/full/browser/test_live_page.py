"""The Live page in a real browser while a run trains: zoom, reload, another window and the slider.

A toy trainer runs at a fixed pace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from gan_runtime.records.home import Home
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.launch_page import fill, start
from tests.browser.live_page import chart, losses, step
from tests.support.toy_engine import IMAGES, PACE_VARIABLE
from tests.support.trainers import end_trainers

SECONDS_PER_STEP, BATCH, ENDLESS = 0.15, 2, "10000"
STEPS_PER_EPOCH = IMAGES // BATCH


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Dashboard]:
    """A dashboard whose trainers are slow without using the CPU."""
    pace = {PACE_VARIABLE: str(SECONDS_PER_STEP)}
    started = Dashboard(
        tmp_path / "home", tmp_path / "dashboard.log", program="tests.support.toy_dashboard", **pace
    )
    yield started
    started.stop()
    end_trainers(Home(tmp_path / "home"))


def launched(page: Page) -> str:
    """Starts a run that trains until stopped, an epoch every few seconds; returns its id."""
    fill(page, "textbox", "Global batch (images per step)", str(BATCH))
    fill(page, "textbox", "Epochs (passes over the data)", ENDLESS)
    fill(page, "textbox", "Steps per call", "1")
    return start(page)


def ticks(chart: Locator) -> set[str]:
    """Returns the whole numbers on a chart's axes, which are steps: losses have a decimal point.

    They grow with the run unless it is zoomed.
    """
    return {
        text
        for text in chart.locator(".role-axis-label text").all_text_contents()
        if "." not in text
    }


def axis_ticks(chart: Locator, wait_until: Callable[..., Any]) -> set[str]:
    """Waits for the ticks: a chart that is redrawing its axis may have none."""
    return set(wait_until(lambda: ticks(chart), "the axis is drawn"))


def zoomed_in(page: Page, chart: Locator, wait_until: Callable[..., Any]) -> set[str]:
    """Drags across a chart; returns the steps on the zoomed axis."""
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5, steps=4)
    page.mouse.up()
    expect(page.get_by_role("button", name="Show everything")).to_be_visible()

    sentence = page.get_by_text(re.compile(r"^Steps [\d,]+ to [\d,]+$")).inner_text()
    first, last = (int(re.sub(r"\D", "", number)) for number in sentence.split("to"))
    assert first < last

    def part() -> set[str]:
        """Returns the ticks if all are in the range that the page shows: without a zoom, the axis
        grows with the run.
        """
        now = axis_ticks(chart, wait_until)
        return now if all(first <= int(tick) <= last for tick in now) else set()

    return set(wait_until(part, "the axis shows the part that was dragged across", 20))


def scrolled(page: Page) -> float:
    """Returns the page's scroll position."""
    return float(page.get_by_test_id("stMain").evaluate("node => node.scrollTop"))


def slider_is_put_to_the_first_epoch(page: Page) -> bool:
    """Tries by keyboard; if an epoch ends at that moment, the slider is replaced and the key press
    is lost.
    """
    page.get_by_role("slider").focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(2_000)
    return page.get_by_role("button", name="Follow the newest epoch").is_visible()


def zoom_stays(page: Page, wait_until: Callable[..., Any]) -> None:
    """A zoom survives steps and an epoch; a double click resets it."""
    bars = chart(page, "How long does an epoch take?").locator(".mark-rect path")
    drawing = losses(page).locator("svg").first.element_handle()
    wait_until(lambda: step(page) > 20, "there is something to zoom into")
    assert drawing.evaluate("node => node.isConnected"), (
        "the loss chart was made anew: it flickers and loses its zoom"
    )
    zoomed = zoomed_in(page, losses(page), wait_until)
    before, epochs = step(page), bars.count()
    wait_until(lambda: step(page) > before + 8, "the step moves on under the zoom")
    assert axis_ticks(losses(page), wait_until) == zoomed
    wait_until(lambda: bars.count() > epochs, "an epoch ends under the zoom")
    expect(page.get_by_text(re.compile(r"^After epoch \d+, step \d+0"))).to_be_visible()
    assert axis_ticks(losses(page), wait_until) == zoomed, "the zoom is lost at the end of an epoch"
    losses(page).locator("svg").first.dblclick()
    expect(page.get_by_text("Drag across a chart to zoom in.")).to_be_visible()


def wheel_scrolls(page: Page, wait_until: Callable[..., Any]) -> None:
    """Checks scrolling over a chart, too."""
    place = wait_until(
        lambda: losses(page).count() == 1 and losses(page).first.bounding_box(),
        "the loss chart is drawn with every row again",
    )
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.wheel(0, 300)
    wait_until(lambda: scrolled(page) > 100, "the wheel over a chart scrolls the page")


def slider_stays(page: Page, wait_until: Callable[..., Any]) -> None:
    """The slider stays where a user put it while the run continues."""
    wait_until(
        lambda: slider_is_put_to_the_first_epoch(page), "the slider stays where it was put", 90
    )
    expect(page.get_by_text("After epoch 1,")).to_be_visible()
    before = step(page)
    wait_until(lambda: step(page) > before + STEPS_PER_EPOCH, "an epoch goes by under the slider")
    expect(page.get_by_text("After epoch 1,")).to_be_visible()


def test_live_page_survives_zoom_reload_and_reopening(
    browser: Browser, slow: Dashboard, wait_until: Callable[..., Any]
) -> None:
    page = open_page(browser, f"{slow.address}/launch")
    run_id = launched(page)
    expect(losses(page)).to_be_visible()
    zoom_stays(page, wait_until)
    wheel_scrolls(page, wait_until)

    # Neither a reload nor closing the browser and opening another changes anything.
    page.reload()
    settled(page)
    expect(losses(page)).to_be_visible()
    before = step(page)
    page.close()
    page = open_page(browser, f"{slow.address}/run?run={run_id}")
    wait_until(lambda: step(page) > before, "the run trained on while no browser was open")
    slider_stays(page, wait_until)
    page.close()
