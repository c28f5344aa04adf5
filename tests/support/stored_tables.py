"""What a results.duckdb holds, to be compared with what another one holds."""

from __future__ import annotations

from gan_runtime.bundles import export
from gan_runtime.records.home import Home
from gan_runtime.store.store import Store


def contents(home: Home) -> dict[str, set[str]]:
    """The rows of each view, in no order."""
    store = Store(home.database)
    try:
        return {
            view: {repr(row) for row in store.rows(f"SELECT * FROM {view}")}
            for view in ("samples", *export.VIEWS)
        }
    finally:
        store.close()
