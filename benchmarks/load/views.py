"""How long the first view of a page takes on a home of many runs, what it weighs, and the start of the process.

A view is a new window of one browser on the page's address, until the page's script has ended and nothing more is to be drawn: charts and pictures of the page are there.
The browser is Chromium with a profile on disk, as a person has it: it has seen the dashboard's own script and style before, and keeps them and what it has compiled of them. Payload: what the WebSocket and the pictures weigh.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from playwright.sync_api import BrowserContext, sync_playwright

from benchmarks import dashboard, pages
from benchmarks.load import client, stage
from benchmarks.load.figures import PAGES, Figure, p95
from benchmarks.load.scale import Scale
from gan_runtime.home import Home

DRAWN = """() => document.querySelector('[data-testid="stApp"][data-test-script-state="notRunning"]') !== null
    && document.querySelector('h1') !== null && document.querySelector('[data-testid="stSkeleton"]') === null
    && [...document.querySelectorAll('[data-testid="stVegaLiteChart"]')].every(chart => chart.querySelector('canvas, svg'))
    && [...document.images].every(image => image.complete)"""
PATIENCE_MS = 60_000.0


def measure(home: Home, scale: Scale) -> Iterator[Figure]:
    """First views, one page after the other in turns, so that what drifts reaches all of them."""
    addresses = {page: pages.visits(scale.runs)[page] for page in PAGES}
    # Playwright's own loop runs in this thread.
    with chromium() as context, ThreadPoolExecutor(1) as aside:
        begin = time.perf_counter()
        with stage.served(home) as (process, address):
            first = _seconds_of_view(context, address)
            yield Figure("start_s", time.perf_counter() - begin, {"view_s": round(first, 3)})
            stage.wait_until_quiet(process)
            seconds: dict[str, list[float]] = {page: [] for page in PAGES}
            for _ in range(scale.visits):
                for page, query in addresses.items():
                    words = "&".join(f"{name}={value}" for name, value in query.items())
                    where = f"{address}/{'' if page == 'home' else page}?{words}"
                    seconds[page].append(_seconds_of_view(context, where))
            for page in PAGES:
                told = {
                    "views": len(seconds[page]),
                    "median_s": round(sorted(seconds[page])[len(seconds[page]) // 2], 3),
                }
                yield Figure(
                    f"first_view_{page}_s",
                    p95(seconds[page]),
                    {**told, "first_s": round(seconds[page][0], 3)},
                )
            for page, query in addresses.items():
                words = "&".join(f"{name}={value}" for name, value in query.items())
                yield aside.submit(asyncio.run, _payload(address, page, words)).result()


@contextmanager
def chromium() -> Iterator[BrowserContext]:
    """The system's browser, or Playwright's own, with a new profile."""
    path = next(filter(None, map(shutil.which, dashboard.CHROMIUM)), None)
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield context
        context.close()


def _seconds_of_view(context: BrowserContext, where: str) -> float:
    page = context.new_page()
    begin = time.perf_counter()
    page.goto(where)
    page.wait_for_function(DRAWN, timeout=PATIENCE_MS)
    seconds = time.perf_counter() - begin
    dashboard.wait_until_drawn(page)
    page.close()
    return seconds


async def _payload(address: str, page: str, query: str) -> Figure:
    async with client.opened(address) as session:
        visit = await session.visit("" if page == "home" else page, query)
    media = sum(len(urllib.request.urlopen(address + name).read()) for name in visit.media)
    told = {
        "messages": visit.messages,
        "pictures_mb": round(media / 1e6, 3),
        "server_s": round(visit.seconds, 3),
    }
    return Figure(f"payload_{page}_mb", (visit.payload + media) / 1e6, told)
