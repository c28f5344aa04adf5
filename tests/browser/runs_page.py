"""The table of the Runs page, which a browser draws as an image."""

from __future__ import annotations

from playwright.sync_api import Page

CHECKBOX_X, ROW_HEIGHT = 22, 35


def tick(page: Page, row: int) -> None:
    """Ticks the run at this position in the table, counted from 1."""
    box = page.get_by_test_id("stDataFrame").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + CHECKBOX_X, box["y"] + ROW_HEIGHT * row + ROW_HEIGHT // 2)
