"""The URL of a run's page in a real browser: it keeps run and tab, and Back works."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Browser, Page, expect

from gan_runtime.records.run_folder import RunDir
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.stored_runs import stored


def is_at(page: Page, address: str, run: str, tab: str) -> None:
    """Expects the URL, the name of the run and the open tab."""
    expect(page).to_have_url(re.compile(re.escape(address) + "$"))
    expect(page.get_by_role("heading", level=1)).to_have_text(run)
    expect(page.get_by_role("tab", selected=True)).to_have_text(tab)


def test_url_keeps_run_and_tab_and_back_restores_the_previous_view(
    new_run: Callable[..., RunDir], browser: Browser, dashboard: Dashboard
) -> None:
    for number in (1, 2):
        stored(new_run(f"quick-000{number}", seconds=number), float(number))
    page = open_page(browser, f"{dashboard.address}/run?run=quick-0001")
    is_at(page, "/run?run=quick-0001", "quick-0001", "Overview")
    page.get_by_role("tab", name="Options").click()
    is_at(page, "/run?run=quick-0001&tab=options", "quick-0001", "Options")
    page.get_by_role("combobox", name="Run").click()
    page.get_by_role("option", name="quick-0002").click()
    is_at(page, "/run?run=quick-0002&tab=options", "quick-0002", "Options")
    page.go_back()
    is_at(page, "/run?run=quick-0001&tab=options", "quick-0001", "Options")
    page.go_back()
    is_at(page, "/run?run=quick-0001", "quick-0001", "Overview")
    page.go_forward()
    page.reload()
    settled(page)
    is_at(page, "/run?run=quick-0001&tab=options", "quick-0001", "Options")

    page.get_by_test_id("stSidebarNavLink").filter(has_text="Data").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Data sets")
    page.get_by_test_id("stSidebarNavLink").filter(has_text=re.compile("^.*Run$")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("quick-0001")
    page.close()
