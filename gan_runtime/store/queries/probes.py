"""What is looked at after each epoch: histograms and sample grids."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from gan_runtime.store.store import Store


@dataclass(frozen=True)
class SampleGrid:
    """One sample grid: PNG bytes, and where in training it was made."""

    run_id: str
    epoch: int
    step: int
    png: bytes


def histogram(store: Store, run_id: str, names: tuple[str, ...], epoch: int) -> pd.DataFrame:
    """Some histograms of one epoch. Columns: name, left, right (bin edges), count, share (of all counts, 0 to 1)."""
    return store.frame(
        """
        WITH chosen AS (SELECT * FROM histograms WHERE run_id = ? AND list_contains(?, name) AND epoch = ?),
        bins AS (
            SELECT name, unnest(bin_left) AS "left", unnest(list_append(bin_left[2:], bin_right)) AS "right",
                   unnest(count) AS count, list_sum(count) AS total
            FROM chosen
        )
        SELECT name, "left", "right", count, count / total AS share FROM bins ORDER BY name, "left"
        """,
        [run_id, list(names), epoch],
    )


def sample_epochs(store: Store, run_ids: list[str]) -> list[int]:
    """The epochs for which at least one of the runs has a sample grid, first to last."""
    rows = store.rows("SELECT DISTINCT epoch FROM samples WHERE list_contains(?, run_id) ORDER BY epoch", [run_ids])
    return [row[0] for row in rows]


def sample(store: Store, run_id: str, epoch: int) -> SampleGrid | None:
    """The newest grid at or before `epoch`; None when there is none yet."""
    rows = store.rows(
        "SELECT run_id, epoch, step, png FROM samples WHERE run_id = ? AND epoch <= ? AND png IS NOT NULL ORDER BY epoch DESC LIMIT 1",
        [run_id, epoch],
    )
    return SampleGrid(*rows[0]) if rows else None
