"""Commands of the queue: submit and reorder runs and studies, and make a run wait for
another run.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from gan_runtime.base.errors import HomeError, RunStateError
from gan_runtime.commands.base import CommandGroup, change
from gan_runtime.jobs import core_jobs
from gan_runtime.records import journal
from gan_runtime.records.home import Home, next_number, next_rank
from gan_runtime.records.journal import ACTIVE, Created, StatusChange, StudyPlace
from gan_runtime.records.run_folder import RunDir, latest_status, write_json
from gan_runtime.records.states import Reason, cause
from gan_runtime.spec import RunSpec
from gan_runtime.studies.design import StudyDesign
from gan_runtime.supervision import trash
from gan_runtime.supervision.admission import (
    Admission,
    Dependency,
    admit,
    check_dependency,
    require_space,
)

Direction = Literal["up", "down", "next"]
RUN_COLORS = 8  # length of the run palette in dashboard/palette.py
LOCK = ".queue.lock"
LOCK_SECONDS = 10.0  # a move takes milliseconds
_Entries = list[tuple[RunDir, StatusChange]]  # runs that move together, such as those of a study


class QueueCommands(CommandGroup):
    """Submitting runs, and changing their order."""

    @change
    def submit(self, spec: RunSpec, preset: str = "", after: Dependency | None = None) -> RunDir:
        """Queues a new run, which starts in its turn and not before its dependency `after` allows.

        All checks come first, so a refused run leaves no files.

        Raises:
            SpecError: this host cannot train the run, as for `admit`.
            UnknownRunError, RunStateError: the run cannot start after that one, as
                `check_dependency`.
            HomeError: the home folder cannot be written.
        """
        admission = admit(spec, self.host(), self.home, after.run_id if after else "")
        require_space(self.home.prepare(), [admission])
        if after:
            check_dependency(self.home, (), after)
        return self._queue(admission, preset, None, after)

    @change
    def submit_study(self, design: StudyDesign) -> list[RunDir]:
        """Queues all runs of a study in their order; nothing is queued unless this host can train
        every one of them.

        Raises as `submit`.
        """
        host = self.host()
        admissions = [admit(planned.spec, host, self.home) for planned in design.runs]
        require_space(self.home.prepare(), admissions)
        study_id = f"study-{next_number(self.home.runs):04d}"
        queued: list[RunDir] = []
        try:
            for planned, admission in zip(design.runs, admissions, strict=True):
                place = StudyPlace(
                    study_id=study_id,
                    question=design.question,
                    title=design.title,
                    variant=planned.variant,
                    variant_index=planned.index,
                    repeat=planned.repeat,
                )
                queued.append(self._queue(admission, design.question.replace("_", "-"), place))
        except HomeError:  # a full disk must not leave half a study
            for run in reversed(queued):
                # A run that already trains is not changed.
                if latest_status(run).status not in ACTIVE:
                    trash.discard(self.home, run.path)
            raise
        return queued

    def _queue(
        self,
        admission: Admission,
        preset: str,
        study: StudyPlace | None,
        after: Dependency | None = None,
    ) -> RunDir:
        """`preset`: the prefix of the run's name, and the preset of the run if there is one."""
        spec, home = admission.spec, self.home
        waits_for = core_jobs.job_for(home, spec.dataset) if admission.waits_for_data else ""
        with tempfile.TemporaryDirectory(dir=home.runs, prefix=".new-") as scratch:
            run = RunDir(Path(scratch) / "run")
            run.path.mkdir()
            write_json(run.spec_path, spec.model_dump())
            created = Created(
                spec=spec.model_dump(),
                accelerator=admission.accelerator,
                color=len(home.run_dirs()) % RUN_COLORS,
                preset=preset,
                study=study,
                images_per_step=spec.images_per_step,
                asker=self.actor.name,
            )
            queued = _first_status(spec, waits_for, after, next_rank(home))
            journal.append(run.supervisor_journal, 1, created, queued)
            run_id = f"{preset or 'run'}-{next_number(home.runs):04d}"
            return RunDir(run.path.rename(home.runs / run_id))

    @change
    def move_in_queue(
        self, run_id: str, direction: Direction, order: Sequence[Sequence[str]]
    ) -> None:
        """Moves a run, together with the runs of its study, one place up or down or to the front.

        `order`: ids of the waiting runs as the actor sees them; those of a study are one entry.

        The move is relative to the current order: when two users move at the same time, both moves
        count. Runs that have started in the meantime are skipped. At the end of the queue nothing
        happens.

        Raises:
            RunStateError: the run does not wait.
        """
        run = self.home.run_dir(run_id)
        with _queue_lock(self.home):
            waiting = _waiting([[RunDir(self.home.runs / each) for each in ids] for ids in order])
            place = next(
                (
                    place
                    for place, entries in enumerate(waiting)
                    if any(each.run_id == run_id for each, _ in entries)
                ),
                None,
            )
            if place is None:
                raise RunStateError(
                    f"run {run_id} is {latest_status(run).status}: only a waiting run can be moved."
                )
            to = {"up": max(0, place - 1), "down": min(len(waiting) - 1, place + 1), "next": 0}
            moved = [*waiting[:place], *waiting[place + 1 :]]
            moved.insert(to[direction], waiting[place])
            _write_order([entry for entries in moved for entry in entries], self.actor.name)

    @change
    def start_after(self, run_ids: Sequence[str], after: Dependency | None) -> None:
        """Lets waiting runs start once another run has ended, or finished; None: in their turn.

        Runs that have started are skipped.

        Raises:
            UnknownRunError, RunStateError: as `check_dependency`; or none of the runs waits.
        """
        with _queue_lock(self.home):
            states = [(run, latest_status(run)) for run in map(self.home.run_dir, run_ids)]
            by_id = {run.run_id: state.status for run, state in states}
            if "queued" not in by_id.values():
                sentence = ", ".join(f"run {run_id} is {state}" for run_id, state in by_id.items())
                raise RunStateError(f"{sentence}: only a waiting run can wait for another run.")
            if after:
                check_dependency(self.home, by_id, after)
            for run, state in states:
                if state.status == "queued":
                    waiting = _status_after(state, after, self.actor.name)
                    journal.append(run.supervisor_journal, state.attempt, waiting)


