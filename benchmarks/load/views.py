"""Time and payload of the first view of a page on the large home, and the start of the process.

A view opens the page's address in a new window of one browser. The first screen is drawn when the
page's script has ended, its title is there, no placeholder is left, and every chart, table and
image within 1280 × 720 is drawn; `whole_page_median_s` is the time until the rest is, too. The
browser is Chromium with a profile on disk, like a user's: its cache has Streamlit's scripts, also
compiled. Payload: the size of the page's WebSocket messages and images. A one-line Streamlit page
takes turns with our pages; targets are multiples of its time. The start is the median of several.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import BrowserContext, ViewportSize, sync_playwright

from benchmarks import dashboard, pages
from benchmarks.load import client, stage
from benchmarks.load.figures import PAGES, Figure, p95
from benchmarks.load.scale import Scale
from gan_runtime.records.home import Home

RENDERED = """whole => {
    const app = document.querySelector('[data-testid="stApp"][data-test-script-state="notRunning"]');
    if (!app || !document.querySelector('h1') || document.querySelector('[data-testid="stSkeleton"]')) return false;
    const counts = part => {
        const box = part.getBoundingClientRect();
        return whole || (box.top < innerHeight && box.bottom > 0);
    };
    const parts = document.querySelectorAll('[data-testid="stVegaLiteChart"], [data-testid="stDataFrame"]');
    return [...parts].filter(counts).every(part => part.querySelector('canvas, svg'))
        && [...document.images].filter(counts).every(image => image.complete);
}"""  # noqa: E501
WINDOW = ViewportSize(width=1280, height=720)
TIMEOUT_MS = 60_000.0
BARE_PAGE = "benchmarks/load/bare_page.py"


@dataclass(frozen=True)
class View:
    """Seconds from the request to the first screen, and to the whole page."""

    first_screen: float
    whole_page: float


def measure(home: Home, scale: Scale) -> Iterator[Figure]:
    """First views; the pages take turns, so that drift of the machine affects all of them."""
    queries = {
        page: "&".join(f"{name}={value}" for name, value in pages.visits(scale.runs)[page].items())
        for page in PAGES
    }
    # Playwright's event loop runs in this thread, so asyncio needs another one.
    with chromium() as context, ThreadPoolExecutor(1) as executor:
        yield _start(context, home, scale.starts)
        with (
            stage.served(home) as (process, address),
            stage.served(home, BARE_PAGE) as (_, bare_address),
        ):
            view_times(context, address)
            stage.wait_until_idle(process)
            addresses = {
                page: f"{address}/{path_of(page)}?{query}" for page, query in queries.items()
            }
            addresses["bare"] = bare_address
            views: dict[str, list[View]] = {page: [] for page in addresses}
            for _ in range(scale.visits):
                for page, page_address in addresses.items():
                    views[page].append(view_times(context, page_address))
            bare_s = statistics.median_high(view.first_screen for view in views.pop("bare"))
            yield Figure("first_view_bare_s", bare_s, {"views": scale.visits})
            for page in views:
                yield _figure(page, views[page], bare_s)
            for page, query in queries.items():
                yield executor.submit(asyncio.run, _payload(address, page, query)).result()


def _start(context: BrowserContext, home: Home, starts: int) -> Figure:
    """The median start: other processes delay some, and the first one reads files from disk."""
    starts_s, views = list[float](), list[float]()
    for _ in range(starts):
        begin = time.perf_counter()
        with stage.served(home) as (_, address):
            ready_s = time.perf_counter() - begin
            starts_s.append(view_times(context, address, begin).first_screen)
            views.append(starts_s[-1] - ready_s)
    facts = {
        "tries": [round(seconds, 3) for seconds in starts_s],
        "view_median_s": round(statistics.median(views), 3),
    }
    return Figure("start_s", statistics.median(starts_s), facts)


def path_of(page: str) -> str:
    """The path of a page in an address."""
    return "" if page == "home" else pages.page_of(page)


def _figure(page: str, views: list[View], bare_s: float) -> Figure:
    """The median first screen over that of the one-line page."""
    seconds = [view.first_screen for view in views]
    facts = {
        "views": len(views),
        "median_s": round(statistics.median_high(seconds), 3),
        "p95_s": round(p95(seconds), 3),
        "first_s": round(seconds[0], 3),
        "whole_page_median_s": round(statistics.median_high(view.whole_page for view in views), 3),
    }
    return Figure(f"first_view_{page}", statistics.median_high(seconds) / bare_s, facts)


@contextmanager
def chromium() -> Iterator[BrowserContext]:
    """The system's browser, or Playwright's, with a new profile."""
    path = next(filter(None, map(shutil.which, dashboard.CHROMIUM)), None)
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=path, args=["--no-sandbox", "--disable-gpu"], viewport=WINDOW
        )
        yield context
        context.close()


def view_times(context: BrowserContext, address: str, begin: float | None = None) -> View:
    """Times of a view in a new window, from `begin` (of `time.perf_counter`) or the request."""
    page = context.new_page()
    begin = time.perf_counter() if begin is None else begin
    page.goto(address)
    page.wait_for_function(RENDERED, arg=False, timeout=TIMEOUT_MS)
    first_screen_s = time.perf_counter() - begin
    page.wait_for_function(RENDERED, arg=True, timeout=TIMEOUT_MS)
    whole_page_s = time.perf_counter() - begin
    dashboard.wait_until_drawn(page)
    page.close()
    return View(first_screen_s, whole_page_s)


async def _payload(address: str, page: str, query: str) -> Figure:
    async with client.open_session(address) as session:
        visit = await session.visit(path_of(page), query)
    media = sum(len(urllib.request.urlopen(address + name).read()) for name in visit.media)
    facts = {
        "messages": visit.messages,
        "pictures_mb": round(media / 1e6, 3),
        "server_s": round(visit.seconds, 3),
    }
    return Figure(f"payload_{page}_mb", (visit.payload + media) / 1e6, facts)
