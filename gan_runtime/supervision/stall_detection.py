"""Runs that live and do not train: nothing new in the journal for much longer than a usual call takes.

A deadlock, a hung accelerator or disk, a frozen process: the process is there, so nobody takes the run for lost.
"""

from __future__ import annotations

import contextlib
import time

from gan_runtime.base.deadlines import Patience
from gan_runtime.records.journal import Event
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec.watching import StillAction
from gan_runtime.store import queries
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.store.store import Store

LEAST_SECONDS = 120.0
USUAL_CALLS = 20.0
# The work at the end of an epoch is no call: a run is not taken for hung while it scores thousands of rows.
LONGEST_PROBES = 3.0
TOPIC, GOES_ON = queries.STANDS_STILL, "goes_on"
_NEXT = {
    "note": "Look at its log; stop it, or kill its process and resume it from its last checkpoint.",
    "stop": "It is told to stop, and is killed if it cannot.",
    "restart": "It is ended, and goes on from its last checkpoint.",
}


class Stillness:
    """Asked by the supervisor for each run that trains, at each tick."""

    def __init__(self, store: Store, clock: Clock = time.monotonic) -> None:
        self._store, self._patience = store, Patience(clock)
        self._told: set[tuple[str, int]] = set()  # run and attempt, as long as it stands still

    def news(self, run: RunDir, attempt: int) -> Event | None:
        """An alarm once a run has stood still for too long, and a word when it goes on after all."""
        still_s = self._patience.seconds("still", run.run_id, (attempt, _written(run)))
        if (run.run_id, attempt) in self._told:
            if still_s < LEAST_SECONDS:
                self._told.discard((run.run_id, attempt))
                return Event(
                    level="info", topic=GOES_ON, message="It goes on: there is something new in its journal."
                )
            return None
        if still_s < LEAST_SECONDS:
            return None
        usual = queries.usual_seconds(self._store, run.run_id, attempt)
        if still_s < max(USUAL_CALLS * usual.call, LONGEST_PROBES * usual.longest_probe):
            return None
        self._told.add((run.run_id, attempt))
        return Event(
            level="warning",
            topic=TOPIC,
            message=f"It lives and does not train: nothing new for {still_s:.0f} s, where a call of the device takes "
            f"{usual.call:.3g} s. {_NEXT[action(run)]}",
        )


def action(run: RunDir) -> StillAction:
    """What its options ask for; runs from before there was a choice are only told of."""
    with contextlib.suppress(Exception):  # options that cannot be read, which its trainer tells
        return run.spec().still_action
    return "note"


def _written(run: RunDir) -> int:
    """Bytes of the first worker's journal."""
    with contextlib.suppress(FileNotFoundError):
        return run.trainer_journal().stat().st_size
    return 0
