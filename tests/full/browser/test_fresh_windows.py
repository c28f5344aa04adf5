"""Fresh windows of a slow browser: each shows what its address says, and a click acts on that.

Busy processes would slow all other tests down, so the browser's processor is throttled instead. On
an idle machine `FRESH_WINDOWS=40 pytest …` opens 40 windows of each page next to busy processes,
each in a session of its own: Linux shares the processor by session.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard import option_words
from gan_runtime.records.home import Home
from gan_runtime.spec.presets import PRESETS
from tests.browser.dashboard_process import Dashboard, settled
from tests.browser.stored_runs import queued, stored

ASKED_FOR = int(os.environ.get("FRESH_WINDOWS", "0"))
WINDOWS, AT_ONCE = ASKED_FOR or 2, 4 if ASKED_FOR else 1
THROTTLING = 1 if ASKED_FOR else 4  # times slower
BUSY_PROCESSES = 6 if ASKED_FOR else 0
RUNS = 5
FIRST, OTHER = "quick-0001", "quick-0003"  # neither is the newest, which a page shows by itself
pytestmark = pytest.mark.timeout(900 + 60 * ASKED_FOR)
PRESET = next(iter(PRESETS.values()))
WORKLOAD = option_words.choice(PRESET.values["workload"])


@contextmanager
def busy_machine() -> Iterator[None]:
    """Runs with BUSY_PROCESSES."""
    with ExitStack() as until_the_end:
        for _ in range(BUSY_PROCESSES):
            process = subprocess.Popen(
                [sys.executable, "-c", "while True: pass"], start_new_session=True
            )
            until_the_end.callback(process.wait)
            until_the_end.callback(process.kill)
        yield


@pytest.fixture(scope="module")
def of_five_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard on a home with five runs, on a busy machine."""
    folder = tmp_path_factory.mktemp("five")
    for number in range(RUNS):
        stored(queued(Home(folder / "home")), 0.5 + number)
    started = Dashboard(folder / "home", folder / "dashboard.log")
    with busy_machine():
        yield started
    started.stop()


def opened(
    browser: Browser, dashboard: Dashboard, addresses: list[str], check: Callable[[Page], None]
) -> None:
    """Opens each address in a window of its own, a few at once, and checks the page in it.

    An address `a > b` opens page a and then the link b of its navigation.
    """
    faults = []
    for begin in range(0, len(addresses), AT_ONCE):
        pages = []
        for address in addresses[begin : begin + AT_ONCE]:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            processor = page.context.new_cdp_session(page)
            processor.send("Emulation.setCPUThrottlingRate", {"rate": THROTTLING})
            page.goto(f"{dashboard.address}/{address.partition(' > ')[0]}", wait_until="commit")
            pages.append((address, page))
        for address, page in pages:
            if link := address.partition(" > ")[2]:
                page.get_by_test_id("stSidebarNav").get_by_role("link", name=link).click()
        for address, page in pages:
            try:
                check(page)
            except AssertionError as error:
                faults.append(f"{address}: {error}")
            page.close()
    assert not faults, f"{len(faults)} of {len(addresses)} windows: {faults}"


def assert_no_error(page: Page) -> None:
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_launch_shows_its_preset_in_each_window(browser: Browser, of_five_runs: Dashboard) -> None:
    def check(page: Page) -> None:
        expect(page.get_by_role("heading", name="More options")).to_be_visible()
        settled(page)
        assert_form(page)
        page.get_by_role("button", name="CPU").click()
        expect(page.get_by_text("--set accelerator=cpu")).to_be_visible()
        settled(page)
        assert_form(page)

    def assert_form(page: Page) -> None:
        assert_no_error(page)
        chosen = page.get_by_role("radio", checked=True)
        expect(chosen).to_have_text([PRESET.title])
        workload = page.get_by_role("combobox", name="Workload")
        expect(workload).to_have_value(WORKLOAD)

    half = WINDOWS // 2
    opened(browser, of_five_runs, ["launch"] * half + [" > Launch"] * half, check)


def test_a_run_page_and_its_selector_show_one_run_in_each_window(
    browser: Browser, of_five_runs: Dashboard
) -> None:
    def check(page: Page) -> None:
        expect(page.get_by_role("heading", name=FIRST)).to_be_visible()
        settled(page)
        expect(page.get_by_role("combobox", name="Run", exact=True)).to_have_value(FIRST)
        page.get_by_role("tab", name="Options").click()
        expect(page).to_have_url(f"{of_five_runs.address}/run?run={FIRST}&tab=options")
        settled(page)
        expect(page.get_by_role("heading", name=FIRST)).to_be_visible()
        expect(page.get_by_role("combobox", name="Run", exact=True)).to_have_value(FIRST)
        assert_no_error(page)

    opened(browser, of_five_runs, [f"run?run={FIRST}"] * WINDOWS, check)


def test_compare_shows_the_runs_of_its_address_in_each_window(
    browser: Browser, of_five_runs: Dashboard
) -> None:
    def check(page: Page) -> None:
        runs = page.get_by_role("combobox", name="Runs", exact=True)
        picker = page.get_by_test_id("stMultiSelect").filter(has=runs)
        tags = picker.locator(".react-aria-ComboBox [data-tag]")
        expect(page.get_by_role("tab", name="Curves")).to_be_visible()
        settled(page)
        expect(tags).to_have_text([FIRST, OTHER])
        page.get_by_role("tab", name="Curves").click()
        expect(page).to_have_url(re.compile(rf"/compare\?runs={FIRST}(,|%2C){OTHER}&tab=curves$"))
        settled(page)
        expect(tags).to_have_text([FIRST, OTHER])
        assert_no_error(page)

    opened(browser, of_five_runs, [f"compare?runs={FIRST},{OTHER}"] * WINDOWS, check)
