"""The numbers of one run over its steps. Pages ask for them once a second, so these queries join
nothing, and read a long run in blocks (store/scalar_blocks.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gan_runtime.store.scalar_blocks import BLOCK, LONG
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

Window = tuple[float, float]  # first and last x
EVERYTHING: Window = (-math.inf, math.inf)


@dataclass(frozen=True)
class StepRange:
    """The first and the last recorded step of an attempt."""

    attempt: int
    first: int
    last: int


def curves(
    store: Store, run_id: str, metrics: tuple[str, ...], max_points: int, window: Window
) -> pd.DataFrame:
    """As `queries.curves` over steps. All metrics share the buckets of the run's steps.

    A part of more than LONG steps is drawn in buckets of whole blocks.
    """
    first, last = _steps_within(store, run_id, window)
    names = {f"metric_{place}": metric for place, metric in enumerate(metrics)}
    condition = f"run_id = $run AND metric IN ({', '.join(f'${name}' for name in names) or 'NULL'})"
    parameters = {"run": run_id, **names, "first": first, "last": last}
    steps = max(1, math.ceil((last - first + 1) / max_points))
    if last - first < LONG:
        return store.frame(
            f"""
            SELECT $run AS run_id, metric, avg(CAST(step AS DOUBLE)) AS x,
                   CAST(avg(step) AS BIGINT) AS step, max(epoch) AS epoch,
                   min(value) AS low, avg(value) AS mean, max(value) AS high
            FROM ingest.scalars
            WHERE {condition} AND isfinite(value) AND step BETWEEN $first AND $last
            GROUP BY metric, (step - $first) // {steps} ORDER BY metric, x
            """,
            parameters,
        )
    return store.frame(
        f"""
        SELECT $run AS run_id, metric, sum(step * numbers) / sum(numbers) AS x,
               CAST(sum(step * numbers) / sum(numbers) AS BIGINT) AS step, max(epoch) AS epoch,
               min(low) AS low, sum(mean * numbers) / sum(numbers) AS mean, max(high) AS high
        FROM ingest.scalar_blocks
        WHERE {condition} AND numbers > 0 AND last_step >= $first AND first_step <= $last
        GROUP BY metric, (block - $first // {BLOCK}) // {math.ceil(steps / BLOCK)}
        ORDER BY metric, x
        """,
        parameters,
    )


def changing_curves(
    store: Store, run_id: str, metrics: tuple[str, ...], max_points: int = 200
) -> pd.DataFrame:
    """As `curves` of all steps, for only those metrics with more than one value."""
    rows = store.rows(
        f"SELECT metric FROM {_numbers(store, run_id)} WHERE run_id = ? AND"
        " list_contains(?, metric) GROUP BY metric HAVING min(low) < max(high)",
        [run_id, list(metrics)],
    )
    return curves(store, run_id, tuple(row[0] for row in rows), max_points, EVERYTHING)


def step_ranges(store: Store, run_id: str) -> list[StepRange]:
    """Which steps each attempt of a run has numbers of, newest attempt first."""
    rows = store.rows(
        f"SELECT attempt, min(first_step), max(last_step) FROM {_numbers(store, run_id)} WHERE"
        " run_id = ? GROUP BY attempt ORDER BY attempt DESC",
        [run_id],
    )
    return [StepRange(*row) for row in rows]


def _numbers(store: Store, run_id: str) -> str:
    """The table of the numbers of a run: in blocks, or each with the columns of a block."""
    rows = store.rows("SELECT max(step) FROM ingest.last_scalars WHERE run_id = ?", [run_id])
    if (rows[0][0] or 0) >= LONG:
        return "ingest.scalar_blocks"
    return (
        "(SELECT run_id, attempt, metric, step AS first_step, step AS last_step, value AS low,"
        " value AS high FROM ingest.scalars)"
    )


def _steps_within(store: Store, run_id: str, window: Window) -> tuple[int, int]:
    """The first and the last step of a run in the window; first > last if there is none."""
    ranges = step_ranges(store, run_id)
    if not ranges:
        return 1, 0
    first, last = min(steps.first for steps in ranges), max(steps.last for steps in ranges)
    return math.ceil(max(first, window[0])), math.floor(min(last, window[1]))
