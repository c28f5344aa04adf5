"""The speed and memory of the dashboard, measured in Chromium on an empty home.

first_page_s       from the start of the process until Home is drawn, in an open browser
first_point_s      from the click on "Start a quick run" until Live draws the loss chart
next_point_s       the same for a later run, started READING_S after Launch is drawn
memory_mb          resident memory of the Streamlit process after a visit of every page with one
                   stored run, 10⁶ bytes
import_s           all imports of the dashboard in a fresh interpreter; median of three
frameworks_loaded  which of tensorflow, keras, jax these imports load; must be none

python -m benchmarks.dashboard        prints one JSON line
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from typing import Any

import psutil
from playwright.sync_api import Locator, Page, expect, sync_playwright

from benchmarks.trial import trial_home
from gan_runtime.records.home import HOME_VARIABLE, REPOSITORY, Home

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
START_SECONDS = 60.0
# TensorFlow is loaded before the first step; with a GPU or TPU twice, to check the host too.
TRAIN_MS = 180_000.0
READING_S = 10.0  # a user reads the form meanwhile, and a trainer loads TensorFlow
IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'
# Streamlit runs navigation.py and the pages as scripts; the other modules cover their imports.
MODULES = sorted(
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    for path in (REPOSITORY / "dashboard").rglob("*.py")
    if path.stem not in ("navigation", "__init__")
)
IMPORT_ALL = """
import json, sys, time
begin = time.perf_counter()
for name in sys.argv[1:]:
    __import__(name)
seconds = time.perf_counter() - begin
print(json.dumps([seconds, [name for name in ("tensorflow", "keras", "jax") if name in sys.modules]]))
"""  # noqa: E501


def measure() -> dict[str, Any]:
    """Measures the first visit of a new user, and the imports."""
    system_chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    with trial_home() as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=system_chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        begin = time.perf_counter()
        server, address = serve(home)
        page.goto(address)
        start = page.get_by_role("button", name="Start a quick run")
        start.wait_for(timeout=START_SECONDS * 1000)
        wait_until_drawn(page)
        first_page_s = time.perf_counter() - begin

        first_point_s = first_point(page, start)
        # After the first epoch every page has an image.
        page.get_by_test_id("stImage").first.wait_for(timeout=TRAIN_MS)
        stop(page)
        page.goto(f"{address}/launch")
        wait_until_drawn(page)
        time.sleep(READING_S)
        next_point_s = first_point(page, page.get_by_role("button", name="Start run"))
        stop(page)
        pages = visit_every_page(page)
        memory_mb = psutil.Process(server.pid).memory_info().rss / 1e6
        chromium_version = browser.version
        browser.close()
    import_s, frameworks_loaded = imports()
    return {
        "first_page_s": round(first_page_s, 2),
        "first_point_s": round(first_point_s, 2),
        "next_point_s": round(next_point_s, 2),
        "memory_mb": round(memory_mb),
        "pages_visited": pages,
        "import_s": round(import_s, 2),
        "frameworks_loaded": frameworks_loaded,
        "chromium": chromium_version,
    }


def first_point(page: Page, start: Locator) -> float:
    """Seconds from the click on `start` until the run's loss chart is drawn."""
    begin = time.perf_counter()
    start.click()
    page.locator("[data-testid=stVegaLiteChart] :is(canvas, svg)").first.wait_for(timeout=TRAIN_MS)
    return time.perf_counter() - begin


def stop(page: Page) -> None:
    """Stops the run of the page and waits for its end."""
    page.get_by_role("button", name="Stop and save").click()
    page.get_by_role("button", name="Resume").wait_for(timeout=TRAIN_MS)


def serve(home: Home, script: str = "app.py") -> tuple[subprocess.Popen[bytes], str]:
    """Starts the dashboard, or another Streamlit script, on a free port. Returns its process and
    address once it responds.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)]
    environment = {**os.environ, HOME_VARIABLE: str(home.path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as users start it: compiled once
    server = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=sys.stderr)
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=1.0).close()
            return server, address
        except OSError:
            time.sleep(0.02)
    sys.exit(
        f"the dashboard did not answer on {address} within {START_SECONDS:.0f} s (exit code"
        f" {server.poll()})."
    )


def wait_until_drawn(page: Page) -> None:
    """Waits for the end of the page's script; exits if the page shows an exception."""
    page.locator(IDLE).wait_for()
    if page.get_by_test_id("stException").count():
        sys.exit(f"{page.url} shows an exception: its traceback is in the output of the dashboard.")


def visit_every_page(page: Page) -> list[str]:
    """Follows each link of the navigation; returns the titles of the pages, which all differ."""
    titles, title = [], page.locator("h1").first
    for link in page.get_by_test_id("stSidebarNavLink").all():
        before = title.inner_text()
        link.click()
        expect(title).not_to_have_text(before, timeout=TRAIN_MS)
        wait_until_drawn(page)
        titles.append(title.inner_text())
    return titles


def imports() -> tuple[float, list[str]]:
    """Median seconds of the dashboard's imports, and the frameworks that they load."""
    command = [
        sys.executable,
        "-c",
        IMPORT_ALL,
        "streamlit.web.cli",
        "gan_runtime.commands.runtime",
        *MODULES,
    ]
    answers = [
        json.loads(
            subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, check=True).stdout
        )
        for _ in range(3)
    ]
    return statistics.median(seconds for seconds, _ in answers), answers[0][1]


if __name__ == "__main__":
    print(json.dumps(measure()))
