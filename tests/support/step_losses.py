"""The stored losses of a run, by step."""

from __future__ import annotations

import numpy as np

from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.run_folder import RunDir


def losses(runtime: Runtime, run: RunDir) -> np.ndarray:
    """float64 (steps,). Asserts that each step is stored exactly once."""
    rows = runtime.store.rows(
        "SELECT step, value FROM scalars WHERE run_id = ? AND metric = 'loss_generator' ORDER BY"
        " step",
        [run.run_id],
    )
    assert [number for number, _ in rows] == list(range(1, len(rows) + 1))
    return np.array([value for _, value in rows])
