"""The state with which an attempt starts: the newest usable checkpoint of the run, the same on all
workers, or the weights of another run (`start_from=RUN[:EPOCH]`).

Weights and stored layer statistics of another run are matched by name and shape. Optimizers, rates
and the step start fresh, and averages start as copies of their networks. The run then saves
checkpoint 0, so it needs the other run only once.
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
    """Loads the newest usable checkpoint; None for a new run. All workers call it together.

    Raises:
        CheckpointError: no file is usable; the run has trained whole epochs but has no file; or
            workers see different files.
    """
    checkpoint = checkpoints.load_newest(run.checkpoints)
    step = checkpoint.step if checkpoint else 0
    lowest, highest = engine.worker_extremes(step)
    if lowest != highest:
        # Otherwise the first worker to finish would leave the others waiting in an exchange.
        raise CheckpointError(
            f"one worker resumes from step {lowest}, another from step {highest}: they see"
            f" different {run.checkpoints}. Use one home on a shared file system."
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
    """Whether the run was killed in this home before its first checkpoint, so it can start over.

    A run in its second epoch, or a stopped run, has had a checkpoint and lost it. An imported run
    has no process.json and no target.json.
    """
    is_of_home = run.process_file.exists() or run.target_file.exists()
    return is_of_home and not any(map(_shows_a_save, journal.read_all(run.trainer_journal())))


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
    """Starting over would void the numbers of a run whose checkpoints were lost or not imported."""
    path = run.trainer_journal()
    epochs = (
        sum(piece.count(b'"kind":"epoch",') for piece in run_files.pieces(path))
        if path.exists()
        else 0
    )
    if epochs and not is_cut_off_before_saving(run):
        raise CheckpointError(
            f"run {run.run_id} has trained {epochs} epoch(s) but has no checkpoint, as after an"
            f" import: start a new run with its options, {run.spec_path}."
        )


# ---- weights of another run ----------------------------------------------------------------------

MOST_NAMED = 10  # arrays in a sentence
TOPIC = "start_from"


@dataclass(frozen=True)
class WeightSource:
    """A run whose weights another run starts with. `epoch`: None means the newest checkpoint."""

    run: RunDir
    epoch: int | None

    @classmethod
    def of(cls, start_from: str, home: Home) -> WeightSource:
        """`start_from`: the option, not empty. Raises UnknownRunError."""
        run_id, _, epoch = start_from.partition(":")
        return cls(home.run_dir(run_id), int(epoch) if epoch else None)

    def step(self) -> int:
        """The step of its checkpoint.

        Raises:
            CheckpointError: the run has no checkpoint, or none after that epoch; the message lists
                the others.
        """
        steps = checkpoints.all_steps(self.run.checkpoints)
        if not steps:
            raise CheckpointError(
                f"start_from names {self.run.run_id}, which has no checkpoint: train it for an"
                " epoch first, or use another run."
            )
        if self.epoch is None:
            return max(steps)
        per_epoch = _steps_per_epoch(self.run)
        if per_epoch and self.epoch * per_epoch in steps:
            return self.epoch * per_epoch
        epochs = sorted(step // per_epoch for step in steps if per_epoch and step % per_epoch == 0)
        choices = f"after epochs {', '.join(map(str, epochs))}" if epochs else "within epochs only"
        raise CheckpointError(
            f"start_from names epoch {self.epoch} of {self.run.run_id}, whose checkpoints are"
            f" {choices}: use one of these, or leave out the epoch for the newest."
        )

    def checkpoint(self) -> Checkpoint:
        """Raises CheckpointError as `step`, and for a damaged file."""
        return checkpoints.load_step(self.run.checkpoints, self.step())


@dataclass(frozen=True)
class Fit:
    """How a checkpoint fits a run's networks.

    `state`: the engine's state with the matching weights. Array names: `copied`; `fresh`, which
    keep their initial values, with reasons; `unused`, which only the other run has.
    """

    state: Arrays
    copied: tuple[str, ...]
    fresh: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def not_copied(self) -> list[str]:
        """The arrays that were not copied: at most MOST_NAMED, then the number of others."""
        names = [*self.fresh, *(f"{name} (only there)" for name in self.unused)]
        more = [f"and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        return [*names[:MOST_NAMED], *more]


def fit(state: Arrays, source: Arrays, spec: RunSpec) -> Fit:
    """Matches arrays by name and shape. `state`: an engine's state before its first step; `source`:
    the arrays of a checkpoint.
    """
    networks = tuple(f"{network.name}/" for network in spec.entry.networks)
    names = [name for name in state if name.startswith(networks)]
    copied = [name for name in names if name in source and source[name].shape == state[name].shape]
    fitted = dict(state) | {name: source[name].astype(state[name].dtype) for name in copied}
    for network, owner in average_owners(spec.entry).items():
        averages = {
            name: f"{network}/{name.removeprefix(f'{owner}/')}"
            for name in state
            if name.startswith(f"{owner}/")
        }
        fitted |= {average: fitted[live] for average, live in averages.items()}
    fresh = [_mismatch(name, state, source) for name in names if name not in copied]
    unused = [name for name in source if name.startswith(networks) and name not in state]
    return Fit(fitted, tuple(copied), tuple(fresh), tuple(unused))


def check(home: Home, spec: RunSpec, dependency: str = "") -> None:
    """Checks `start_from` before a run is queued.

    `dependency`: the run that it waits for, which has no checkpoints yet.

    Raises:
        UnknownRunError, CheckpointError: `start_from` names no checkpoint.
    """
    if spec.start_from:
        source = WeightSource.of(spec.start_from, home)
        if source.run.run_id != dependency:
            source.step()


def begin(engine: Engine, spec: RunSpec, run: RunDir) -> tuple[dict[str, Any], list[Event]]:
    """Loads the weights that `start_from` names into a new run; returns facts for its record, and
    events.

    Does nothing without `start_from`, or if the run has a checkpoint. All workers call it together.

    Raises:
        UnknownRunError, CheckpointError: there is no such run or checkpoint, no array fits, or
            workers see different checkpoints.
    """
    if not spec.start_from or run.has_checkpoint:
        return {}, []
    source = WeightSource.of(spec.start_from, Home(run.path.parent.parent))
    checkpoint = source.checkpoint()
    lowest, highest = engine.worker_extremes(checkpoint.step)
    if lowest != highest:
        raise CheckpointError(
            f"one worker starts with step {lowest} of {source.run.run_id}, another with step"
            f" {highest}: name an epoch, as in start_from={source.run.run_id}:EPOCH."
        )
    fitted = fit(engine.state(), checkpoint.arrays, spec)
    if not fitted.copied:
        raise CheckpointError(
            f"no weights of {source.run.run_id} fit the networks of this run by name and shape:"
            f" {'; '.join(fitted.not_copied)}. Use a run of the same networks, or leave out"
            " start_from."
        )
    engine.load(fitted.state)
    return _recorded(source, checkpoint, fitted)


def _recorded(
    source: WeightSource, checkpoint: Checkpoint, fitted: Fit
) -> tuple[dict[str, Any], list[Event]]:
    count, rest = len(fitted.copied) + len(fitted.fresh), fitted.not_copied
    message = (
        f"Starts with {len(fitted.copied)} of {count} weight arrays of {source.run.run_id} after"
        f" step {checkpoint.step}."
    )
    if rest:
        message += f" Not copied: {'; '.join(rest)}."
    facts = {
        "run": source.run.run_id,
        "step": checkpoint.step,
        "taken": len(fitted.copied),
        "not_taken": rest,
    }
    return {TOPIC: facts}, [
        Event(level="warning" if rest else "info", topic=TOPIC, message=message)
    ]


def _steps_per_epoch(run: RunDir) -> int:
    plans = [
        record
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, journal.AttemptPlan)
    ]
    return plans[-1].steps_per_epoch if plans else 0


def _mismatch(name: str, state: Arrays, source: Arrays) -> str:
    if name not in source:
        return f"{name} (only here)"
    here, there = (
        str(tuple(int(side) for side in np.shape(arrays[name]))) for arrays in (state, source)
    )
    return f"{name} ({here} here, {there} there)"
