"""Where an attempt begins: from the run's newest usable checkpoint, the same one on all
workers, or with another run's weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gan_runtime.base.errors import CheckpointError
from gan_runtime.engines.contract import Arrays, Engine
from gan_runtime.engines.task import average_owners
from gan_runtime.records import journal, run_files
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Event, JournalWriter, Record
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints
from gan_runtime.training.checkpoints import Checkpoint


def restore(engine: Engine, run: RunDir, writer: JournalWriter) -> Checkpoint | None:
    """Takes up the newest usable checkpoint; None for a run that begins.

    All workers must ask at the same time.

    Raises:
        CheckpointError: no file can be used; the run has trained whole epochs but has none; or
            workers see different ones.
    """
    checkpoint = checkpoints.load_newest(run.checkpoints)
    step = checkpoint.step if checkpoint else 0
    lowest, highest = engine.worker_extremes(step)
    if lowest != highest:
        # Each would make its own number of steps, and the first to end would leave the others
        # waiting in an exchange.
        raise CheckpointError(
            f"one worker would go on from step {lowest}, another from step {highest}: they do not"
            f" see the same {run.checkpoints}. Give all workers the same home folder, such as one"
            " on a shared file system."
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
    """Whether the run has trained in this home and was killed before its first checkpoint had its
    name: it may begin again.

    One is saved after each epoch and at a stop, so whoever is in the second epoch, or has stopped,
    had one, and has lost it. An imported run has no process.json: bundles leave it out.
    """
    return run.process_file.exists() and not any(
        map(_shows_a_save, journal.read_all(run.trainer_journal()))
    )


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
    """A run that has trained an epoch has saved it, unless it was killed just then, its checkpoints
    were lost, or they never came with it from another home. To begin again would make all its
    numbers void.
    """
    path = run.trainer_journal()
    epochs = (
        sum(piece.count(b'"kind":"epoch",') for piece in run_files.pieces(path))
        if path.exists()
        else 0
    )
    if epochs and not is_cut_off_before_saving(run):
        raise CheckpointError(
            f"run {run.run_id} has trained {epochs} epoch(s), but has no checkpoint to go on from,"
            f" as after an import: start a new run with its options, {run.spec_path}."
        )


# ----------------------------------------------------------------------
# The weights with which a run begins where its options name another run: `start_from=RUN[:EPOCH]`.
#
# Weights of networks are taken by name and shape, with what layers store; optimizers, rates and the
# step begin anew, and averages as copies of their networks. A run trains on from its own checkpoint
# 0 then, so it needs the other run only once.

MOST_NAMED = 10  # arrays in a sentence
TOPIC = "start_from"


@dataclass(frozen=True)
class WeightSource:
    """The run whose weights another one begins with, after one of its epochs; None for its
    newest checkpoint.
    """

    run: RunDir
    epoch: int | None

    @classmethod
    def of(cls, start_from: str, home: Home) -> WeightSource:
        """By the option, which is not empty.

        Raises UnknownRunError when the home has no such run.
        """
        run_id, _, epoch = start_from.partition(":")
        return cls(home.run_dir(run_id), int(epoch) if epoch else None)

    def step(self) -> int:
        """The step of the checkpoint that is meant.

        Raises:
            CheckpointError: the run has none, or none after that epoch; the message names those
                that there are.
        """
        steps = checkpoints.all_steps(self.run.checkpoints)
        if not steps:
            raise CheckpointError(
                f"start_from names {self.run.run_id}, which has no checkpoint: train it for an"
                " epoch first, or name another run."
            )
        if self.epoch is None:
            return max(steps)
        per_epoch = _steps_per_epoch(self.run)
        if per_epoch and self.epoch * per_epoch in steps:
            return self.epoch * per_epoch
        epochs = sorted(step // per_epoch for step in steps if per_epoch and step % per_epoch == 0)
        there = f"after epochs {', '.join(map(str, epochs))}" if epochs else "within an epoch alone"
        raise CheckpointError(
            f"start_from names epoch {self.epoch} of {self.run.run_id}, whose checkpoints are"
            f" {there}: name one of these, or the run without an epoch for its newest checkpoint."
        )

    def checkpoint(self) -> Checkpoint:
        """See `step`. Raises CheckpointError, also where the file is damaged."""
        return checkpoints.load_step(self.run.checkpoints, self.step())


@dataclass(frozen=True)
class Fit:
    """What of a checkpoint fits a run's networks.

    `state`: the engine's, with it. Of arrays: the names of those `taken`, those that stay `new`
    with the reason, and the names of those of the other run that have no place, `unused`.
    """

    state: Arrays
    taken: tuple[str, ...]
    new: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def in_words(self) -> list[str]:
        """What is not taken, at most MOST_NAMED arrays, and how many more."""
        left = [*self.new, *(f"{name} (only there)" for name in self.unused)]
        more = [f"and {len(left) - MOST_NAMED} more"] if len(left) > MOST_NAMED else []
        return [*left[:MOST_NAMED], *more]


def fit(state: Arrays, given: Arrays, spec: RunSpec) -> Fit:
    """`state`: of an engine before its first step; `given`: of a checkpoint."""
    networks = tuple(f"{network.name}/" for network in spec.entry.networks)
    own = [name for name in state if name.startswith(networks)]
    taken = [name for name in own if name in given and given[name].shape == state[name].shape]
    began = dict(state) | {name: given[name].astype(state[name].dtype) for name in taken}
    for network, owner in average_owners(spec.entry).items():
        copies = {
            name: f"{network}/{name.removeprefix(f'{owner}/')}"
            for name in state
            if name.startswith(f"{owner}/")
        }
        began |= {average: began[live] for average, live in copies.items()}
    new = [_why(name, state, given) for name in own if name not in taken]
    unused = [name for name in given if name.startswith(networks) and name not in state]
    return Fit(began, tuple(taken), tuple(new), tuple(unused))


def check(home: Home, spec: RunSpec, awaited: str = "") -> None:
    """Before a run is queued, which waits for the run `awaited` if any: that one's checkpoints may
    be still to come.

    Raises:
        UnknownRunError, CheckpointError: `start_from` names nothing to begin with.
    """
    if spec.start_from:
        source = WeightSource.of(spec.start_from, home)
        if source.run.run_id != awaited:
            source.step()


def begin(engine: Engine, spec: RunSpec, run: RunDir) -> tuple[dict[str, Any], list[Event]]:
    """Gives a run that begins the weights of the one that its options name; what its record says of
    it, and events.

    Nothing happens in a run without `start_from`, and in one that has a checkpoint of its own. All
    workers must ask at the same time.

    Raises:
        UnknownRunError, CheckpointError: that run is gone, has no such checkpoint, or nothing of it
        fits; or workers see others.
    """
    if not spec.start_from or run.has_checkpoint:
        return {}, []
    source = WeightSource.of(spec.start_from, Home(run.path.parent.parent))
    checkpoint = source.checkpoint()
    lowest, highest = engine.worker_extremes(checkpoint.step)
    if lowest != highest:
        raise CheckpointError(
            f"one worker would begin with step {lowest} of {source.run.run_id}, another with step"
            f" {highest}: name an epoch, as in start_from={source.run.run_id}:EPOCH."
        )
    began = fit(engine.state(), checkpoint.arrays, spec)
    if not began.taken:
        raise CheckpointError(
            f"nothing of {source.run.run_id} fits the networks of this run, by name and shape:"
            f" {'; '.join(began.in_words)}. Name a run of the same networks, or leave start_from"
            " out."
        )
    engine.load(began.state)
    return _recorded(source, checkpoint, began)


def _recorded(
    source: WeightSource, checkpoint: Checkpoint, began: Fit
) -> tuple[dict[str, Any], list[Event]]:
    weights, left = len(began.taken) + len(began.new), began.in_words
    message = (
        f"Begins with {len(began.taken)} of {weights} arrays of weights of {source.run.run_id}"
        f" after step {checkpoint.step}."
    )
    if left:
        message += f" Not taken: {'; '.join(left)}."
    facts = {
        "run": source.run.run_id,
        "step": checkpoint.step,
        "taken": len(began.taken),
        "not_taken": left,
    }
    return {TOPIC: facts}, [
        Event(level="warning" if left else "info", topic=TOPIC, message=message)
    ]


def _steps_per_epoch(run: RunDir) -> int:
    plans = [
        record
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, journal.Plan)
    ]
    return plans[-1].steps_per_epoch if plans else 0


def _why(name: str, state: Arrays, given: Arrays) -> str:
    if name not in given:
        return f"{name} (only here)"
    here, there = (
        str(tuple(int(side) for side in np.shape(arrays[name]))) for arrays in (state, given)
    )
    return f"{name} ({here} here, {there} there)"
