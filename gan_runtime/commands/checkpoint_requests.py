"""What may be asked of a run's checkpoints: another one as the best, by a number that was measured later. Part of `commands`."""

from __future__ import annotations

from gan_runtime.base.errors import CheckpointError, RunStateError
from gan_runtime.records import journal
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.journal import ACTIVE
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import latest_status, steps_per_epoch
from gan_runtime.training import checkpoints, snapshots
from gan_runtime.training.finite import first_not_finite


@for_operators
def keep_best(run: RunDir, epoch: int, reason: str, *, asker: Asker) -> None:
    """Makes the weights that a run had after an epoch its best checkpoint, and says so in its events.

    The weights are those of the run's snapshots; all else that a checkpoint holds, such as the optimizers, is the newest one's. A
    run that goes on later chooses its best checkpoint anew, as it trains. `reason`: by which number, in words.

    Raises:
        RunStateError: it is training.
        CheckpointError: it has no checkpoint, or no weights of that epoch, or those of its pictures are an average.
        HomeError: there is no space for it; the best checkpoint stays as it was.
    """
    state = latest_status(run)
    if state.status in ACTIVE:
        raise RunStateError(
            f"run {run.run_id} is {state.status}: its best checkpoint can be chosen at its end."
        )
    kept = choosable(run)
    if epoch not in kept:
        raise CheckpointError(_not_kept(run, epoch, kept))
    newest = checkpoints.load(run.checkpoints, "newest")
    arrays = {**newest.arrays, **snapshots.load_one(run.snapshots, epoch)}
    if broken := first_not_finite(arrays):
        raise CheckpointError(
            f"the weights of epoch {epoch} cannot be used: {broken} holds numbers too large for the half precision that they are "
            "kept in: take another epoch."
        )
    checkpoints.keep_as_best(run.checkpoints, arrays, epoch * steps_per_epoch(run), newest.wall_s)
    message = f"The best checkpoint is that of epoch {epoch} now, by {reason}, as the {asker.name} asked."
    journal.append(
        run.supervisor_journal,
        state.attempt,
        journal.Event(level="info", topic="checkpoint", message=message),
    )
    run.announce()


def choosable(run: RunDir) -> list[int]:
    """The epochs whose weights can become the best checkpoint; none where what a run shows is a moving average of them."""
    if not run.has_checkpoint or run.spec().samples_from == "ema":
        return []
    return snapshots.epochs(run.snapshots)


def _not_kept(run: RunDir, epoch: int, kept: list[int]) -> str:
    if kept:
        return f"epoch is {epoch}, but run {run.run_id} has kept the weights of {snapshots.in_words(kept)}: use one of them."
    return (
        f"run {run.run_id} has kept no weights of its epochs here: train with weight_snapshots=yes and samples_from=live; bundles "
        "hold none."
    )
