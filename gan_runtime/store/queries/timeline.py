"""When things happened to a run, and where its time and its memory go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def epoch_times(store: Store, run_ids: list[str]) -> pd.DataFrame:
    """Columns: run_id, epoch, seconds, images, images_per_s; oldest epoch first."""
    return store.frame(
        "SELECT run_id, epoch, seconds, images, images_per_s FROM epochs WHERE list_contains(?, run_id) ORDER BY run_id, epoch",
        [run_ids],
    )


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
        "SELECT logged_at, attempt, level, kind, message FROM events WHERE run_id = ? ORDER BY logged_at",
        [run_id],
    )


def worker_times(store: Store, run_id: str) -> pd.DataFrame:
    """How each of several workers spends a step, lately: medians over its last 20 host calls.

    Columns: rank, step_s, compute_s (own work), wait_s (inside collectives), wait_share (of the step, 0 to 1); by rank.
    A run of one worker, or one that has not trained yet, gives an empty frame with these columns.
    """
    return store.frame(
        """
        WITH recent AS (
            SELECT rank, step_s, compute_s, wait_s FROM worker_times WHERE run_id = ?
            QUALIFY row_number() OVER (PARTITION BY rank ORDER BY attempt DESC, step DESC) <= 20
        )
        SELECT rank, median(step_s) AS step_s, median(compute_s) AS compute_s, median(wait_s) AS wait_s,
               median(wait_s / step_s) AS wait_share
        FROM recent GROUP BY rank ORDER BY rank
        """,
        [run_id],
    )


@dataclass(frozen=True)
class PeakMemory:
    """Highest bytes of the newest attempt so far; `device_bytes`: of its fullest device, None on a CPU."""

    process_bytes: int
    device_bytes: int | None


def profile(store: Store, run_id: str) -> pd.DataFrame:
    """Where a step's time goes, by the run's newest profile, largest share first; empty when it has none.

    Columns: phase, network ("" where none is known), category (str), seconds_per_step, share (float64, 0 to 1), steps (how many
    were profiled). The shares add up to 1.
    """
    return store.frame(
        """
        SELECT phase, network, category, seconds / steps AS seconds_per_step, share, steps FROM profiles
        WHERE run_id = $run AND attempt = (SELECT max(attempt) FROM profiles WHERE run_id = $run)
        ORDER BY share DESC, phase, network, category
        """,
        {"run": run_id},
    )


def peak_memory(store: Store, run_id: str) -> PeakMemory | None:
    """None before the end of the newest attempt's first epoch."""
    rows = store.rows(
        """
        SELECT max(process_peak_bytes), max(device_peak_bytes) FROM memory
        WHERE run_id = $run AND attempt = (SELECT max(attempt) FROM ingest.statuses WHERE run_id = $run)
        """,
        {"run": run_id},
    )
    process_bytes, device_bytes = rows[0]
    return None if process_bytes is None else PeakMemory(process_bytes, device_bytes)
