"""A home with a results.duckdb of several blocks, and the contents of a database that must not
depend on its history.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from gan_runtime.commands.runtime import Runtime
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Created, StatusChange
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.spec import RunSpec
from gan_runtime.store.store import Store
from gan_runtime.supervision.store_recovery import rebuild

VIEWS = ("runs", "scalars", "epochs", "events")
CALLS, STEPS = 60, 1_000
RUNS = 2
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def build(home: Home) -> None:
    """Creates a run whose numbers fill blocks of the database, and one that never trained."""
    run, numbers = _queued(home, "quick-0001"), random.Random(0)
    records: list[journal.Record] = [journal.AttemptStart(resume_step=0)]
    for call in range(CALLS):
        values = [numbers.random() for _ in range(STEPS)]
        first = 1 + call * STEPS
        records.append(
            journal.Scalars(
                epoch=1, first_step=first, wall_s=values, values={"loss_generator": values}
            )
        )
    journal.append(
        run.trainer_journal(), 1, *records, StatusChange(status="finished", reason="done")
    )
    stopped = StatusChange(status="stopped", reason="taken from the queue")
    journal.append(_queued(home, "quick-0002").supervisor_journal, 1, stopped)
    rebuild(home)


def _queued(home: Home, run_id: str) -> RunDir:
    run, spec = RunDir(home.runs / run_id), RunSpec().model_dump()
    run.path.mkdir()
    write_json(run.spec_path, spec)
    created = Created(at=NOON, spec=spec, accelerator="cpu", color=0, preset="quick")
    waits = StatusChange(
        at=NOON, status="queued", reason="waiting for the accelerator", queue_rank=1.0
    )
    journal.append(run.supervisor_journal, 1, created, waits)
    return run


def contents(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """For each view that journals fill: the number of rows, and a checksum of all values."""
    return {
        view: store.rows(f"SELECT count(*), sum(hash(line)::HUGEINT) FROM {view} line")
        for view in VIEWS
    }


def is_read(runtime: Runtime) -> bool:
    """Whether all renamed files are rebuilt."""
    return bool(runtime.recovered) and all(healed.runs is not None for healed in runtime.recovered)
