"""Fixtures for the training loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from gan_runtime.base import disk
from gan_runtime.records.run_folder import RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """An empty run folder."""
    return RunDir(tmp_path)


@pytest.fixture(autouse=True)
def roomy_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs warn only below 100 MB, so that the disk of this machine adds no warning."""
    monkeypatch.setattr(disk, "LOW_BYTES", (100_000_000,) * 2)
