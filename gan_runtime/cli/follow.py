"""Following one run from its own journals, whoever supervises it: this process, a dashboard, or nobody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gan_runtime.home import Home
from gan_runtime.records.rundir import RunDir
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.queries import Progress, RunRow
from gan_runtime.store.store import Store

POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Snapshot:
    """A run at one moment."""

    row: RunRow
    progress: Progress

    @property
    def epochs_done(self) -> int:
        """Whole passes over the data; 0 before the first step."""
        return self.progress.step // self.progress.steps_per_epoch if self.progress.steps_per_epoch else 0

    def as_dict(self) -> dict[str, Any]:
        """What `train --json` prints: state, place and rate (None before the first numbers), and the newest metrics."""
        row, progress = self.row, self.progress
        return {
            "run_id": row.run_id,
            "name": row.name,
            "status": row.status,
            "note": row.note,
            "attempt": row.attempt,
            "epochs_done": self.epochs_done,
            "epochs": row.epochs,
            "step": progress.step,
            "last_step": progress.last_step,
            "images_per_s": progress.images_per_s,
            "seconds_left": progress.seconds_left,
            "metrics": progress.newest,
        }


def follow(home: Home, run: RunDir) -> Iterator[Snapshot]:
    """The run as it is now, again and again, the last time when it has ended.

    Raises:
        UnknownRunError: someone deleted the run meanwhile.
    """
    store = Store()
    ingestor = Ingestor(home, store)
    while True:
        home.run_dir(run.run_id)
        ingestor.catch_up_run(run)
        now = Snapshot(queries.run(store, run.run_id), queries.progress(store, run.run_id))
        yield now
        if not now.row.is_live:
            return
        time.sleep(POLL_SECONDS)
