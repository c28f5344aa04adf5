"""Images on request in a real browser: typed and picked seeds, a strip, a plane, files, and the
process that generates them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from gan_runtime.jobs.folder import JobDir
from gan_runtime.records.home import Home
from gan_runtime.training.latents import LatentPoints
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.live_page import sheet_images
from tests.support import trained_home

FIRST_MS, NEXT_MS = 120_000, 30_000  # the first request loads TensorFlow


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a run of two epochs."""
    path = tmp_path / "home"
    path.mkdir()
    trained_home.train(path)
    return Home(path)


def generated(page: Page, sentence: str, within_ms: int) -> float:
    """Presses Generate and waits for the description; returns the seconds."""
    begin = time.perf_counter()
    page.get_by_role("button", name="Generate", exact=True).click()
    expect(page.get_by_text(re.compile(f"{sentence}.*after step 14"))).to_be_visible(
        timeout=within_ms
    )
    settled(page)
    return time.perf_counter() - begin


def type_seeds(page: Page, text: str) -> None:
    field = page.get_by_label("Seeds", exact=True)
    field.fill(text)
    field.press("Enter")
    settled(page)


def pick(page: Page, seed: str) -> None:
    """Clicks the image of a seed, found by its tooltip, as a user would."""
    for image in sheet_images(page).all():
        image.hover()
        if page.locator("#vg-tooltip-element").inner_text().split() == ["seed", seed]:
            image.click()
            settled(page)
            return
    raise AssertionError(f"no image has seed {seed}")


def show(page: Page, layout: str, field: str) -> None:
    """Chooses a layout and waits for a field unique to it: until then, "Seeds" belongs to the
    previous layout.
    """
    page.get_by_test_id("stButtonGroup").get_by_text(layout, exact=True).click()
    expect(page.get_by_text(field, exact=True)).to_be_visible()
    settled(page)


def downloaded(page: Page, label: str) -> Path:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=label, exact=True).click()
    return Path(waiting.value.path())


def test_generator_process_serves_all_requests_until_dashboard_exits(
    browser: Browser, home: Home, tmp_path: Path, wait_until: Callable[..., object]
) -> None:
    dashboard = Dashboard(home.path, tmp_path / "dashboard.log")
    try:
        page = open_page(browser, f"{dashboard.address}/run?run=run-0001&tab=samples")
        first_s = generated(page, "64 images of run-0001, seeds 0 to 63", FIRST_MS)
        process = JobDir(home.jobs / ".generate").process()
        assert process is not None

        type_seeds(page, "3, 17, 40-47")
        next_s = generated(page, "10 images of run-0001, seeds 3, 17, 40, .*", NEXT_MS)
        print(f"first grid {first_s:.1f} s, next grid {next_s:.2f} s")
        with np.load(downloaded(page, "Arrays")) as arrays:
            seventeenth = arrays["images"][1]

        pick(page, "17")
        expect(page.get_by_text("Picked: seed 17.", exact=True)).to_be_visible()
        between = page.get_by_role("button", name="Show what lies between", exact=True)
        expect(between).to_be_disabled()
        pick(page, "42")
        expect(page.get_by_text("Picked: seeds 17, 42.", exact=True)).to_be_visible()
        between.click()
        expect(page.get_by_text("of run-0001, seeds 17, 42, by its newest")).to_be_visible(
            timeout=NEXT_MS
        )
        expect(page.get_by_label("Seeds", exact=True)).to_have_value("17, 42")

        type_seeds(page, "3, 17")
        generated(page, "8 images from each seed to the next, of run-0001, seeds 3, 17", NEXT_MS)
        with np.load(downloaded(page, "Arrays")) as arrays:
            assert len(arrays["images"]) == LatentPoints((3, 17), "strip").count
            np.testing.assert_allclose(arrays["images"][-1], seventeenth, atol=1e-5)
        with Image.open(downloaded(page, "Film")) as film:
            assert (film.format, film.n_frames) == ("GIF", 14), "there and back"
        with Image.open(downloaded(page, "Image")) as image:
            assert image.format == "PNG"

        show(page, "Plane", "Images per side")
        type_seeds(page, "3, 17, 40")
        generated(page, "A plane of 9 × 9 images, 90° to each side, of run-0001", NEXT_MS)
        with np.load(downloaded(page, "Arrays")) as arrays:
            assert len(arrays["images"]) == 81
        assert JobDir(home.jobs / ".generate").process() == process, "one for all requests"
        assert not Path(f"/proc/{dashboard.process.pid}/maps").read_text().count("tensorflow")
    finally:
        dashboard.kill()
    wait_until(lambda: not lives(process), "it ends with the dashboard", seconds=10)


def lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
