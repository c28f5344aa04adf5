"""The progress and speed of a run and of runs like it, and the use of its time and memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from gan_runtime.spec import RunSpec
from gan_runtime.spec.run_options import HERE
from gan_runtime.store.queries.metrics import DEVICES
from gan_runtime.store.queries.run_curves import StepRange, step_ranges
from gan_runtime.store.queries.run_rows import run
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run. Before the first numbers `step` and `epoch` are 0 and rates None.
    `newest`: metric → last value.
    """

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
class UsualSeconds:
    """`call`: median time of an attempt's newest calls, including the time between them;
    `longest_probe`: the longest of the run's epochs. 0 if unknown.
    """

    call: float
    longest_probe: float


RECENT_STEPS = 50  # for the current speed
STANDS_STILL = "alarm_stands_still"  # the kind of an event (supervision/recovery.py)


def usual_seconds(store: Store, run_id: str, attempt: int) -> UsualSeconds:
    """The usual time between two lines of a trainer's journal, by the trainer's clock."""
    calls = store.rows(
        """
        SELECT median(seconds) FROM (
            SELECT epoch(written_at - lag(written_at) OVER (ORDER BY step)) AS seconds FROM
                ingest.arrivals
            WHERE run_id = ? AND attempt = ? QUALIFY row_number() OVER (ORDER BY step DESC) <= 50
        )
        """,
        [run_id, attempt],
    )
    probes = store.rows(
        "SELECT max(seconds) FROM phases WHERE run_id = ? AND phase = 'probe'", [run_id]
    )
    return UsualSeconds(calls[0][0] or 0.0, probes[0][0] or 0.0)


def stall_event(store: Store, run_id: str) -> str:
    """The owner's message about a stalled run; "" once it has new numbers or has ended."""
    # Reads no table that changes at each step, since this is called often and most runs have no
    # event.
    events = store.rows(
        """
        SELECT attempt, logged_at, message FROM ingest.events JOIN ingest.newest USING (run_id,
            attempt)
        WHERE run_id = ? AND kind = ? AND status = 'running' ORDER BY logged_at DESC LIMIT 1
        """,
        [run_id, STANDS_STILL],
    )
    for attempt, logged_at, message in events:
        after = (
            "SELECT 1 FROM ingest.arrivals WHERE run_id = ? AND attempt = ? AND written_at > ?"
            " LIMIT 1"
        )
        return "" if store.rows(after, [run_id, attempt, logged_at]) else str(message)
    return ""


def progress(store: Store, run_id: str) -> RunProgress:
    """The progress and speed of a run, and the time of the trainer's last line."""
    plan = store.rows(
        "SELECT steps_per_epoch, epochs FROM ingest.plans WHERE run_id = ? ORDER BY attempt DESC"
        " LIMIT 1",
        [run_id],
    )
    steps_per_epoch, epochs = plan[0] if plan else (0, 0)
    ranges = step_ranges(store, run_id)
    step = max((steps.last for steps in ranges), default=0)
    recent = _recent(store, run_id, ranges[0]) if ranges else []
    newest = {number.metric: number for number in recent if number.step == step}
    epoch = next((number.epoch for number in newest.values()), 0)
    rate = _seconds_per_step(recent, ranges[0]) if ranges else None
    run(store, run_id)  # raises if there is no such run
    images_per_step = store.rows(
        "SELECT images_per_step FROM ingest.created WHERE run_id = ?", [run_id]
    )[0][0]
    written = store.rows("SELECT max(written_at) FROM ingest.arrivals WHERE run_id = ?", [run_id])[
        0
    ][0]
    steps_left = max(0, epochs * steps_per_epoch - step)
    overhead = _overhead_per_epoch(store, run_id)
    epochs_left = steps_left / steps_per_epoch if steps_per_epoch else 0.0
    return RunProgress(
        step=step,
        epoch=epoch,
        last_step=epochs * steps_per_epoch,
        steps_per_epoch=steps_per_epoch,
        images_per_s=images_per_step / rate if rate and images_per_step else None,
        seconds_per_step=rate,
        seconds_left=steps_left * rate + epochs_left * overhead if rate else None,
        written_at=written,
        newest={metric: number.value for metric, number in newest.items()},
    )


def device_seconds(store: Store, run_id: str, step: int) -> float | None:
    """Training seconds up to a step times the devices; None without any."""
    rows = store.rows(
        f"""
        SELECT max(wall_s) * any_value({DEVICES}) FROM ingest.scalars JOIN ingest.created USING
            (run_id)
        WHERE run_id = ? AND step <= ?
        """,
        [run_id, step],
    )
    return rows[0][0]


class _Number(NamedTuple):
    """A measured step, with its training seconds; these are None if the clock was not read."""

    step: int
    metric: str
    value: float
    epoch: int
    attempt: int
    wall_s: float | None


def _recent(store: Store, run_id: str, newest: StepRange) -> list[_Number]:
    """All numbers of the last steps."""
    rows = store.rows(
        "SELECT step, metric, value, epoch, attempt, wall_s FROM ingest.scalars WHERE run_id = ?"
        " AND step >= ?",
        [run_id, newest.last - RECENT_STEPS],
    )
    return [_Number(*row) for row in rows]


