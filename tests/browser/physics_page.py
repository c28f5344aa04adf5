"""The evaluation page of showers as a user sees it, with stored measurements; part of the visit to
every page.
"""

from __future__ import annotations

import numpy as np
from playwright.sync_api import Page, expect

from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from tests.browser.dashboard_process import opened, settled
from tests.support.measured_showers import measured

CHARTS = 6 + 3 + 4  # first curves, curves of the judging network, two maps of two series


def with_measured_epochs(run: RunDir) -> RunDir:
    """The run after two epochs, whose weights are stored and measured."""
    done = journal.StatusChange(status="finished", reason="done")
    journal.append(
        run.trainer_journal(),
        1,
        journal.AttemptPlan(images=640, steps_per_epoch=10, epochs=2),
        done,
    )
    weights = {"net/weight": np.zeros(3, np.float32)}
    checkpoints.save(run.checkpoints, weights, 20, wall_s=1.0, retained=1)
    for epoch in (1, 2):
        checkpoints.save_snapshot(run.snapshots, weights, epoch)
    measured(run, 1, 2)
    return run


def visit_showers(page: Page, address: str, run: RunDir) -> None:
    """Each tab is drawn when opened and follows epoch and energy; another epoch becomes the best
    checkpoint.
    """
    page.goto(f"{address}/run?run={run.run_id}&tab=evaluation")
    settled(page)
    expect(page.get_by_text("epoch 2: 150 generated showers")).to_be_visible()
    charts = page.get_by_test_id("stVegaLiteChart").filter(visible=True).locator("svg, canvas")
    expect(charts).to_have_count(1)
    page.get_by_role("slider").first.press("Home")
    expect(page.get_by_text("epoch 1: 150 generated showers")).to_be_visible()
    page.get_by_role("tab", name="Distributions").click()
    expect(charts).to_have_count(CHARTS)
    opened(page, "Energy")
    page.get_by_role("option").nth(1).click()
    settled(page)
    expect(charts).to_have_count(CHARTS)
    page.get_by_role("tab", name="Showers").click()
    expect(page.get_by_test_id("stPlotlyChart").locator("canvas").first).to_be_attached()
    expect(charts).to_have_count(6)
    page.get_by_role("tab", name="Epochs").click()
    expect(charts).to_have_count(3)
    page.get_by_role("button", name="Keep epoch 2 as the best").click()
    expect(
        page.get_by_text(f"The best checkpoint of {run.run_id} is now that of epoch 2.")
    ).to_be_visible()
    assert checkpoints.load(run.checkpoints, "best").step == 20
