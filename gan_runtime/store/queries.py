"""One function per question that a page asks. SQL stays in this package; pages get frames and small records.

Times are UTC. Losses are thinned in SQL to a bucket envelope, so a chart stays small however long the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import pandas as pd

from gan_runtime.errors import UnknownRunError
from gan_runtime.journal import ACTIVE
from gan_runtime.spec import RunSpec
from gan_runtime.store.store import Store

LOSSES = ("loss_generator", "loss_discriminator")
SCORES = ("d_real", "d_fake")
XAxis = Literal["step", "epoch", "wall_s"]


@dataclass(frozen=True)
class RunRow:
    """One stored run. `color`: its index in the run palette; `note`: why it is in its state, in words."""

    run_id: str
    name: str
    status: str
    workload: str
    dataset: str
    accelerator: str
    replicas: int
    precision: str
    batch_size_global: int
    epochs: int
    attempt: int
    color: int
    note: str
    spec: str
    host: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def is_live(self) -> bool:
        """It waits or trains."""
        return self.status in ("queued", *ACTIVE)


@dataclass(frozen=True)
class Progress:
    """How far a run is. `step` and `epoch` are 0 and rates None before the first numbers; `newest`: metric → last value."""

    step: int
    epoch: int
    last_step: int
    steps_per_epoch: int
    images_per_s: float | None
    seconds_per_step: float | None
    seconds_left: float | None
    written_at: datetime | None
    newest: dict[str, float]


@dataclass(frozen=True)
class SampleGrid:
    """One sample grid: PNG bytes, and where in training it was made."""

    run_id: str
    epoch: int
    step: int
    png: bytes


_RUN_COLUMNS = ", ".join(RunRow.__dataclass_fields__)


def runs(store: Store, status: tuple[str, ...] = ()) -> list[RunRow]:
    """Every stored run, newest first; with `status` only those in one of these states."""
    condition = "WHERE list_contains(?, status)" if status else ""
    rows = store.rows(f"SELECT {_RUN_COLUMNS} FROM runs {condition} ORDER BY created_at DESC", [list(status)] if status else [])
    return [RunRow(*row) for row in rows]


def queue(store: Store) -> list[RunRow]:
    """The waiting runs, next one first."""
    rows = store.rows(f"SELECT {_RUN_COLUMNS} FROM runs WHERE status = 'queued' ORDER BY queue_rank")
    return [RunRow(*row) for row in rows]


def run(store: Store, run_id: str) -> RunRow:
    """One run.

    Raises:
        UnknownRunError: no such run; the message lists the newest that exist.
    """
    rows = store.rows(f"SELECT {_RUN_COLUMNS} FROM runs WHERE run_id = ?", [run_id])
    if not rows:
        known = ", ".join(row.run_id for row in runs(store)[:8]) or "none yet"
        raise UnknownRunError(f"run {run_id!r} is not stored here: the newest runs are {known}.")
    return RunRow(*rows[0])


def run_table(store: Store) -> pd.DataFrame:
    """One row a run, newest first, with its last losses and its rate, for the Runs table.

    Columns: run_id, name, status, workload, dataset, accelerator, replicas, precision, xla, batch_size_global, epochs,
    epochs_done, images_per_s (median of its epochs), loss_generator, loss_discriminator (last finished step), seconds,
    created_at, note, color.
    """
    return store.frame(
        """
        WITH ends AS (
            SELECT run_id, arg_max(value, step) FILTER (metric = 'loss_generator') AS loss_generator,
                   arg_max(value, step) FILTER (metric = 'loss_discriminator') AS loss_discriminator, max(wall_s) AS seconds
            FROM scalars GROUP BY run_id
        ), rates AS (SELECT run_id, max(epoch) AS epochs_done, median(images_per_s) AS images_per_s FROM epochs GROUP BY run_id)
        SELECT r.run_id, r.name, r.status, r.workload, r.dataset, r.accelerator, r.replicas, r.precision, r.xla, r.batch_size_global,
               r.epochs, coalesce(rates.epochs_done, 0) AS epochs_done, rates.images_per_s, ends.loss_generator,
               ends.loss_discriminator, ends.seconds, r.created_at, r.note, r.color
        FROM runs r LEFT JOIN ends USING (run_id) LEFT JOIN rates USING (run_id)
        ORDER BY r.created_at DESC
        """
    )


def progress(store: Store, run_id: str) -> Progress:
    """How far the run is, how fast, and when the trainer last wrote."""
    plan = store.rows("SELECT steps_per_epoch, epochs FROM ingest.plans WHERE run_id = ? ORDER BY attempt DESC LIMIT 1", [run_id])
    steps_per_epoch, epochs = plan[0] if plan else (0, 0)
    newest = store.rows(
        """
        SELECT metric, value, step, epoch, wall_s FROM scalars
        WHERE run_id = ? AND step = (SELECT max(step) FROM scalars WHERE run_id = ?)
        """,
        [run_id, run_id],
    )
    step, epoch = (newest[0][2], newest[0][3]) if newest else (0, 0)
    rate = _recent_seconds_per_step(store, run_id)
    spec = run(store, run_id)
    written = store.rows("SELECT max(written_at) FROM ingest.arrivals WHERE run_id = ?", [run_id])[0][0]
    left = epochs * steps_per_epoch - step
    overhead = _overhead_per_epoch(store, run_id)
    epochs_left = left / steps_per_epoch if steps_per_epoch else 0.0
    return Progress(
        step=step,
        epoch=epoch,
        last_step=epochs * steps_per_epoch,
        steps_per_epoch=steps_per_epoch,
        images_per_s=spec.batch_size_global / rate if rate else None,
        seconds_per_step=rate,
        seconds_left=left * rate + epochs_left * overhead if rate else None,
        written_at=written,
        newest={metric: value for metric, value, *_ in newest},
    )


def _recent_seconds_per_step(store: Store, run_id: str) -> float | None:
    """Mean over the last 50 steps of the newest attempt, without its first step, which holds the compiling."""
    rows = store.rows(
        """
        WITH newest AS (
            SELECT step, wall_s FROM scalars
            WHERE run_id = $run AND metric = 'loss_generator' AND attempt = (SELECT max(attempt) FROM scalars WHERE run_id = $run)
        ), recent AS (
            SELECT step, wall_s FROM newest
            WHERE step >= greatest((SELECT min(step) + 1 FROM newest), (SELECT max(step) - 50 FROM newest))
        )
        SELECT min(step), max(step), min(wall_s), max(wall_s) FROM recent
        """,
        {"run": run_id},
    )
    first, last, begin, end = rows[0]
    return (end - begin) / (last - first) if first is not None and last > first else None


def _overhead_per_epoch(store: Store, run_id: str) -> float:
    """Seconds that probes take at the end of an epoch; 0 before the first."""
    rows = store.rows("SELECT median(seconds) FROM phases WHERE run_id = ? AND phase = 'probe'", [run_id])
    return float(rows[0][0] or 0.0)


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


def epoch_times(store: Store, run_ids: list[str]) -> pd.DataFrame:
    """Columns: run_id, epoch, seconds, images, images_per_s; oldest epoch first."""
    return store.frame(
        "SELECT run_id, epoch, seconds, images, images_per_s FROM epochs WHERE list_contains(?, run_id) ORDER BY run_id, epoch",
        [run_ids],
    )


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


def phases(store: Store, run_id: str) -> dict[str, float]:
    """Seconds of each phase of the newest attempt; repeated phases (probe) are summed."""
    rows = store.rows(
        """
        SELECT phase, sum(seconds) FROM phases
        WHERE run_id = ? AND attempt = (SELECT max(attempt) FROM phases WHERE run_id = ?) GROUP BY phase
        """,
        [run_id, run_id],
    )
    return dict(rows)


def events(store: Store, run_id: str) -> pd.DataFrame:
    """Everything that happened to a run, oldest first. Columns: logged_at, attempt, level, kind, message."""
    return store.frame(
        "SELECT logged_at, attempt, level, kind, message FROM events WHERE run_id = ? ORDER BY logged_at", [run_id]
    )


def typical_images_per_s(store: Store, spec: RunSpec, accelerator: str) -> float | None:
    """Median rate of earlier runs like `spec`, of those with the nearest global batch; None when there was none.

    The first epoch of an attempt holds the compiling and does not count.
    """
    rows = store.rows(
        """
        WITH alike AS (
            SELECT run_id, abs(ln(batch_size_global / $batch)) AS distance FROM runs
            WHERE workload = $workload AND accelerator = $accelerator AND replicas = $replicas
              AND precision = $precision AND xla = $xla
        ), steady AS (
            SELECT distance, images_per_s FROM epochs JOIN alike USING (run_id)
            QUALIFY epoch > min(epoch) OVER (PARTITION BY run_id, attempt)
        )
        SELECT median(images_per_s) FROM steady WHERE distance = (SELECT min(distance) FROM steady)
        """,
        {
            "batch": float(spec.batch_size_global),
            "workload": spec.workload,
            "accelerator": accelerator,
            "replicas": spec.replicas,
            "precision": spec.precision,
            "xla": spec.xla,
        },
    )
    return rows[0][0]
