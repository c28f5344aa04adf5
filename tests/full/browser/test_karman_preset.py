"""KIT's Pix2Pix in a real browser, cut to one epoch of a short flow: pick the preset, watch it
train, and roll it out.

The flow is simulated before: two minutes by default. tests/jobs/test_runs_that_wait_for_data.py
tests runs that wait for a simulation.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from gan_runtime.data import preparations
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.records.home import Home
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.launch_page import fill
from tests.browser.live_page import chart

SLOW_MS = 240_000  # a trainer start and a compiling job, alongside other tests
FLOWS = {"reynolds": "100, 140", "held_out_reynolds": "120", "frames": 112, "discarded": 2_000}


@pytest.mark.timeout(600)
def test_karman_preset_trains_and_rolls_out_with_clicks_alone(
    browser: Browser, dashboard: Dashboard
) -> None:
    preparations.prepare(
        Home(dashboard.home), PreparationRequest("karman_small", "", None, FLOWS), lambda *_: None
    )
    page = open_page(browser, f"{dashboard.address}/launch")
    page.get_by_role("radio", name=re.compile("^Kármán street")).click()
    # Wait until the form is filled: a field that the preset changes is redrawn and loses typed
    # text.
    expect(page.get_by_text("train --preset karman")).to_be_visible()
    settled(page)
    fill(page, "textbox", "Epochs (passes over the data)", "1")
    expect(page.get_by_text("--set epochs=1")).to_be_visible()
    page.get_by_role("button", name="Start run").click()
    expect(page).to_have_url(re.compile(r"/run\?run=karman-\d{4}"))
    run_id = page.url.rpartition("run=")[2]
    expect(page.get_by_text("The only epoch is done")).to_be_visible(timeout=SLOW_MS)
    expect(chart(page, "Generator and discriminator loss")).to_be_visible()

    page.goto(f"{dashboard.address}/run?run={run_id}&tab=evaluation")
    settled(page)
    page.get_by_role("button", name="Run rollout").click(
        timeout=SLOW_MS
    )  # the form has read the flows by then
    page.get_by_role("tab", name="Film").click(timeout=SLOW_MS)
    expect(page.locator(".player canvas")).to_have_count(3, timeout=SLOW_MS)
    slider, position = page.get_by_role("slider", name="Step"), page.locator(".player output")
    slider.press("End")
    expect(position).to_have_text(re.compile(r"^step 100"))
    page.get_by_role("tab", name="Wake").click()
    expect(chart(page, "Spectrum at the probe")).to_be_visible()
