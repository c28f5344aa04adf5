"""User images in a real browser: upload, preview, preparation, training by class, live page,
comparison, resuming.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import psutil
from playwright.sync_api import Browser, Page, expect

from gan_runtime.data import loading, uploads
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import AttemptStart, Sample
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.spec import RunSpec, nesting
from tests.browser.dashboard_process import Dashboard, open_page, opened, settled
from tests.browser.launch_page import fill
from tests.browser.live_page import chart
from tests.support.asking import ask
from tests.support.own_pictures import zipped

EACH, BATCH, EPOCHS = 40, 8, 6  # EACH: images per class, of two classes
TRAINED = 2 * EACH - 8  # a tenth is held out
STEPS = TRAINED // BATCH  # per epoch
WATCHED = 2  # epochs before the trainer is killed
SLOW_MS = 240_000  # a trainer start alongside other processes
BY_CLASS = "Scores of {} images, by class"
CARD = "64 × 64 RGB · 2 classes: disks, squares"


def drop(page: Page, name: str, content: bytes) -> None:
    page.get_by_test_id("stFileUploaderDropzone").locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "application/zip", "buffer": content}
    )
    expect(page.get_by_role("button", name="Preview")).to_be_visible()


def take_back(page: Page, name: str) -> None:
    page.get_by_role("button", name=f"Remove {name}").click()
    expect(page.get_by_text("Drop or pick files, then press Preview")).to_be_visible()
    expect(page.get_by_role("button", name="Preview")).to_have_count(
        0
    )  # the previous file's button is gone, too
    settled(page)


def refused(page: Page, home: Home) -> None:
    """Checks that a broken .zip and one that would write elsewhere are refused in a sentence each,
    and nothing is kept.
    """
    drop(page, "broken.zip", b"no zip at all")
    (received,) = (home.jobs / uploads.FOLDER).glob("*/content")
    assert received.read_bytes() == b"no zip at all"  # on disk, not in the dashboard's memory
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("broken.zip is not a zip file, or is damaged")).to_be_visible()
    take_back(page, "broken.zip")
    assert not received.exists()

    drop(page, "out.zip", zipped(1, {"../outside.png": b"x"}))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("is outside of its folder, so it is not read")).to_be_visible()
    take_back(page, "out.zip")


def prepared(page: Page, home: Home) -> None:
    drop(page, "shapes.zip", zipped(EACH))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_test_id("stMetric").filter(has_text="Images")).to_contain_text(str(TRAINED))
    assert not home.data.exists()
    page.get_by_role("button", name="Prepare shapes").click()
    expect(page.get_by_text(f"Data set shapes is ready: {TRAINED} images.")).to_be_visible()
    expect(page.get_by_text(CARD)).to_be_visible()
    assert loading.load("shapes", home).rows == TRAINED


def launched(page: Page) -> str:
    """Trains on the data set from its card, on two simulated cores; returns the run's id.

    Labels are used as is.
    """
    page.get_by_role("button", name="Train on it").first.click()
    expect(page.get_by_role("button", name="Start run")).to_be_visible()
    settled(page)
    expect(page.get_by_text(CARD)).to_be_visible()
    fill(page, "textbox", "Replicas (devices)", "2")
    fill(page, "textbox", "Global batch (images per step)", str(BATCH))
    fill(page, "textbox", "Epochs (passes over the data)", str(EPOCHS))
    page.get_by_text("rates 1e-3 / 1e-3").click()
    fill(page, "textbox", "Width (channels)", "4")
    expect(page.get_by_text("--set dataset=shapes")).to_be_visible()
    page.get_by_role("button", name="Start run").click()
    expect(page).to_have_url(re.compile(r"/run\?run=quick-\d{4}"))
    return page.url.rpartition("run=")[2]


def frozen_trainer(run: RunDir, wait_until: Callable[..., Any]) -> psutil.Process:
    """Suspends the trainer after the first epochs, since a fast machine would finish before the
    kill; returns it.

    An epoch's images are written last, some steps after its scores.
    """

    def count() -> int:
        records = journal.read_all(run.trainer_journal())
        return max((record.epoch for record in records if isinstance(record, Sample)), default=0)

    wait_until(
        lambda: count() >= WATCHED, "the first epochs and their pictures are done", SLOW_MS / 1_000
    )
    identity = run.process()
    assert identity is not None
    trainer = psutil.Process(identity.pid)
    trainer.suspend()
    return trainer


def watched(page: Page, run_id: str) -> None:
    """Expects a row of images for each class, and each class's scores under its name."""
    expect(page.get_by_text(re.compile(rf"After epoch [{WATCHED}-{EPOCHS}],"))).to_be_visible()
    title = f"Generated images, a row for each class of {run_id} after epoch"
    expect(page.get_by_role("img", name=re.compile(title))).to_be_visible()
    for side in ("real", "generated"):
        scores = chart(page, BY_CLASS.format(side))
        expect(scores).to_contain_text("squares")
        expect(scores.locator(".mark-symbol path").first).to_be_visible()


