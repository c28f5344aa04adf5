"""Commands about the queue: another order, and what a run waits for. Part of `Commands`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Literal

from filelock import FileLock, Timeout

from gan_runtime.base.errors import RunStateError
from gan_runtime.commands.bound import Bound, change
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.records.states import Reason, cause
from gan_runtime.supervision.admission import Dependency, check_dependency

Way = Literal["up", "down", "next"]
LOCK = ".queue.lock"
PATIENCE_SECONDS = 10.0  # a move takes milliseconds
_Item = list[tuple[RunDir, StatusChange]]


class QueueCommands(Bound):
    """What may be asked of the queue."""

    @change
    def move_in_queue(self, run_id: str, way: Way, items: Sequence[Sequence[str]]) -> None:
        """Moves what a run belongs to one place up or down, or to the front.

        `items`: ids of what waits, as its actor sees it; the runs of an item stay together, such as
        those of a study.

        Meant relative to the order as it is by now: of two people who move at the same time both
        are right. Runs that have started meanwhile are left alone. Nothing happens at the end of
        the way.

        Raises:
            RunStateError: the run does not wait.
        """
        moved = self.home.run_dir(run_id)
        with _alone(self.home):
            waiting = _in_order(
                [[RunDir(self.home.runs / each) for each in item] for item in items]
            )
            place = next((place for place, item in enumerate(waiting) if _has(item, moved)), None)
            if place is None:
                raise RunStateError(
                    f"run {run_id} is {latest_status(moved).status}: only a waiting run can be"
                    " moved."
                )
            to = {"up": max(0, place - 1), "down": min(len(waiting) - 1, place + 1), "next": 0}[way]
            order = [*waiting[:place], *waiting[place + 1 :]]
            order.insert(to, waiting[place])
            _write([entry for item in order for entry in item], self.actor.name)

    @change
    def start_after(self, run_ids: Sequence[str], after: Dependency | None) -> None:
        """Lets waiting runs start once another run has ended, or finished; None: in their turn.

        Those that have started are left alone.

        Raises:
            UnknownRunError, RunStateError: see `dependencies.check`; or none of the runs waits.
        """
        with _alone(self.home):
            waiting = [(run, latest_status(run)) for run in map(self.home.run_dir, run_ids)]
            states = {run.run_id: state.status for run, state in waiting}
            if "queued" not in states.values():
                told = ", ".join(f"run {run_id} is {status}" for run_id, status in states.items())
                raise RunStateError(f"{told}: only a waiting run can be told what to wait for.")
            if after:
                check_dependency(self.home, states, after)
            for run, state in waiting:
                if state.status == "queued":
                    journal.append(
                        run.supervisor_journal, state.attempt, _after(state, after, self.actor.name)
                    )


def _after(state: StatusChange, after: Dependency | None, actor: str) -> StatusChange:
    why = (after.cause("queued") if after else None) or cause(Reason.WAITS_FOR_DEVICE)
    change = {
        "after": after.run_id if after else "",
        "after_if": after.condition if after else "ended",
        "at": journal.now(),
        "asker": actor,
    }
    if not state.waits_for:  # else its data comes first
        state = state.because(why)
    return state.model_copy(update=change)


def waited_for(run: RunDir) -> Dependency | None:
    """What a run was last told to wait for; None where it starts, or started, in its turn."""
    wishes = [
        change
        for _, change in journal.statuses(run.supervisor_journal)
        if change.status == "queued"
    ]
    return (
        Dependency(wishes[-1].after, wishes[-1].after_if) if wishes and wishes[-1].after else None
    )


def _in_order(items: Sequence[Sequence[RunDir]]) -> list[_Item]:
    """What still waits, by the places that it has now."""
    read = [
        [(run, latest_status(run)) for run in item if run.supervisor_journal.exists()]
        for item in items
    ]
    waiting = [[entry for entry in item if entry[1].status == "queued"] for item in read]
    for item in waiting:
        item.sort(key=_place)
    return sorted((item for item in waiting if item), key=lambda item: _place(item[0]))


def _place(entry: tuple[RunDir, StatusChange]) -> tuple[float, str]:
    return (entry[1].queue_rank or 0.0, entry[0].run_id)


def _has(item: _Item, run: RunDir) -> bool:
    return any(each.run_id == run.run_id for each, _ in item)


def _write(order: _Item, actor: str) -> None:
    """Deals out anew the places that these runs have, so that whoever joined the queue meanwhile
    stays behind them. From the back on: whoever is killed here leaves two runs with one place,
    never a run without, and the next move parts them.
    """
    ranks = sorted(state.queue_rank or 0.0 for _, state in order)
    if len(set(ranks)) < len(ranks):
        ranks = [ranks[-1] - distance for distance in reversed(range(len(ranks)))]
    for (run, state), rank in reversed(list(zip(order, ranks, strict=True))):
        if rank != state.queue_rank:
            change = {"queue_rank": rank, "at": journal.now(), "asker": actor}
            if not state.after and not state.waits_for:
                state = state.because(cause(Reason.MOVED))
            journal.append(run.supervisor_journal, state.attempt, state.model_copy(update=change))


@contextlib.contextmanager
def _alone(home: Home) -> Iterator[None]:
    """One change of the queue at a time, whoever asks for it in whichever process."""
    try:
        with FileLock(home.runs / LOCK, timeout=PATIENCE_SECONDS):
            yield
    except Timeout:
        raise RunStateError("the queue is being changed by somebody else: try again.") from None
