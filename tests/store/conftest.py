"""A store in memory, and a home whose journals it takes in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gan_runtime.home import Home
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store


@pytest.fixture
def store() -> Store:
    """Filled by `take_in`."""
    return Store()


@pytest.fixture
def take_in(home: Home, store: Store) -> Callable[[], None]:
    """Takes in what the journals hold by now."""
    ingestor = Ingestor(home, store)
    return lambda: ingestor.catch_up() and None