def killed_and_resumed(page: Page, run: RunDir, trainer: psutil.Process) -> None:
    trainer.kill()
    expect(page.get_by_text("The trainer exited unexpectedly")).to_be_visible()
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_text(f"All {EPOCHS} epochs done ·")).to_be_visible(timeout=SLOW_MS)
    records = journal.read_all(run.trainer_journal())
    first, second = [record.resume_step for record in records if isinstance(record, AttemptStart)]
    assert (first, second % STEPS, second >= STEPS) == (
        0,
        0,
        True,
    ), "it went on from the end of an epoch"


def compared(page: Page, dashboard: Dashboard, run: RunDir, other: str) -> None:
    page.goto(f"{dashboard.address}/compare?runs={run.run_id},{other}&tab=samples")
    settled(page)
    expect(page.get_by_role("img", name=re.compile("a row for each class"))).to_have_count(2)
    page.goto(f"{dashboard.address}/compare?runs={run.run_id},{other}&tab=curves")
    settled(page)
    picker = opened(page, "More curves")
    picker.fill("Scores of generated images: disks")
    page.get_by_role("option", name="Scores of generated images: disks", exact=True).click()
    picker.press("Escape")
    curve = page.get_by_test_id("stVegaLiteChart").filter(has=page.locator("canvas"))
    expect(page.get_by_text("Scores of generated images: disks").first).to_be_visible()
    expect(curve).to_have_count(3)  # two losses and a class
    page.goto(f"{dashboard.address}/compare?runs={run.run_id},{other}")
    expect(page.get_by_text("What differs")).to_be_visible()
    expect(curve).to_have_count(2)  # a result and the options


def test_own_images_are_uploaded_trained_resumed_and_compared(
    browser: Browser, dashboard: Dashboard, host: Host, wait_until: Callable[..., Any]
) -> None:
    home = Home(dashboard.home)
    page = open_page(browser, f"{dashboard.address}/data")
    refused(page, home)
    prepared(page, home)
    run = home.run_dir(launched(page))
    trainer = frozen_trainer(run, wait_until)
    watched(page, run.run_id)
    killed_and_resumed(page, run, trainer)

    alone = nesting.overlaid(run.spec().model_dump(), {"replicas": 1, "epochs": 2})
    other = ask(home, host).submit(RunSpec.parse(alone)).run_id
    wait_until(
        lambda: latest_status(home.run_dir(other)).status == "finished",
        "the other run ends",
        SLOW_MS / 1_000,
    )
    compared(page, dashboard, run, other)

    page.goto(f"{dashboard.address}/data")
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_role("button", name="Remove for good").click()
    expect(page.get_by_text(CARD)).to_have_count(0)
    assert not (home.data / "shapes").exists()
    page.close()
