"""Numbers of every step. Curves are thinned in SQL to a bucket envelope, so a chart stays small however long the run."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from gan_runtime.store.store import Store

LOSSES = ("loss_generator", "loss_discriminator")
SCORES = ("d_real", "d_fake")
XAxis = Literal["step", "epoch", "wall_s"]


def curves(store: Store, run_ids: list[str], metrics: tuple[str, ...], x: XAxis = "step", max_points: int = 400) -> pd.DataFrame:
    """Metrics of some runs over step, epoch or training seconds, each thinned to at most `max_points` buckets per run and metric.

    Columns: run_id, metric, x (float64), step, epoch (int64), low, mean, high (float64; the bucket's envelope; NaN and
    infinite values are left out). Nothing logged yet gives an empty frame with these columns.
    """
    return store.frame(
        f"""
        WITH wanted AS (
            SELECT run_id, metric, step, epoch, value, CAST({_x_expression(x)} AS DOUBLE) AS x
            FROM scalars LEFT JOIN (
                SELECT run_id, arg_max(steps_per_epoch, attempt) AS steps_per_epoch FROM ingest.plans GROUP BY run_id
            ) USING (run_id)
            WHERE list_contains($runs, run_id) AND list_contains($metrics, metric) AND isfinite(value)
        ), width AS (
            SELECT run_id, min(step) AS first, greatest(1, ceil((max(step) - min(step) + 1) / $points)) AS steps
            FROM wanted GROUP BY run_id
        )
        SELECT run_id, metric, avg(x) AS x, CAST(avg(step) AS BIGINT) AS step, max(epoch) AS epoch,
               min(value) AS low, avg(value) AS mean, max(value) AS high
        FROM wanted JOIN width USING (run_id)
        GROUP BY run_id, metric, floor((step - width.first) / width.steps) ORDER BY run_id, metric, x
        """,
        {"runs": run_ids, "metrics": list(metrics), "points": max_points},
    )


def _x_expression(x: XAxis) -> str:
    return {"step": "step", "epoch": "step / steps_per_epoch", "wall_s": "wall_s"}[x]


def not_finite(store: Store, run_id: str) -> pd.DataFrame:
    """Steps at which a metric was NaN or infinite. Columns: step, metric, value (text)."""
    return store.frame(
        "SELECT step, metric, CAST(value AS VARCHAR) AS value FROM scalars WHERE run_id = ? AND NOT isfinite(value) ORDER BY step",
        [run_id],
    )
