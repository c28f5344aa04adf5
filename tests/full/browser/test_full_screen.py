"""Images on the full screen: a small grid fills it, in the column of a run and next to others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, expect

from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.stored_runs import stored
from tests.support.small_pictures import write_grid

WIDE = {"width": 1_280, "height": 720}


@pytest.mark.parametrize("place", ["run?run=quick-0002", "compare?runs=quick-0001,quick-0002"])
def test_a_small_grid_fills_the_full_screen(
    new_run: Callable[..., RunDir], browser: Browser, dashboard: Dashboard, place: str
) -> None:
    for number in (1, 2):
        run = new_run(f"quick-{number:04d}", seconds=number)
        write_grid(run.samples / "epoch-00001.png")
        sample = journal.Sample(
            epoch=1,
            step=200,
            sample_kind="fixed_latents",
            file="samples/epoch-00001.png",
            meta={},
        )
        journal.append(run.trainer_journal(), 1, sample)
        stored(run, 1.0)
    page = open_page(browser, f"{dashboard.address}/{place}&tab=samples", **WIDE)
    image = page.get_by_test_id("stImage").locator("img").first
    expect(image).to_be_visible()
    settled(page)  # a later part of the page can move the image, which closes the full screen
    image.hover()
    page.get_by_role("button", name="Fullscreen: ").first.click()
    expect(page.get_by_role("button", name="Close fullscreen")).to_be_visible()
    box = image.bounding_box()
    assert box is not None
    assert box["width"] > 0.9 * WIDE["width"]
    assert box["height"] > 0.9 * WIDE["height"]
    page.close()
