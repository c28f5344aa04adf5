"""Whether the run that a waiting run waits for has ended: "when this ends, start that"."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from gan_runtime.errors import GanRuntimeError
from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_state import latest_status
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime.after import BEGINS, WAITS, After
from gan_runtime.runtime.awaited import READY, Awaited
from gan_runtime.store.store import Store


class AwaitedRuns:
    """Asked by the supervisor for each waiting run, at each tick."""

    def __init__(self, store: Store, goes_on: Callable[[str], bool]) -> None:
        """`goes_on`: whether a lost run will be resumed by itself, and so has not ended."""
        self._store, self._goes_on = store, goes_on
        self._read: dict[str, tuple[tuple[int, int], StatusChange]] = {}  # run → its journal, what that says
        self._states: dict[str, str] = {}  # awaited run → its state

    def look(self, waiting: Iterable[RunDir]) -> None:
        """After news: what they wait for, and how it is with that."""
        before, self._read = self._read, {}
        for run in waiting:
            with contextlib.suppress(OSError, GanRuntimeError):  # the supervisor meets it too
                status = run.supervisor_journal.stat()
                stamp = (status.st_size, status.st_mtime_ns)
                known = before.get(run.run_id)
                is_same = known is not None and known[0] == stamp
                self._read[run.run_id] = known if known and is_same else (stamp, latest_status(run))
        awaited = {newest.after for _, newest in self._read.values()} - {""}
        sql = "SELECT run_id, status FROM ingest.newest WHERE list_contains(?, run_id)"
        self._states = dict(self._store.rows(sql, [sorted(awaited)])) if awaited else {}  # type: ignore[arg-type]

    def by(self, run: RunDir) -> Awaited:
        """What the run waits for."""
        _, newest = self._read.get(run.run_id, (None, None))
        if newest is None or not newest.after:
            return READY
        status = self._states.get(newest.after)
        if status == "lost" and self._goes_on(newest.after):
            status = "queued"
        reason = After(newest.after, newest.after_if).reason(status)
        told = reason or (WAITS if newest.reason.startswith(BEGINS) else newest.reason)
        if told == newest.reason:
            return Awaited(not reason)
        now = latest_status(run)  # a person may have moved it, or let it wait for another one
        if (now.status, now.after, now.after_if) != (newest.status, newest.after, newest.after_if):
            return Awaited(is_ready=False)
        return Awaited(not reason, now.model_copy(update={"reason": told, "at": journal.now()}))
