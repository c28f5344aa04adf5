"""Browser notifications: enabled by a click, one per event, however many tabs are open."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import Reason, cause
from gan_runtime.supervision.notifications import MOST_RECENT
from tests.browser.dashboard_process import Dashboard

NewRun = Callable[..., RunDir]
# Records each notification and shows it.
NOTED = """
const Shown = window.Notification
window.noted = []
window.Notification = class extends Shown {
  constructor(title, options) { super(title, options); window.noted.push({ title, ...options }) }
}
"""
WAIT_MS = 20_000


@pytest.fixture
def dashboard(home: Home, tmp_path: Path) -> Iterator[Dashboard]:
    dashboard = Dashboard(home.path, tmp_path / "log")
    yield dashboard
    dashboard.stop()


def ends(run: RunDir) -> None:
    why = cause(Reason.EPOCHS_DONE, epochs=3)
    journal.append(run.trainer_journal(), 1, StatusChange.of("finished", why))


def noted(page: Page) -> list[dict[str, str]]:
    found: list[dict[str, str]] = page.evaluate("window.noted")
    return found


def test_click_enables_notifications_and_each_event_shows_once(
    browser: Browser, dashboard: Dashboard, new_run: NewRun
) -> None:
    ends(new_run("quick-0001"))
    context = browser.new_context()
    context.grant_permissions(["notifications"], origin=dashboard.address)
    context.add_init_script(NOTED)
    pages = [context.new_page(), context.new_page()]
    for page in pages:
        page.goto(dashboard.address)
    button = pages[0].locator(".browser-notices")
    expect(button).to_have_text("Notify me when a run ends", use_inner_text=True, timeout=WAIT_MS)
    button.click()
    expect(button).to_have_text("Notifications are on: turn off", use_inner_text=True)
    ends(new_run("quick-0002", seconds=5))
    for page in pages:
        page.wait_for_function(
            "JSON.parse(localStorage['gan-notices-shown']).length === 2", timeout=WAIT_MS
        )
        page.wait_for_timeout(6_000)
    shown = [notice for page in pages for notice in noted(page)]
    assert {notice["tag"] for notice in shown} == {"quick-0002/1/ended"}
    assert shown[0]["title"] == "quick-0002 finished"
    assert "All 3 epochs done." in shown[0]["body"]
    button.click()
    expect(button).to_have_text("Notify me when a run ends", use_inner_text=True)
    context.close()


def test_deleting_a_run_reports_no_run_that_ended_earlier(
    browser: Browser, dashboard: Dashboard, new_run: NewRun
) -> None:
    runs = [new_run(f"quick-{1 + place:04d}", seconds=place) for place in range(MOST_RECENT + 1)]
    for run in runs:
        ends(run)
    context = browser.new_context()
    context.grant_permissions(["notifications"], origin=dashboard.address)
    context.add_init_script(NOTED)
    page = context.new_page()
    page.goto(dashboard.address)
    button = page.locator(".browser-notices")
    button.click(timeout=WAIT_MS)
    expect(button).to_have_text("Notifications are on: turn off", use_inner_text=True)
    shutil.rmtree(runs[-1].path)
    page.wait_for_timeout(12_000)  # the server's list and the browser's look are 5 seconds apart
    ends(new_run("quick-0099", seconds=99))
    page.wait_for_function("window.noted.length > 0", timeout=WAIT_MS)
    assert [notice["tag"] for notice in noted(page)] == ["quick-0099/1/ended"]
    context.close()


def test_blocked_notifications_are_reported(browser: Browser, dashboard: Dashboard) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script(
        "Object.defineProperty(Notification, 'permission', { get: () => 'denied' })"
    )
    page.goto(dashboard.address)
    button = page.locator(".browser-notices")
    expect(button).to_have_text(
        "This browser blocks notifications", use_inner_text=True, timeout=WAIT_MS
    )
    context.close()
