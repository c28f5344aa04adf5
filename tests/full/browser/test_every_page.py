"""Every page in a real browser with third-party runs in the home: requests, refusals and ticks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from tests.browser import connections, flow_page, network_log
from tests.browser.dashboard_process import Dashboard, open_page, settled
from tests.browser.physics_page import visit_showers, with_measured_epochs
from tests.browser.runs_page import tick
from tests.browser.stored_runs import stored
from tests.pages.hostile import TEXTS
from tests.support.measured_showers import measured


def foreign_requests(page: Page, address: str) -> list[str]:
    """Returns a list that collects requests to hosts other than the dashboard, including those
    blocked by the content policy.
    """
    foreign: list[str] = []
    local = (address, address.replace("http", "ws"), "data:", "blob:")
    page.on(
        "request",
        lambda request: None if request.url.startswith(local) else foreign.append(request.url),
    )
    page.on(
        "websocket",
        lambda socket: None if socket.url.startswith(local) else foreign.append(socket.url),
    )
    page.on(
        "console",
        lambda message: (
            foreign.append(message.text) if "Content Security Policy" in message.text else None
        ),
    )
    return foreign


def visited(page: Page, go: Callable[[], object]) -> None:
    """Opens a page and checks that it is complete and contains only text."""
    go()
    settled(page)
    expect(page.locator("h1").first).to_be_visible()
    assert page.locator("img[src*=evil], a[href*=evil], script[src*=evil]").count() == 0
    assert page.get_by_test_id("stException").count() == 0


def test_no_page_requests_another_host_whatever_the_run_names(
    new_run: Callable[..., RunDir], browser: Browser, dashboard: Dashboard, tmp_path: Path
) -> None:
    for number, text in enumerate(TEXTS, start=1):
        run = new_run(f"quick-{number:04d}", seconds=number)
        stored(run, float(number))
        journal.append(run.supervisor_journal, 1, journal.Renamed(name=text))
    measured(RunDir(run.path), 2)
    showers = with_measured_epochs(
        new_run("showers-0001", workload="shower_3dgan", dataset="showers")
    )
    flow = flow_page.with_an_iteration(
        new_run("flow-0001", workload="shower_3dgan", dataset="showers")
    )
    with network_log.watched(browser, tmp_path / "network.json") as watched:
        page = watched.new_page(viewport={"width": 1280, "height": 800})
        foreign = foreign_requests(page, dashboard.address)
        visited(page, lambda: page.goto(dashboard.address))
        assert page.get_by_test_id("stSidebarNavLink").count() == 6
        for link in page.get_by_test_id("stSidebarNavLink").all():
            visited(page, link.click)
        visited(page, lambda: page.goto(f"{dashboard.address}/compare?runs=quick-0001,quick-0005"))
        for tab in ("overview", "samples", "histograms", "log", "options"):
            visited(page, partial(page.goto, f"{dashboard.address}/run?run=quick-0005&tab={tab}"))
        for place in (
            "launch?tab=study",
            "launch?tab=paper",
            "studies?tab=xla",
            "studies?tab=paper",
            "tpu",
        ):
            visited(page, partial(page.goto, f"{dashboard.address}/{place}"))
        visit_showers(page, dashboard.address, showers)
        flow_page.played(page, dashboard.address, flow)
        assert page.get_by_test_id("stException").count() == 0
    assert (
        foreign == network_log.foreign_requests(tmp_path / "network.json", dashboard.address) == []
    )
    assert connections.of_others(dashboard.connections) == []

    # An invalid field starts nothing.
    page = open_page(browser, f"{dashboard.address}/launch")
    expect(page.get_by_role("button", name="Start run")).to_be_enabled()
    page.get_by_role("textbox", name="Global batch (images per step)").fill("99999")
    page.get_by_role("textbox", name="Epochs (passes over the data)").fill("100000000")
    page.get_by_role("textbox", name="Epochs (passes over the data)").press("Enter")
    expect(page.get_by_role("button", name="Start run")).to_be_disabled()
    expect(page.get_by_text("a whole number from 1 to").first).to_be_visible()

    # A tick stays with its run: here the second row, which a search moves to the top.
    page.goto(f"{dashboard.address}/runs")
    settled(page)
    tick(page, 2)
    expect(page.get_by_role("button", name="Delete")).to_be_visible()
    second = f"quick-{len(TEXTS) - 1:04d}"
    search = page.get_by_role("textbox", name="Search")
    search.fill(second)
    search.press("Enter")
    settled(page)
    page.get_by_role("button", name="Delete").click()
    deletion = page.get_by_role("dialog", name="Move to the trash?")
    expect(deletion.get_by_text("removed from all lists")).to_contain_text(
        TEXTS[-2]
    )  # as the table shows it, not as Markdown
    page.close()
