"""Images in results.duckdb are read one by one, without decompressing their neighbors."""

from __future__ import annotations

from pathlib import Path

import duckdb

from gan_runtime.store.store import Store

PICTURES, SIZE = 3_000, 5_000  # equal, so DuckDB would normally compress them


def test_images_are_stored_uncompressed(tmp_path: Path) -> None:
    path = tmp_path / "results.duckdb"
    store = Store(path)
    with store.transaction() as writer:
        rows = [
            ("quick-0001", 1, step, step, "samples", b"x" * SIZE, "{}") for step in range(PICTURES)
        ]
        writer.append("samples", rows)
    store.close()
    with duckdb.connect(str(path), read_only=True) as file:
        statement = (
            "SELECT DISTINCT compression FROM pragma_storage_info('ingest.samples') WHERE"
            " column_name = 'png' AND segment_type = 'BLOB'"
        )
        assert file.execute(statement).fetchall() == [("Uncompressed",)]
    assert path.stat().st_size > PICTURES * SIZE
