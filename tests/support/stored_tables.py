"""The contents of a results.duckdb, for comparison with another one."""

from __future__ import annotations

from gan_runtime.bundles import export
from gan_runtime.records.home import Home
from gan_runtime.store.store import Store


def contents(home: Home) -> dict[str, set[str]]:
    """The rows of each view, unordered."""
    store = Store(home.database)
    try:
        return {
            view: {repr(row) for row in store.rows(f"SELECT * FROM {view}")}
            for view in ("samples", *export.VIEWS)
        }
    finally:
        store.close()
