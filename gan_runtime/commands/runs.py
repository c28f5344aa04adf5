"""Commands about runs: stop, resume, rename, mark, choose the best checkpoint, delete, restore."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from gan_runtime.base.errors import CheckpointError, FieldError, RunStateError, SpecError, quoted
from gan_runtime.commands.base import CommandGroup, change
from gan_runtime.records import journal, run_folder
from gan_runtime.records.journal import ACTIVE, ENDED, Marked, Renamed
from gan_runtime.records.record import MAX_REMARK, MAX_TAGS
from gan_runtime.records.run_folder import RunDir, latest_status, steps_per_epoch
from gan_runtime.records.states import CUT_SHORT
from gan_runtime.spec import RunSpec
from gan_runtime.supervision import queue, trash
from gan_runtime.targets import configuration
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.checkpoints import first_not_finite

log = logging.getLogger("gan_runtime")
_ALLOWED = {
    "tags": (
        f"up to {MAX_TAGS} tags, each of up to 40 letters, digits, '.', '_', '-' and spaces between"
        " them"
    ),
    "remark": f"up to {MAX_REMARK:,} visible characters",
}
_NAMED = {"tags": "tags", "remark": "note"}


class RunCommands(CommandGroup):
    """Changes of runs that are queued, training or ended."""

    @change
    def stop(self, run_id: str) -> None:
        """Asks a waiting or training run to save and end.

        Raises:
            RunStateError: it has ended already.
        """
        self._stop(self.home.run_dir(run_id))

    @change
    def stop_all(self, run_ids: Sequence[str]) -> None:
        """Requests the end of all given runs that wait or train, the last of the queue first, so
        that none starts in the meantime.
        """
        states = [(run, latest_status(run)) for run in map(self.home.run_dir, run_ids)]
        for run, state in sorted(
            states, key=lambda entry: (entry[1].status != "queued", -(entry[1].queue_rank or 0.0))
        ):
            if state.status not in ENDED:
                with contextlib.suppress(RunStateError):  # the run has just ended
                    self._stop(run)

    def _stop(self, run: RunDir) -> None:
        status = latest_status(run).status
        if status in ENDED:
            raise RunStateError(
                f"run {run.run_id} is {status} already: only a queued or training run can be"
                " stopped."
            )
        run.request_stop(self.actor.name)

    @change
    def fetch_checkpoints(self, run_id: str) -> None:
        """Asks for the checkpoints of a run that trains in a home on another host, which otherwise
        come at its end.

        Raises:
            RunStateError: it has ended, or trains where this home is seen.
        """
        run = self.home.run_dir(run_id)
        if latest_status(run).status in ENDED or not configuration.is_apart(self.home, run.spec()):
            raise RunStateError(
                f"the checkpoints of {run_id} are here as they are saved, or at its end."
            )
        run.fetch_file.touch()

    @change
    def resume(self, run_id: str, changes: Mapping[str, Any] | None = None) -> None:
        """Queues an ended run again, from its last checkpoint. Raises as `queue.resume`."""
        queue.resume(self.home, self.home.run_dir(run_id), changes or {}, self.actor.name)

    @change
    def resume_all(self, run_ids: Sequence[str]) -> None:
        """Queues all given runs that ended early again, in this order.

        Raises:
            RunStateError: no run can be resumed; the message has the reason for the first run.
        """
        runs = [self.home.run_dir(run_id) for run_id in run_ids]
        refusals = {
            run: queue.resume_refusal(run) for run in runs if latest_status(run).status in CUT_SHORT
        }
        if refusals and all(refusals.values()):
            raise RunStateError(next(iter(refusals.values())))
        for run, refusal in refusals.items():
            if not refusal:
                queue.resume(self.home, run, {}, self.actor.name)

    @change
    def rename(self, run_id: str, name: str) -> None:
        """Gives a run another name in all lists; its id stays.

        Raises:
            SpecError: the name is empty, too long, or has odd characters.
        """
        run = self.home.run_dir(run_id)
        if not name:
            option = RunSpec.options()["name"]
            sentence = f"{option.named} is '', but allowed is {option.allowed}, and not empty."
            raise SpecError([FieldError("name", sentence)])
        RunSpec.parse({"name": name})
        renamed = Renamed(name=name, asker=self.actor.name)
        journal.append(run.supervisor_journal, latest_status(run).attempt, renamed)
        run.announce()

    @change
    def mark(
        self,
        run_ids: Sequence[str],
        *,
        tags: Sequence[str] | None = None,
        remark: str | None = None,
        pinned: bool | None = None,
        hidden: bool | None = None,
    ) -> None:
        """Changes marks of the runs; None leaves a mark unchanged. `tags`: replaces all tags;
        `remark`: a note of a few lines. Pinned runs are first in lists and cannot be deleted;
        hidden runs are left out of lists.

        Raises:
            SpecError: a tag or the note is too long, or has odd characters; nothing is changed.
            HomeError: the home cannot be written.
        """
        values = {"tags": None if tags is None else [tag.strip() for tag in tags], "remark": remark}
        try:
            record = Marked.model_validate(
                {**values, "pinned": pinned, "hidden": hidden, "asker": self.actor.name}
            )
        except ValidationError as error:
            raise SpecError([_not_allowed(str(error.errors()[0]["loc"][0]), values)]) from None
        for run in map(self.home.run_dir, run_ids):
            journal.append(run.supervisor_journal, latest_status(run).attempt, record)
            run.announce()

    @change
    def keep_best(self, run_id: str, epoch: int, reason: str) -> None:
        """Makes the weights after an epoch the best checkpoint of a run, and logs an event.

        The weights are those of the run's snapshots; the optimizers and the rest are those of the
        newest checkpoint. A resumed run chooses its best checkpoint as it trains. `reason`: the
        score and its value.

        Raises:
            RunStateError: the run is training.
            CheckpointError: it has no checkpoint, or no weights of that epoch.
            HomeError: the disk has too little space; the best checkpoint is unchanged.
        """
        run = self.home.run_dir(run_id)
        state = latest_status(run)
        if state.status in ACTIVE:
            raise RunStateError(
                f"run {run_id} is {state.status}: choose its best checkpoint once it has ended."
            )
        epochs = inference.stored_epochs(run)
        if epoch not in epochs:
            raise CheckpointError(_no_weights(run, epoch, epochs))
        newest = checkpoints.load(run.checkpoints, "newest")
        arrays = {**newest.arrays, **checkpoints.load_snapshot(run.snapshots, epoch)}
        if broken := first_not_finite(arrays):
            raise CheckpointError(
                f"the weights of epoch {epoch} cannot be used: {broken} holds numbers too large for"
                " the half precision in which they are stored: take another epoch."
            )
        step = epoch * steps_per_epoch(run)
        checkpoints.replace_best(run.checkpoints, arrays, step, newest.wall_s)
        message = (
            f"The best checkpoint is now that of epoch {epoch}, by {reason}. Requested by:"
            f" {self.actor.name}."
        )
        event = journal.Event(level="info", topic="checkpoint", message=message)
        journal.append(run.supervisor_journal, state.attempt, event)
        run.announce()

    @change
    def delete(self, run_id: str) -> str:
        """Moves a run into the trash, from which it can be restored for 30 days; returns its key
        there.

        Raises:
            RunStateError: it is training, pinned, or another run waits to start from its weights.
            HomeError: the home cannot be written.
        """
        run = self.home.run_dir(run_id)
        status = latest_status(run).status
        if status in ACTIVE:
            raise RunStateError(f"run {run_id} is {status}: stop it first, then delete it.")
        if run_folder.marks_of(run).pinned:
            raise RunStateError(f"run {run_id} is pinned: unpin it first, then delete it.")
        if dependents := queue.starting_from(self.home, run_id):
            raise RunStateError(
                f"run {run_id} is needed, as run {dependents[0]} starts from its weights: stop"
                f" {dependents[0]} first, or wait until it trains."
            )
        key = trash.put(run, self.actor.name)
        self.measure()
        log.info("%s moves run %s to the trash", self.actor.name, run_id)
        return key

    @change
    def restore(self, key: str) -> RunDir:
        """Restores a run from the trash, with all its files. `key`: of `trash.deleted_runs`.

        Raises:
            UnknownRunError: it is not in the trash.
            RunStateError: another run has its id.
            HomeError: the home cannot be written.
        """
        run = trash.restore(self.home, key)
        self.measure()
        log.info("%s restores run %s from the trash", self.actor.name, run.run_id)
        return run

    @change
    def remove_for_good(self, keys: Sequence[str]) -> None:
        """Permanently deletes runs in the trash, and frees their space.

        Raises:
            UnknownRunError: a run is not in the trash; the runs before it are deleted.
            HomeError: the home cannot be written.
        """
        for key in keys:
            trash.remove(self.home, key)
            log.info("%s deletes run %s from the trash", self.actor.name, key)
        self.measure()


def _not_allowed(name: str, values: Mapping[str, object]) -> FieldError:
    title, verb = _NAMED[name], "are" if name == "tags" else "is"
    return FieldError(
        title, f"{title} {verb} {quoted(values[name])}, but allowed are {_ALLOWED[name]}."
    )


def _no_weights(run: RunDir, epoch: int, epochs: list[int]) -> str:
    if epochs:
        return (
            f"epoch is {epoch}, but run {run.run_id} stores the weights of"
            f" {checkpoints.epochs_in_words(epochs)}: use one of them."
        )
    return (
        f"run {run.run_id} stores no weights of its epochs: train with weight_snapshots=yes;"
        " bundles hold none."
    )
