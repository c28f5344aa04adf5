"""The network log that Chromium itself writes: every request of a page, of its workers and
sockets, whatever became of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.dashboard_process import launched

LEAST = 50  # requests of a visit of all pages


@contextmanager
def watched(browser: Browser, log: Path) -> Iterator[Browser]:
    """A second browser that keeps the log, which is whole once this is left."""
    opened = launched(browser.browser_type, f"--log-net-log={log}")
    yield opened
    opened.close()


def foreign_requests(log: Path, origin: str) -> list[str]:
    """Addresses beyond `origin` that pages of it asked for.

    What the browser asks of its own maker has no page behind it.
    """
    written = json.loads(log.read_text(encoding="utf-8"))
    begin = written["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    requests = [
        event["params"]
        for event in written["events"]
        if event["type"] == begin and "params" in event
    ]
    of_pages = [str(request["url"]) for request in requests if request.get("initiator") == origin]
    assert len(of_pages) > LEAST, "this looks in the wrong place"
    own_prefixes = (origin, origin.replace("http", "ws"), "data:", "blob:")
    return [url for url in of_pages if not url.startswith(own_prefixes)]
