"""An in-memory store that ingests the journals of a home; a home with a database, built once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest

from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.home import Home
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from tests.support import whole_stores


@pytest.fixture
def store() -> Store:
    """Filled by `take_in`."""
    return Store()


@pytest.fixture
def take_in(home: Home, store: Store) -> Callable[[], None]:
    """Ingests the new lines of the journals."""
    ingestor = Ingestor(home, store)
    return lambda: ingestor.catch_up() and None


@pytest.fixture(scope="session")
def whole_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Built by `whole_stores.build`; tests must not change it."""
    home = Home(tmp_path_factory.mktemp("whole") / "home").prepare()
    whole_stores.build(home)
    return home


@pytest.fixture
def trained(home: Home, whole_home: Home) -> None:
    """Copies `whole_home` into the home."""
    shutil.copytree(whole_home.path, home.path, dirs_exist_ok=True)


@pytest.fixture
def opened(home: Home) -> Iterator[Callable[[], Runtime]]:
    """Opens the home as a dashboard does."""
    runtimes: list[Runtime] = []

    def begin() -> Runtime:
        runtimes.append(Runtime.open(home))
        return runtimes[-1]

    yield begin
    for runtime in runtimes:
        runtime.close()
