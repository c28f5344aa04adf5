"""Runs of the target "rig", a Slurm with two hosts, and what an owner shows of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.journal import ENDED
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries

TARGET = "rig"
TOY = {"workload": "mlp_gan", "batch_size_global": 128, "precision": "float32", "target": TARGET}
LONG = {**TOY, "epochs": 4_000, "steps_per_loop": 7}


def row(runtime: Runtime, run: RunDir) -> queries.RunRow:
    """The run as all pages show it."""
    return queries.run(runtime.store, run.run_id)


def reaches(
    runtime: Runtime, run: RunDir, status: str, wait_until: Callable[..., Any], attempt: int = 1
) -> None:
    """Waits until the run is shown in this state."""

    def is_reached() -> bool:
        shown = row(runtime, run)
        is_early = shown.status in ENDED and shown.attempt == attempt and status not in ENDED
        assert not is_early, f"{shown.status}: {shown.note}\n{run.log_tail(20)}"
        return (shown.status, shown.attempt) == (status, attempt)

    wait_until(is_reached, f"{run.run_id} is {status}", 180.0)
