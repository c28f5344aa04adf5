"""Two homes that share the devices of this host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gan_runtime.records.home import Home
from tests.support.trainers import end_trainers


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[tuple[Home, Home]]:
    """Two homes on this host. Their trainers are stopped after the test."""
    both = Home(tmp_path / "one").prepare(), Home(tmp_path / "two").prepare()
    yield both
    for home in both:
        end_trainers(home)
