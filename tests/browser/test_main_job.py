"""The main workflow in a real browser with real training: launch, watch, stop, resume and compare a
run. More tests are in tests/full/browser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, Page, expect

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.launch_page import choose, fill, start
from tests.browser.live_page import chart, losses, step
from tests.browser.stored_runs import STEPS, queued, stored
from tests.support.small_pictures import write_grid

ENDLESS = "10000"  # epochs: the run ends only when stopped
REFUSAL = "Global batch (batch_size_global) is 32, but 3 replicas need"


def earlier_run(home: Home) -> RunDir:
    """A finished run of one epoch, with its image."""
    run = queued(home)
    stored(run, 1.0)
    write_grid(run.samples / "epoch-00001.png")
    sample = journal.Sample(
        epoch=1, step=STEPS, sample_kind="fixed_latents", file="samples/epoch-00001.png", meta={}
    )
    journal.append(run.trainer_journal(), 1, sample)
    return run


def filled_in(page: Page) -> None:
    """Fills in two replicas of the smallest network, without an end.

    An invalid option is reported at its field and prevents the start.
    """
    choose(page, "Workload", "Fully connected GAN")
    fill(page, "textbox", "Replicas (devices)", "3")
    expect(page.get_by_text(REFUSAL)).to_have_count(2)  # below its field, and next to the form
    expect(page.get_by_role("button", name="Start run")).to_be_disabled()
    fill(page, "textbox", "Replicas (devices)", "2")
    expect(page.get_by_role("button", name="Start run")).to_be_enabled()
    fill(page, "textbox", "Epochs (passes over the data)", ENDLESS)
    expect(page.get_by_text(f"--set epochs={ENDLESS}")).to_be_visible()


def watched(page: Page, wait_until: Callable[..., Any]) -> None:
    """Curves, epochs, health and images appear and update, without a new chart."""
    expect(page.get_by_text("running", exact=False).first).to_be_visible()
    expect(losses(page)).to_be_visible()
    drawing = losses(page).locator("svg").first.element_handle()
    before = step(page)
    expect(page.get_by_text("Generated images").first).to_be_visible()
    expect(
        chart(page, "How long does an epoch take?").locator(".mark-rect path").first
    ).to_be_visible()
    expect(
        chart(page, "How large is one update?").locator(".mark-symbol path").first
    ).to_be_visible()
    wait_until(lambda: step(page) > before + 8, "the step moves on")
    assert drawing.evaluate("node => node.isConnected"), (
        "the loss chart was made anew: it flickers and loses its zoom"
    )


def stopped(page: Page, run: RunDir) -> int:
    """Presses Stop; returns the step at which the run was saved."""
    page.get_by_role("button", name="Stop and save").click()
    expect(page.get_by_text("saved, can be resumed")).to_be_visible()
    assert list(run.checkpoints.glob("*.safetensors"))
    return step(page)


def test_a_run_is_launched_watched_stopped_resumed_and_compared(
    browser: Browser, dashboard: Dashboard, wait_until: Callable[..., Any]
) -> None:
    home = Home(dashboard.home)
    earlier = earlier_run(home)
    page = open_page(browser, dashboard.address)
    expect(page.get_by_role("button", name="Start a quick run")).to_be_visible()
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Launch").click()
    settled(page)
    filled_in(page)
    run = home.run_dir(start(page))
    watched(page, wait_until)

    saved = stopped(page, run)
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_role("button", name="Stop and save")).to_be_visible()
    wait_until(lambda: step(page) > saved, "the resumed run goes on from where it was saved")
    stopped(page, run)
    records = journal.read_all(run.trainer_journal())
    starts = [record.resume_step for record in records if isinstance(record, journal.AttemptStart)]
    assert starts == [0, saved]

    page.goto(f"{dashboard.address}/compare?runs={earlier.run_id},{run.run_id}")
    settled(page)
    canvases = page.get_by_test_id("stVegaLiteChart").locator("canvas")
    expect(canvases).to_have_count(2)  # a result, the options
    expect(page.get_by_text("What differs")).to_be_visible()
    page.get_by_role("tab", name="Curves").click()
    expect(canvases).to_have_count(2)  # two losses
    page.get_by_role("tab", name="Samples").click()
    expect(page.get_by_role("img", name=re.compile("^Generated images of"))).to_have_count(2)
    page.close()
