"""What a waiting run waits for besides its turn: another run ("when this ends, start that"), and
its data set.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from gan_runtime.base.errors import GanRuntimeError, JobError, RunStateError
from gan_runtime.jobs import data_jobs, job_queue
from gan_runtime.jobs.folder import JobLook
from gan_runtime.records.home import Home, is_run_name
from gan_runtime.records.journal import Condition, StatusChange
from gan_runtime.records.reasons import WAITS_FOR_A_RUN, Cause, Reason, cause
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import latest_status
from gan_runtime.records.states import CUT_SHORT, ENDED
from gan_runtime.store.store import Store

# ---- what may be asked for -----------------------------------------------------------------------


UNREADABLE = "unreadable"  # instead of the state of a run that was set aside


@dataclass(frozen=True)
class After:
    """`run_id`: the run before it. `condition`: whether that must have finished, or only ended.

    Ended is finished, stopped, failed, lost or deleted.
    """

    run_id: str
    condition: Condition = "ended"

    def cause(self, status: str | None) -> Cause | None:
        """Why the run still waits; None when it need not.

        `status`: of the run before it; None when that is deleted, UNREADABLE when its journals
        cannot be read.
        """
        must_finish, is_over = self.condition == "finished", status in (*ENDED, None)
        if status == UNREADABLE:
            waits = (
                Reason.WAITS_FOR_FINISH_OF_UNREADABLE
                if must_finish
                else Reason.WAITS_FOR_END_OF_UNREADABLE
            )
        elif not is_over:
            waits = Reason.WAITS_FOR_FINISH if must_finish else Reason.WAITS_FOR_END
        elif not must_finish or status == "finished":
            return None
        elif status is None:
            waits = Reason.WAITS_FOR_FINISH_OF_DELETED
        else:
            return cause(Reason.WAITS_FOR_FINISH_OF_CUT_SHORT, run=self.run_id, status=status)
        return cause(waits, run=self.run_id)


def check(home: Home, waiting: Collection[str], after: After) -> None:
    """`waiting`: the runs that are to wait.

    Raises:
        UnknownRunError: there is no run to wait for.
        RunStateError: it could never start.
    """
    state = latest_status(home.run_dir(after.run_id))
    if after.condition == "finished" and state.status in CUT_SHORT:
        raise RunStateError(
            f"run {after.run_id} is {state.status} and does not finish as it is: resume it first,"
            " or start after it however it ends."
        )
    run_id, seen = after.run_id, set()
    while run_id not in waiting:
        seen.add(run_id)
        if state.status != "queued" or not state.after or state.after in seen:
            return
        run_id = state.after
        if not (home.runs / run_id).is_dir():
            return
        state = latest_status(home.run_dir(run_id))
    raise RunStateError(
        f"run {run_id} cannot wait for itself."
        if run_id == after.run_id
        else (
            f"run {after.run_id} waits for run {run_id} already: neither of the two would ever"
            " start."
        )
    )


# ---- data sets -----------------------------------------------------------------------------------


NOTED_STEPS = 10  # of the way: each is a line in the run's journal


@dataclass(frozen=True)
class Readiness:
    """`news`: what the run's journal should say now; `failure`: why there will be no data."""

    is_ready: bool
    news: StatusChange | None = None
    failure: Cause | None = None


READY = Readiness(is_ready=True)


