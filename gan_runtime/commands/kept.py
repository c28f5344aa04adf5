"""Commands about what is kept of runs: marks, the best checkpoint, the bin. Part of `Commands`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pydantic import ValidationError

from gan_runtime.base.errors import CheckpointError, FieldError, RunStateError, SpecError, quoted
from gan_runtime.commands.bound import Bound, change
from gan_runtime.records import journal, run_folder
from gan_runtime.records.journal import ACTIVE, Marked
from gan_runtime.records.record import MAX_REMARK, MAX_TAGS
from gan_runtime.records.run_folder import RunDir, latest_status, steps_per_epoch
from gan_runtime.supervision import trash
from gan_runtime.training import checkpoints, trained
from gan_runtime.training.checkpoints import first_not_finite

log = logging.getLogger("gan_runtime")
_ALLOWED = {
    "tags": (
        f"up to {MAX_TAGS} tags, each of up to 40 letters, digits, '.', '_', '-' and spaces between"
        " them"
    ),
    "remark": f"up to {MAX_REMARK:,} characters that can be seen",
}
_NAMED = {"tags": "tags", "remark": "note"}


class KeepCommands(Bound):
    """What may be asked of what is kept."""

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
        """Changes what is not None, of each of the runs: `tags` are all of them, `remark` a note of
        some lines.

        A pinned run stands first and is not deleted; a hidden one is left out of lists.

        Raises:
            SpecError: a tag or the note is too long, or has odd characters; nothing is changed.
            HomeError: the home cannot be written.
        """
        wanted = None if tags is None else [tag.strip() for tag in tags]
        given = {"tags": wanted, "remark": remark}
        try:
            record = Marked(
                tags=wanted, remark=remark, pinned=pinned, hidden=hidden, asker=self.actor.name
            )
        except ValidationError as error:
            name = str(error.errors()[0]["loc"][0])
            raise SpecError([_refused(name, given[name])]) from None
        for run in map(self.home.run_dir, run_ids):
            journal.append(run.supervisor_journal, latest_status(run).attempt, record)
            run.announce()

    @change
    def keep_best(self, run_id: str, epoch: int, reason: str) -> None:
        """Makes the weights that a run had after an epoch its best checkpoint, and says so in its
        events.

        The weights are those of the run's snapshots; all else that a checkpoint holds, such as the
        optimizers, is the newest one's. A run that goes on later chooses its best checkpoint as it
        trains. `reason`: by which number, in words.

        Raises:
            RunStateError: it is training.
            CheckpointError: it has no checkpoint, or no weights of that epoch, or those of its
                pictures are an average.
            HomeError: there is no space for it; the best checkpoint stays as it was.
        """
        run = self.home.run_dir(run_id)
        state = latest_status(run)
        if state.status in ACTIVE:
            raise RunStateError(
                f"run {run_id} is {state.status}: its best checkpoint can be chosen at its end."
            )
        kept = trained.stored_epochs(run)
        if epoch not in kept:
            raise CheckpointError(_not_kept(run, epoch, kept))
        newest = checkpoints.load(run.checkpoints, "newest")
        arrays = {**newest.arrays, **checkpoints.load_snapshot(run.snapshots, epoch)}
        if broken := first_not_finite(arrays):
            raise CheckpointError(
                f"the weights of epoch {epoch} cannot be used: {broken} holds numbers too large for"
                " the half precision that they are kept in: take another epoch."
            )
        checkpoints.replace_best(
            run.checkpoints, arrays, epoch * steps_per_epoch(run), newest.wall_s
        )
        message = (
            f"The best checkpoint is that of epoch {epoch} now, by {reason}, as the"
            f" {self.actor.name} asked."
        )
        event = journal.Event(level="info", topic="checkpoint", message=message)
        journal.append(run.supervisor_journal, state.attempt, event)
        run.announce()

    @change
    def delete(self, run_id: str) -> str:
        """Moves a run into the bin, from which it can be restored for 30 days; returns its key
        there.

        Raises:
            RunStateError: it is training, or pinned.
            HomeError: the home cannot be written.
        """
        run = self.home.run_dir(run_id)
        status = latest_status(run).status
        if status in ACTIVE:
            raise RunStateError(f"run {run_id} is {status}: stop it first, then delete it.")
        if run_folder.marks_of(run).pinned:
            raise RunStateError(f"run {run_id} is pinned: unpin it first, then delete it.")
        key = trash.put(run, self.actor.name)
        self.measure()
        log.info("run %s is in the bin, as the %s asked", run_id, self.actor.name)
        return key

    @change
    def restore(self, key: str) -> RunDir:
        """Brings a run back from the bin, with all that it had. `key`: of `bin.listed`.

        Raises:
            UnknownRunError: it is not in the bin.
            RunStateError: another run has its id by now.
            HomeError: the home cannot be written.
        """
        run = trash.restore(self.home, key)
        self.measure()
        log.info("run %s is restored from the bin, as the %s asked", run.run_id, self.actor.name)
        return run

    @change
    def remove_for_good(self, keys: Sequence[str]) -> None:
        """Removes runs in the bin before their time, and frees their space. This cannot be undone.

        Raises:
            UnknownRunError: one of them is not in the bin; those before it are removed.
            HomeError: the home cannot be written.
        """
        for key in keys:
            trash.remove(self.home, key)
            log.info(
                "run %s is removed from the bin for good, as the %s asked", key, self.actor.name
            )
        self.measure()


def _refused(name: str, given: object) -> FieldError:
    return FieldError(
        _NAMED[name],
        f"{_NAMED[name]} {'are' if name == 'tags' else 'is'} {quoted(given)}, but allowed are"
        f" {_ALLOWED[name]}.",
    )


def _not_kept(run: RunDir, epoch: int, kept: list[int]) -> str:
    if kept:
        return (
            f"epoch is {epoch}, but run {run.run_id} has kept the weights of"
            f" {checkpoints.epochs_in_words(kept)}: use one of them."
        )
    return (
        f"run {run.run_id} has kept no weights of its epochs here: train with weight_snapshots=yes"
        " and samples_from=live; bundles hold none."
    )
