"""Following one run from its own journals, whoever supervises it: this process, a dashboard, or nobody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import STAGES
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


class Follower:
    """Reads one run's journals into a store in memory, as often as it is asked."""

    def __init__(self, home: Home, run: RunDir) -> None:
        self._home, self._run = home, run
        self._store = Store()
        self._ingestor = Ingestor(home, self._store)

    def now(self) -> Snapshot:
        """The run as it is.

        Raises:
            UnknownRunError: someone deleted the run meanwhile.
        """
        self._home.run_dir(self._run.run_id)
        self._ingestor.catch_up_run(self._run)
        return Snapshot(
            queries.run(self._store, self._run.run_id), queries.progress(self._store, self._run.run_id)
        )

    def since(self, before: Snapshot | None) -> list[Snapshot]:
        """Each state that the run came to after `before`, in order; the last as it is now. None: each of its newest attempt.

        A state that came and went between two looks is told with the place and the numbers of the look before. Raises as `now`.
        """
        newest = self.now()
        reached = (before.row.attempt, STAGES[before.row.status]) if before else (newest.row.attempt, -1)
        progress = (before or newest).progress
        *past, _ = queries.states(self._store, self._run.run_id)
        passed = [state for state in past if (state.attempt, STAGES[state.status]) > reached]
        rows = [replace(newest.row, **asdict(state)) for state in passed]
        return [*(Snapshot(row, progress) for row in rows), newest]


def look(home: Home, run: RunDir) -> Snapshot:
    """The run as it is now. Raises as `Follower.now`."""
    return Follower(home, run).now()


def follow(home: Home, run: RunDir) -> Iterator[Snapshot]:
    """Each state of the run's newest attempt, then the run as it is now, again and again, the last time when it has ended.

    Raises as `Follower.now`.
    """
    follower = Follower(home, run)
    snapshots = follower.since(None)
    yield from snapshots
    while snapshots[-1].row.is_live:
        time.sleep(POLL_SECONDS)
        snapshots = follower.since(snapshots[-1])
        yield from snapshots
