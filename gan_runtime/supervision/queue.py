"""The runs of a home that wait or train: as the store says or, while that cannot be asked, as their
journals say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.records import journal
from gan_runtime.records.actors import operator
from gan_runtime.records.home import Home, is_run_name
from gan_runtime.records.journal import ENDED, Created
from gan_runtime.records.reasons import Reason, cause
from gan_runtime.records.run_folder import RunDir, Stamp
from gan_runtime.records.run_state import latest_status
from gan_runtime.store.folder_watcher import folders_changed_ns
from gan_runtime.store.store import Store
from gan_runtime.supervision.starters import Attempt

# ---- waiting and training runs -------------------------------------------------------------------


@dataclass(frozen=True)
class LiveRun:
    """A run that waits or trains."""

    run: RunDir
    status: str
    attempt: int
    accelerator: str

    @property
    def key(self) -> tuple[str, int]:
        """Run and attempt."""
        return (self.run.run_id, self.attempt)

    @property
    def as_attempt(self) -> Attempt:
        """For its starter."""
        return Attempt(self.run, self.attempt, self.accelerator)


def of_store(home: Home, store: Store) -> list[LiveRun]:
    """Training runs first, then the queue in its order."""
    rows = store.rows(
        "SELECT run_id, status, attempt, accelerator FROM runs_live ORDER BY status = 'queued',"
        " queue_rank, run_id"
    )
    return [
        LiveRun(RunDir(home.runs / run_id), status, attempt, accelerator)
        for run_id, status, attempt, accelerator in rows
    ]


@dataclass(frozen=True)
class _JournalState:
    """What the journals of a run said when they were as `stamps`; `live` is None for one that has
    ended.
    """

    stamps: dict[str, Stamp]
    live: LiveRun | None
    queue_rank: float


class LiveInJournals:
    """Waiting and training runs while the store cannot be asked.

    Of the runs that had ended before, only those are read whose folders have changed since: new
    ones, and those that were resumed. Reading all might take minutes.
    """

    def __init__(self, home: Home) -> None:
        self._home, self._changed_ns = home, folders_changed_ns(home)
        self._read_states: dict[str, _JournalState] = {}

    def look(self, last: Iterable[LiveRun]) -> list[LiveRun]:
        """In the order of `of_store`.

        `last`: as of the last look. What cannot be read stays as it was.
        """
        before, self._changed_ns = self._changed_ns, folders_changed_ns(self._home)
        live = {run.run.run_id: run for run in last}
        changed = {name for name, at in self._changed_ns.items() if before.get(name) != at}
        for name in sorted(changed | live.keys() | self._read_states.keys()):
            if name in self._changed_ns and is_run_name(name):
                try:
                    self._read(RunDir(self._home.runs / name), live.get(name))
                except (OSError, GanRuntimeError):
                    del self._changed_ns[name]  # to be read the next time
            else:
                self._read_states.pop(name, None)
                live.pop(name, None)
        live |= {
            name: state.live for name, state in self._read_states.items() if state.live is not None
        }
        ended = {name for name, state in self._read_states.items() if state.live is None}
        return sorted((run for name, run in live.items() if name not in ended), key=self._place)

    def _read(self, run: RunDir, last: LiveRun | None) -> None:
        stamps, state = run.journal_stats(), self._read_states.get(run.run_id)
        if state is not None and state.stamps == stamps:
            return
        accelerator = last.accelerator if last is not None else _accelerator(run)
        newest = latest_status(run)
        live = None
        if newest.status not in ENDED and accelerator:
            live = LiveRun(run, newest.status, newest.attempt, accelerator)
        self._read_states[run.run_id] = _JournalState(stamps, live, newest.queue_rank or 0.0)

    def _place(self, live: LiveRun) -> tuple[bool, float, str]:
        state = self._read_states.get(live.run.run_id)
        return (live.status == "queued", state.queue_rank if state else 0.0, live.run.run_id)


def _accelerator(run: RunDir) -> str:
    """As it was submitted; empty where the first line does not say."""
    first = journal.first(run.supervisor_journal)
    return first.accelerator if isinstance(first, Created) else ""


# ---- runs whose trainer never began wait again, in their old place -------------------------------


NEXT_OWNER = operator("next owner")
# In a row: what ends each owner just there, such as too little memory, needs a person.
MOST_REQUEUES = 3


def requeue(run: RunDir, attempt: int) -> bool:
    """Queues it as the next attempt, since an attempt only goes on; False after MOST_REQUEUES times
    in a row.
    """
    waits = [
        change
        for _, change in journal.statuses(run.supervisor_journal)
        if change.status == "queued"
    ]
    newest = waits[-MOST_REQUEUES:]
    if not waits or (
        len(newest) == MOST_REQUEUES and all(wait.asker == NEXT_OWNER.name for wait in newest)
    ):
        return False
    again = waits[-1].because(cause(Reason.REQUEUED), asker=NEXT_OWNER.name)
    journal.append(run.supervisor_journal, attempt + 1, again)
    return True
