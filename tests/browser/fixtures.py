"""Fixtures of tests/browser and tests/full/browser: a dashboard for each test and one browser for
all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gan_runtime.records.home import Home
from tests.browser.dashboard_process import Dashboard, chromium
from tests.support.trainers import end_trainers

OPENED = pytest.StashKey[Browser]()
expect.set_options(timeout=120_000)


@pytest.fixture(scope="session")
def browser(pytestconfig: pytest.Config) -> Browser:
    """One Chromium per process; each test opens its own windows."""
    if OPENED not in pytestconfig.stash:
        until_the_end = ExitStack()
        pytestconfig.add_cleanup(until_the_end.close)
        pytestconfig.stash[OPENED] = until_the_end.enter_context(chromium())
    return pytestconfig.stash[OPENED]


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Dashboard]:
    """A dashboard on an empty home."""
    started = Dashboard(tmp_path / "home", tmp_path / "dashboard.log")
    yield started
    started.stop()
    end_trainers(Home(tmp_path / "home"))
