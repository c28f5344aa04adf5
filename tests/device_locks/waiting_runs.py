"""Queued runs written for tests, and conditions that are checked after a tick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Created, StatusChange
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.spec import RunSpec
from tests.support.toy_owner import Owner

TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 2_000, "precision": "float32"}
SHORT = {**TOY, "epochs": 2}


def queued(home: Home, run_id: str, accelerator: str = "cpu", **options: Any) -> RunDir:
    """Writes the folder of a queued run."""
    run = RunDir(home.runs / run_id)
    run.path.mkdir()
    spec = RunSpec.parse(options).model_dump()
    write_json(run.spec_path, spec)
    journal.append(
        run.supervisor_journal,
        1,
        Created(spec=spec, accelerator=accelerator, color=0),
        StatusChange(status="queued", reason="waiting for the accelerator", queue_rank=1.0),
    )
    return run


def ticked(owner: Owner, condition: Callable[[], Any]) -> Callable[[], Any]:
    """Runs a tick, then checks the condition."""
    return lambda: owner.after(0.0) or condition()