class DataDependencies:
    """Asked by the supervisor for each waiting run, at each tick; remembers what it has noted."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._jobs: dict[
            tuple[str, int], str
        ] = {}  # run and attempt → the job it waits for; empty: none
        self._noted: dict[
            str, tuple[int, str]
        ] = {}  # run → the newest tenth and data set in its journal

    def of(self, run: RunDir, attempt: int) -> Readiness:
        """Whether the data set is ready. Raises RunStateError as `latest_status`."""
        key = (run.run_id, attempt)
        if key not in self._jobs:
            self._jobs[key] = latest_status(run).waits_for
        if not self._jobs[key]:
            return READY
        try:
            look = job_queue.job_dir(self._home, self._jobs[key]).look()
        except JobError:
            look = None
        if look is None or look.state == "finished":
            # where the folder of the job is gone, the trainer says whether the data is there
            return READY
        name = data_jobs.name_of(look.asked)
        if look.end is not None:
            end = {"state": look.end.state, "message": look.end.reason}
            return Readiness(False, failure=cause(Reason.DATA_NOT_PREPARED, data_set=name, **end))
        return Readiness(False, news=self._news(run, name, look))

    def _news(self, run: RunDir, name: str, look: JobLook) -> StatusChange | None:
        """A line at each tenth of the way."""
        tenth = int(look.progress.share * NOTED_STEPS)
        if self._noted.setdefault(run.run_id, (0, name)) == (tenth, name):
            return None
        self._noted[run.run_id] = (tenth, name)
        newest = latest_status(run)  # a person may have moved it in the queue
        return newest.because(
            cause(Reason.WAITS_FOR_DATA, data_set=name, percent=round(100 * tenth / NOTED_STEPS))
        )


# ---- runs ----------------------------------------------------------------------------------------


Stamp = tuple[int, int]  # bytes of a journal, and the time of its last change in nanoseconds


class RunDependencies:
    """Asked by the supervisor for each waiting run, at each tick. In doubt a run waits."""

    def __init__(self, home: Home, store: Store, goes_on: Callable[[str], bool]) -> None:
        """`goes_on`: whether a lost run will be resumed automatically, and so has not ended."""
        self._home, self._store, self._goes_on = home, store, goes_on
        self._read: dict[
            str, tuple[Stamp, StatusChange]
        ] = {}  # run → its journal, and its newest state
        self._states: dict[str, str | None] = {}  # run before it → its state; None: deleted
        self._has_store = True

    def look(self, waiting: Iterable[RunDir], has_store: bool = True) -> None:
        """Reads what waiting runs wait for, after news.

        `has_store`: whether the store can be asked just now.
        """
        before, self._read, self._states, self._has_store = self._read, {}, {}, has_store
        for run in waiting:
            with contextlib.suppress(OSError, GanRuntimeError):  # `of` raises it too
                self._read[run.run_id] = _newest(run, before.get(run.run_id))
        self._note_states()

    def of(self, run: RunDir) -> Readiness:
        """Whether the run before it has ended.

        Raises OSError, GanRuntimeError while journals cannot be read.
        """
        if run.run_id not in self._read:
            self._read[run.run_id] = _newest(run, None)
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
            return Readiness(waits is None)
        now = latest_status(run)  # a person may have moved it, or let it wait for another one
        if (now.status, now.after, now.after_if) != (newest.status, newest.after, newest.after_if):
            return Readiness(is_ready=False)
        return Readiness(waits is None, now.because(why))

    def _note_states(self) -> None:
        """Of the runs before them that have not been looked up yet."""
        before = {newest.after for _, newest in self._read.values()} - {""} - self._states.keys()
        stored: dict[str, str] = {}
        if self._has_store and before:
            sql = "SELECT run_id, status FROM ingest.newest WHERE list_contains(?, run_id)"
            stored = dict(self._store.rows(sql, [sorted(before)]))  # type: ignore[arg-type]
        for run_id in before:
            otherwise = self._of_folder if self._has_store else self._in_journals
            self._states[run_id] = stored.get(run_id) or otherwise(run_id)

    def _in_journals(self, run_id: str) -> str | None:
        """Only the store says whether a lost run will be resumed automatically; without it a run
        counts as such.
        """
        if self._of_folder(run_id) is None:
            return None
        try:
            status = latest_status(RunDir(self._home.runs / run_id)).status
        except (OSError, GanRuntimeError):
            return UNREADABLE
        return "queued" if status == "lost" else status

    def _of_folder(self, run_id: str) -> str | None:
        """Of a run that the store does not have: set aside, or deleted with its folder."""
        if not is_run_name(run_id):
            return None
        try:
            (self._home.runs / run_id).lstat()
        except FileNotFoundError:
            return None
        except OSError:  # nobody can tell
            pass
        return UNREADABLE


def _newest(run: RunDir, before: tuple[Stamp, StatusChange] | None) -> tuple[Stamp, StatusChange]:
    """`before`: as of the last look, still right where the journal has not changed."""
    file = run.supervisor_journal.stat()
    stamp = (file.st_size, file.st_mtime_ns)
    return before if before and before[0] == stamp else (stamp, latest_status(run))