def _seconds_per_step(recent: list[_Number], newest: StepRange) -> float | None:
    """Mean seconds over the last steps of the newest attempt, without its first step, which
    includes compiling.

    Every step with a number counts. The clock stops while steps are profiled, so steps with the
    same time as the previous step are skipped.
    """
    times: dict[int, float] = {}
    for number in recent:
        if (
            number.attempt == newest.attempt
            and number.step > newest.first
            and number.wall_s is not None
        ):
            times[number.step] = min(number.wall_s, times.get(number.step, number.wall_s))
    steps = len(set(times.values())) - 1
    return (max(times.values()) - min(times.values())) / steps if steps > 0 else None


def _overhead_per_epoch(store: Store, run_id: str) -> float:
    """Seconds that probes take at the end of an epoch; 0 before the first."""
    rows = store.rows(
        "SELECT median(seconds) FROM phases WHERE run_id = ? AND phase = 'probe'", [run_id]
    )
    return float(rows[0][0] or 0.0)


def typical_images_per_s(
    store: Store, spec: RunSpec, accelerator: str, cpu_model: str
) -> float | None:
    """The median rate of earlier runs like `spec` with the nearest global batch on its target, or
    on this host; None without one.

    The first epoch of an attempt includes compiling and does not count, nor do imported runs, whose
    host is unknown, or here runs on another processor than `cpu_model`.
    """
    rows = store.rows(
        """
        WITH alike AS (
            SELECT run_id, abs(ln(batch_size_global / $batch)) AS distance FROM runs
            WHERE workload = $workload AND accelerator = $accelerator AND replicas = $replicas
              AND workers = $workers AND precision = $precision AND xla = $xla
              AND $engine IN (engine, 'auto') AND coalesce(spec->>'loop', 'custom') = $loop
              AND coalesce(spec->>'target', $here) = $target
              AND (host IS NULL OR (host->>'hostname' IS NOT NULL
                  AND ($target <> $here OR host->>'cpu_model' = $cpu_model)))
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
            "workers": spec.workers,
            "precision": spec.precision,
            "xla": spec.xla,
            "engine": spec.engine,
            "loop": spec.loop,
            "cpu_model": cpu_model,
            "target": spec.target,
            "here": HERE,
        },
    )
    return rows[0][0]


def epoch_times(store: Store, run_ids: list[str]) -> pd.DataFrame:
    """Columns: run_id, epoch, seconds, images, images_per_s; oldest epoch first."""
    return store.frame(
        "SELECT run_id, epoch, seconds, images, images_per_s FROM epochs WHERE list_contains(?,"
        " run_id) ORDER BY run_id, epoch",
        [run_ids],
    )


def phases(store: Store, run_id: str) -> dict[str, float]:
    """Seconds of each phase of the newest attempt; repeated phases (probe) are summed."""
    rows = store.rows(
        """
        SELECT phase, sum(seconds) FROM phases
        WHERE run_id = ? AND attempt = (SELECT max(attempt) FROM phases WHERE run_id = ?) GROUP BY
            phase
        """,
        [run_id, run_id],
    )
    return dict(rows)


def events(store: Store, run_id: str) -> pd.DataFrame:
    """Everything that happened to a run, oldest first.

    Columns: logged_at, attempt, level, kind, message.
    """
    return store.frame(
        "SELECT logged_at, attempt, level, kind, message FROM events WHERE run_id = ? ORDER BY"
        " logged_at",
        [run_id],
    )


def worker_times(store: Store, run_id: str) -> pd.DataFrame:
    """The recent time per step of each worker: medians over its last 20 host calls.

    Columns: rank, step_s, compute_s (own work), wait_s (inside collectives), wait_share (of the
    step, 0 to 1); by rank. A run with one worker, or before its first numbers, gives an empty frame
    with these columns.
    """
    return store.frame(
        """
        WITH recent AS (
            SELECT rank, step_s, compute_s, wait_s FROM worker_times WHERE run_id = ?
            QUALIFY row_number() OVER (PARTITION BY rank ORDER BY attempt DESC, step DESC) <= 20
        )
        SELECT rank, median(step_s) AS step_s, median(compute_s) AS compute_s, median(wait_s) AS
            wait_s,
               median(wait_s / step_s) AS wait_share
        FROM recent GROUP BY rank ORDER BY rank
        """,
        [run_id],
    )


@dataclass(frozen=True)
class PeakMemory:
    """Peak bytes of the newest attempt so far. `device_bytes`: on its fullest device, None on a
    CPU.
    """

    process_bytes: int
    device_bytes: int | None


def profile(store: Store, run_id: str) -> pd.DataFrame:
    """The time of a step by category, from the run's newest profile, largest share first; empty
    without a profile.

    Columns: phase, network ("" where unknown), category (str), seconds_per_step, share
    (float64, 0 to 1), steps (how many were profiled). The shares add up to 1.
    """
    return store.frame(
        """
        SELECT phase, network, category, seconds / steps AS seconds_per_step, share, steps FROM
            profiles
        WHERE run_id = $run AND attempt = (SELECT max(attempt) FROM profiles WHERE run_id = $run)
        ORDER BY share DESC, phase, network, category
        """,
        {"run": run_id},
    )


def peak_memory(store: Store, run_id: str) -> PeakMemory | None:
    """The peak memory; None before the end of the newest attempt's first epoch."""
    rows = store.rows(
        """
        SELECT max(process_peak_bytes), max(device_peak_bytes) FROM memory
        WHERE run_id = $run AND attempt = (SELECT max(attempt) FROM ingest.statuses WHERE run_id =
            $run)
        """,
        {"run": run_id},
    )
    process_bytes, device_bytes = rows[0]
    return None if process_bytes is None else PeakMemory(process_bytes, device_bytes)
