"""Where the time and the memory of a run go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd


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
