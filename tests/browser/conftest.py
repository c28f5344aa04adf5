"""A dashboard and a browser for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gan_runtime.home import Home
from tests.browser.dashboard_process import Dashboard, chromium
from tests.support.trainers import end_trainers

expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests; each test opens windows of its own."""
    with chromium() as opened:
        yield opened


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Dashboard]:
    """A dashboard on an empty home."""
    started = Dashboard(tmp_path / "home", tmp_path / "dashboard.log")
    yield started
    started.stop()
    end_trainers(Home(tmp_path / "home"))
