"""The page of a run shows its quality by itself, once a job has measured the last epoch."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from dashboard.run.overview import BEING_MEASURED
from gan_runtime.evaluation.training_requests import SWITCH
from tests.browser.dashboard_process import Dashboard, open_page
from tests.browser.launch_page import launch

EPOCHS = 5  # the usual cadence of measuring
MEASURED_MS = 240_000  # a classifier is trained first


def test_quality_appears_after_the_end_of_training(browser: Browser, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    dashboard = Dashboard(home, tmp_path / "dashboard.log", **{SWITCH: "on"})
    try:
        page = open_page(browser, dashboard.address)
        launch(page, dashboard.address, EPOCHS, replicas=1, workload="Fully connected GAN")
        expect(page.get_by_text(BEING_MEASURED)).to_be_visible(timeout=120_000)
        expect(page.get_by_text("quality is not measured yet")).to_be_visible()
        charts = page.get_by_test_id("stVegaLiteChart")
        quality = charts.filter(has_text="How good is what it generates?")
        expect(quality).to_be_visible(timeout=MEASURED_MS)
        expect(page.get_by_text("quality is not measured yet")).to_have_count(0)
    finally:
        dashboard.kill()
