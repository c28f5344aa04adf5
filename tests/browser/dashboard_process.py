"""A real dashboard in a separate process, and a real Chromium that opens it.

For tests and screenshots.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserType, Locator, Page, expect, sync_playwright

from gan_runtime.records.home import HOME_VARIABLE, REPOSITORY
from tests.browser import connections
from tests.support import local_server

START_SECONDS = 60.0
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Dashboard:
    """`streamlit run app.py` on a free port of this machine, for one home.

    `words` and `environment` are further options of Streamlit; `program` is another module that
    accepts Streamlit's arguments; `project` is a folder with another copy of the project.
    """

    def __init__(
        self,
        home: Path,
        log: Path,
        *words: str,
        port: int | None = None,
        program: str = "streamlit",
        project: Path = REPOSITORY,
        **environment: str,
    ) -> None:
        self.home, self._log, self.connections = home, log, log.with_suffix(".connections")
        self._program, self._words, self._environment = program, words, environment
        self._project = project
        self.port = port or local_server.free_port()
        self.process = self._start()

    @property
    def address(self) -> str:
        """The URL, such as http://127.0.0.1:40123."""
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """Sends SIGKILL, so that the process cannot clean up."""
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        """Starts a new process on the same home and address."""
        self.process = self._start()

    def stop(self) -> None:
        """Stops the process as Ctrl-C in the terminal does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                self.kill()

    def printed(self) -> str:
        """Everything the process has printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _start(self) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            self._program,
            "run",
            str(self._project / "app.py"),
            "--server.port",
            str(self.port),
            *self._words,
        ]
        environment = {
            **os.environ,
            HOME_VARIABLE: str(self.home),
            **connections.noted_in(self.connections),
            **self._environment,
        }
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, cwd=self._project
            )
        deadline = time.monotonic() + START_SECONDS
        while not local_server.answers(f"{self.address}/_stcore/health"):
            assert process.poll() is None, f"the dashboard ended at once: {self.printed()}"
            assert time.monotonic() < deadline, f"the dashboard does not answer: {self.printed()}"
            time.sleep(0.1)
        return process


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser. Raises the same errors as `launched`."""
    with sync_playwright() as playwright:
        browser = launched(playwright.chromium)
        yield browser
        browser.close()


def launched(kind: BrowserType, *more: str) -> Browser:
    """Launches the system's Chromium, else Playwright's own; `more` holds further flags.

    Raises:
        RuntimeError: neither is installed; the message names the package to install.
    """
    system = next((path for name in CHROMIUMS if (path := shutil.which(name))), None)
    if system is None and not Path(kind.executable_path).exists():
        raise RuntimeError(
            "the browser tests need a Chromium: install the package chromium (Debian: apt-get"
            " install chromium)."
        )
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", *more]
    return kind.launch(executable_path=system, args=flags)


def open_page(
    browser: Browser, address: str, *, width: int = 1280, height: int = 800, theme: str = "light"
) -> Page:
    """Opens the address in a new browser window and waits until the page is drawn."""
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
    )
    page.goto(address)
    settled(page)
    return page


def opened(page: Page, label: str) -> Locator:
    """Opens the list of the select box with this label and returns the box.

    A list closes when the page scrolls, and Playwright scrolls to the element it clicks, so this
    scrolls first.
    """
    box = page.get_by_role("combobox", name=label, exact=True)
    box.scroll_into_view_if_needed()
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    box.click()
    expect(page.get_by_role("option").first).to_be_visible()
    return box


def settled(page: Page) -> None:
    """Waits until Streamlit has connected and drawn the page."""
    page.wait_for_selector(
        "[data-testid=stApp][data-test-connection-state=CONNECTED]", timeout=120_000
    )
    page.wait_for_selector("[data-test-script-state=notRunning]", timeout=120_000)
