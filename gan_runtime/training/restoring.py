"""Where an attempt goes on: from the newest usable checkpoint, and from the same one on all workers."""

from __future__ import annotations

from gan_runtime.base.errors import CheckpointError
from gan_runtime.engines.contract import Engine
from gan_runtime.records import journal, lines
from gan_runtime.records.journal import JournalWriter, Record
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from gan_runtime.training.checkpoints import Checkpoint


def restore(engine: Engine, run: RunDir, writer: JournalWriter) -> Checkpoint | None:
    """Takes up the newest usable checkpoint; None for a run that begins. All workers must ask at the same time.

    Raises:
        CheckpointError: no file can be used; the run has trained whole epochs but has none; or workers see different ones.
    """
    checkpoint = checkpoints.load_newest(run.checkpoints)
    step = checkpoint.step if checkpoint else 0
    lowest, highest = engine.told_by_all(step)
    if lowest != highest:
        # Each would make its own number of steps, and the first to end would leave the others waiting in an exchange.
        raise CheckpointError(
            f"one worker would go on from step {lowest}, another from step {highest}: they do not see the same {run.checkpoints}. "
            "Give all workers the same home folder, such as one on a shared file system."
        )
    if checkpoint is None:
        _refuse_to_begin_again(run)
        return None
    engine.load(checkpoint.arrays)
    for warning in checkpoint.warnings:
        writer.write(journal.Event(level="warning", topic="checkpoint", message=warning))
    resumed = f"Resumed from {checkpoint.path.name}, after step {step}."
    writer.write(journal.Event(level="info", topic="resume", message=resumed))
    return checkpoint


def is_cut_off_before_saving(run: RunDir) -> bool:
    """Whether the run has trained in this home and was killed before its first checkpoint had its name: it may begin again.

    One is saved after each epoch and at a stop, so whoever is in the second epoch, or has stopped, had one, and has lost it. An
    imported run has no process.json: bundles leave it out.
    """
    return run.process_file.exists() and not any(map(_shows_a_save, journal.read_all(run.trainer_journal())))


def _shows_a_save(record: Record) -> bool:
    match record:
        case journal.Scalars() | journal.EpochDone():
            return record.epoch > 1
        case journal.AttemptStart():
            return record.resume_step > 0
        case journal.StatusChange():
            return record.status in ("stopped", "finished")
    return False


def _refuse_to_begin_again(run: RunDir) -> None:
    """A run that has trained an epoch has saved it, unless it was killed just then, its checkpoints were lost, or they never came
    with it from another home. To begin again would make all its numbers void."""
    path = run.trainer_journal()
    epochs = sum(piece.count(b'"kind":"epoch",') for piece in lines.pieces(path)) if path.exists() else 0
    if epochs and not is_cut_off_before_saving(run):
        raise CheckpointError(
            f"run {run.run_id} has trained {epochs} epoch(s), but has no checkpoint to go on from, as after an import: "
            f"start a new run with its options, {run.spec_path}."
        )
