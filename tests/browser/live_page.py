"""Elements of the page of a run."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page


def step(page: Page) -> int:
    """The step shown on the page."""
    text = page.get_by_text(re.compile(r"^step [\d,]+ of")).inner_text()
    return int(re.sub(r"\D", "", text.partition("of")[0]))


def chart(page: Page, title: str) -> Locator:
    """The chart with this title."""
    return page.get_by_test_id("stVegaLiteChart").filter(has_text=title)


def losses(page: Page) -> Locator:
    """The chart of both losses."""
    return chart(page, "Generator and discriminator loss")


def sheet_images(page: Page) -> Locator:
    """The generated images on the tab Samples, to be picked by click."""
    chart = page.get_by_test_id("stVegaLiteChart").last
    return chart.locator("path[aria-roledescription='rect mark'], .mark-rect path")
