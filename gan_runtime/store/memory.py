"""The results store of a process that does not own results.duckdb: the same tables in memory, made from the journals."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gan_runtime.base import disk
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store


def from_journals(home: Home, runs: list[RunDir] | None = None) -> Store:
    """A store with everything that the journals hold by now, or only those of `runs`. Touches no file of the home."""
    with disk.told_when_full(Path(tempfile.gettempdir())):  # where DuckDB puts what does not fit into memory
        return _taken_in(home, runs)


def _taken_in(home: Home, runs: list[RunDir] | None) -> Store:
    store = Store()
    ingestor = Ingestor(home, store)
    if runs is None:
        ingestor.catch_up()
    else:
        for run in runs:
            ingestor.catch_up_run(run)
        ingestor.catch_up_jobs()
    return store
