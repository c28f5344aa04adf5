"""Fixtures for the training loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from gan_runtime.records.run_folder import RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """An empty run folder."""
    return RunDir(tmp_path)
