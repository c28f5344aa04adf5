"""A page whose code fails, in a real browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from dashboard.frame import page_errors
from tests.browser.dashboard_process import Dashboard, open_page
from tests.support.guide import copy_project


def test_failing_page_shows_one_sentence_and_logs_the_traceback(
    browser: Browser, tmp_path: Path
) -> None:
    project = copy_project(
        tmp_path / "copy", "app.py", ".streamlit", "dashboard", "gan_runtime", "pages"
    )
    with (project / "pages" / "studies.py").open("a", encoding="utf-8") as page_file:
        page_file.write("\n{}['no such preset']\n")
    dashboard = Dashboard(tmp_path / "home", tmp_path / "dashboard.log", project=project)
    try:
        page = open_page(browser, f"{dashboard.address}/studies")
        expect(page.get_by_text(page_errors.SENTENCE)).to_be_visible()
        expect(page.get_by_role("heading", name="Studies").first).to_be_visible()
        expect(page.get_by_test_id("stException")).to_have_count(0)
        expect(page.get_by_text("no such preset")).to_have_count(0)
        assert "no such preset" in dashboard.printed()
        page.close()
    finally:
        dashboard.stop()