def dependency_of(run: RunDir) -> Dependency | None:
    """The dependency that a run waits for, or waited for; None if it starts, or started, in its
    turn.
    """
    queued = [
        state for _, state in journal.statuses(run.supervisor_journal) if state.status == "queued"
    ]
    return (
        Dependency(queued[-1].after, queued[-1].after_if) if queued and queued[-1].after else None
    )


def _first_status(
    spec: RunSpec, waits_for: str, after: Dependency | None, rank: float
) -> StatusChange:
    """The first state of a run. The owner finds out whether the run before it has ended."""
    why = after.cause("queued") if after else None
    if waits_for:
        why = cause(Reason.WAITS_FOR_DATA, data_set=spec.dataset, percent=0)
    order = {"after": after.run_id, "after_if": after.condition} if after else {}
    why = why or cause(Reason.WAITS_FOR_DEVICE)
    return StatusChange.of("queued", why, queue_rank=rank, waits_for=waits_for, **order)


def _status_after(state: StatusChange, after: Dependency | None, actor: str) -> StatusChange:
    why = (after.cause("queued") if after else None) or cause(Reason.WAITS_FOR_DEVICE)
    change = {
        "after": after.run_id if after else "",
        "after_if": after.condition if after else "ended",
        "at": journal.now(),
        "asker": actor,
    }
    if not state.waits_for:  # otherwise the run waits for its data first
        state = state.because(why)
    return state.model_copy(update=change)


def _waiting(order: Sequence[Sequence[RunDir]]) -> list[_Entries]:
    """The runs that still wait, by their places."""
    read = [
        [(run, latest_status(run)) for run in runs if run.supervisor_journal.exists()]
        for runs in order
    ]
    waiting = [[entry for entry in entries if entry[1].status == "queued"] for entries in read]
    for entries in waiting:
        entries.sort(key=_place)
    return sorted(
        (entries for entries in waiting if entries), key=lambda entries: _place(entries[0])
    )


def _place(entry: tuple[RunDir, StatusChange]) -> tuple[float, str]:
    return (entry[1].queue_rank or 0.0, entry[0].run_id)


def _write_order(order: _Entries, actor: str) -> None:
    """Distributes the ranks of these runs among them, so that runs queued in the meantime stay
    behind.

    Ranks are written from the back, so a crash leaves two runs with one rank, which the next move
    separates, and never a run without a rank.
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
def _queue_lock(home: Home) -> Iterator[None]:
    """A lock that allows one change of the queue at a time, over all processes."""
    try:
        with FileLock(home.runs / LOCK, timeout=LOCK_SECONDS):
            yield
    except Timeout:
        raise RunStateError("another process changes the queue now: try again.") from None
