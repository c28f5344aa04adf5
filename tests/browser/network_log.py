"""Chromium's own network log: every request of a page, its workers and its sockets, whatever the
outcome.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.dashboard_process import launched

LEAST = 50  # requests in a visit to all pages


@contextmanager
def watched(browser: Browser, log: Path) -> Iterator[Browser]:
    """A second browser that writes the log, which is complete when the context exits."""
    opened = launched(browser.browser_type, f"--log-net-log={log}")
    yield opened
    opened.close()


def foreign_requests(log: Path, origin: str) -> list[str]:
    """Addresses outside `origin` that its pages requested.

    Requests of the browser to its own vendor have no page as initiator.
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
