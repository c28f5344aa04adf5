"""The stage in a real browser: it fills the window, and keys move through the epochs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.stored_runs import stored
from tests.support.small_pictures import write_grid

SIZES = ((1920, 1080), (1280, 720))


@pytest.fixture
def address(new_run: Callable[..., RunDir], dashboard: Dashboard) -> str:
    """A dashboard with two runs of two epochs."""
    for number in (1, 2):
        run = new_run(f"quick-{number:04d}", seconds=number, epochs=2)
        for epoch in (1, 2):
            file = f"samples/epoch-{epoch:05d}.png"
            write_grid(run.path / file)
            sample = journal.Sample(
                epoch=epoch, step=10 * epoch, sample_kind="fixed_latents", file=file, meta={}
            )
            journal.append(run.trainer_journal(), 1, sample)
        stored(run, float(number))
    return dashboard.address


def fits(page: Page) -> bool:
    """Whether everything is in the window."""
    return bool(
        page.evaluate(
            "() => { const main = document.querySelector('[data-testid=stMain]');"
            " return main.scrollHeight <= main.clientHeight + 1; }"
        )
    )


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("runs", ["quick-0001", "quick-0001,quick-0002"])
def test_the_stage_fills_the_window(
    browser: Browser, address: str, size: tuple[int, int], runs: str
) -> None:
    page = open_page(browser, f"{address}/stage?runs={runs}", width=size[0], height=size[1])
    settled(page)
    expect(page.get_by_test_id("stImage").first).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    assert fits(page)
    image = page.get_by_test_id("stImage").first.locator("img").bounding_box()
    assert image is not None
    least = 0.7 if runs == "quick-0001" else 0.35
    assert image["height"] > least * size[1]
    page.close()


def test_keys_move_through_the_epochs_and_leave(browser: Browser, address: str) -> None:
    page = open_page(browser, f"{address}/run?run=quick-0001")
    settled(page)
    page.keyboard.press("f")
    expect(page.get_by_text("Epoch 2 of 2")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_text("Epoch 1 of 2")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Epoch 2 of 2")).to_be_visible()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("tab", name="Overview")).to_be_visible()
    page.close()
