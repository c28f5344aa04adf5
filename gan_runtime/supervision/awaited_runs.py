"""Whether the run that a waiting run waits for has ended: "when this ends, start that"."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.records.home import Home, is_run_name
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.reasons import WAITS_FOR_A_RUN, Reason, cause
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import latest_status
from gan_runtime.store.store import Store
from gan_runtime.supervision.data_dependencies import READY, Awaited
from gan_runtime.supervision.run_dependencies import UNREADABLE, After

Stamp = tuple[int, int]  # bytes of a journal, and the time of its last change in nanoseconds


class AwaitedRuns:
    """Asked by the supervisor for each waiting run, at each tick. Where it is not known how things are, a run waits."""

    def __init__(self, home: Home, store: Store, goes_on: Callable[[str], bool]) -> None:
        """`goes_on`: whether a lost run will be resumed by itself, and so has not ended."""
        self._home, self._store, self._goes_on = home, store, goes_on
        self._read: dict[str, tuple[Stamp, StatusChange]] = {}  # run → its journal, what that says
        self._states: dict[str, str | None] = {}  # awaited run → its state; None: it was deleted
        self._has_store = True

    def look(self, waiting: Iterable[RunDir], has_store: bool = True) -> None:
        """After news: what they wait for, and how it is with that. `has_store`: whether the store can be asked just now."""
        before, self._read, self._states, self._has_store = self._read, {}, {}, has_store
        for run in waiting:
            with contextlib.suppress(OSError, GanRuntimeError):  # `by` meets it too
                self._read[run.run_id] = _read(run, before.get(run.run_id))
        self._note_states()

    def by(self, run: RunDir) -> Awaited:
        """What the run waits for. Raises OSError, GanRuntimeError while its journals cannot be read."""
        if run.run_id not in self._read:
            self._read[run.run_id] = _read(run, None)
            self._note_states()
        _, newest = self._read[run.run_id]
        if not newest.after:
            return READY
        status = self._states[newest.after]
        if status == "lost" and self._goes_on(newest.after):
            status = "queued"
        before = newest.cause
        waits = After(newest.after, newest.after_if).cause(status)
        if waits is None and (before is None or before.code not in WAITS_FOR_A_RUN):
            return READY
        why = waits or cause(Reason.WAITS_FOR_DEVICE)
        if why == before:
            return Awaited(waits is None)
        now = latest_status(run)  # a person may have moved it, or let it wait for another one
        if (now.status, now.after, now.after_if) != (newest.status, newest.after, newest.after_if):
            return Awaited(is_ready=False)
        return Awaited(waits is None, now.because(why))

    def _note_states(self) -> None:
        """Of the awaited runs that are not known yet."""
        awaited = {newest.after for _, newest in self._read.values()} - {""} - self._states.keys()
        told: dict[str, str] = {}
        if self._has_store and awaited:
            sql = "SELECT run_id, status FROM ingest.newest WHERE list_contains(?, run_id)"
            told = dict(self._store.rows(sql, [sorted(awaited)]))  # type: ignore[arg-type]
        for run_id in awaited:
            unknown = self._of_folder if self._has_store else self._in_journals
            self._states[run_id] = told.get(run_id) or unknown(run_id)

    def _in_journals(self, run_id: str) -> str | None:
        """Nobody knows without the store whether a lost run will be resumed by itself, so it is taken for one that will."""
        if self._of_folder(run_id) is None:
            return None
        try:
            status = latest_status(RunDir(self._home.runs / run_id)).status
        except (OSError, GanRuntimeError):
            return UNREADABLE
        return "queued" if status == "lost" else status

    def _of_folder(self, run_id: str) -> str | None:
        """Of a run of which nothing is known: it was set aside, or is gone, and then its folder is too."""
        if not is_run_name(run_id):
            return None
        try:
            (self._home.runs / run_id).lstat()
        except FileNotFoundError:
            return None
        except OSError:  # nobody can tell
            pass
        return UNREADABLE


def _read(run: RunDir, known: tuple[Stamp, StatusChange] | None) -> tuple[Stamp, StatusChange]:
    status = run.supervisor_journal.stat()
    stamp = (status.st_size, status.st_mtime_ns)
    return known if known and known[0] == stamp else (stamp, latest_status(run))
