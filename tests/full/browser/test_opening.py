"""Dashboard startup: with another one on the same home, and with a corrupt database file."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from gan_runtime import bundles
from gan_runtime.records.home import Home
from tests.browser.dashboard_process import Dashboard, open_page, settled


def test_second_dashboard_is_view_only_until_the_first_exits(
    browser: Browser, dashboard: Dashboard, tmp_path: Path
) -> None:
    open_page(browser, dashboard.address).close()
    bundles.unpack(sorted(bundles.examples())[0], Home(dashboard.home))
    second = Dashboard(dashboard.home, tmp_path / "second.log")
    try:
        page = open_page(browser, second.address)
        expect(
            page.get_by_text("View only: these pages show all runs and change nothing.")
        ).to_be_visible()
        whose = (
            rf"is in use by process {dashboard.process.pid} on host {re.escape(platform.node())}"
            r" since 20"
        )
        expect(
            page.get_by_test_id("stMainBlockContainer").get_by_text(re.compile(whose))
        ).to_be_visible()
        expect(page.get_by_role("link", name="Open the dashboard that owns it")).to_have_attribute(
            "href", dashboard.address
        )
        expect(page.get_by_text("Last runs")).to_be_visible()
        expect(page.get_by_role("button", name="Start a quick run")).to_be_disabled()
        dashboard.kill()
        page.get_by_role("button", name="Take over the home").click()
        expect(
            page.get_by_text("View only: these pages show all runs and change nothing.")
        ).to_have_count(0)
        settled(page)
        expect(page.get_by_role("button", name="Start a quick run")).to_be_enabled()
        page.close()
    finally:
        second.stop()


def test_corrupt_database_is_reported_in_one_sentence(browser: Browser, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "results.duckdb").write_text("this is no database " * 1000, encoding="utf-8")
    dashboard = Dashboard(home, tmp_path / "dashboard.log")
    try:
        page = open_page(browser, dashboard.address)
        expect(page.get_by_text("rebuilt from the journals of all runs")).to_be_visible()
        expect(page.get_by_text("Traceback")).to_have_count(0)
        page.close()
    finally:
        dashboard.stop()
