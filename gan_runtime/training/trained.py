"""A run's checkpoint, turned into networks that can be asked.

Loads a framework: for the process of a job alone.

The networks stand on the processor as one replica, whatever the run trained on: a checkpoint has
the names and shapes of one device, and so no job takes an accelerator from a training. The kind of
the job hides GPUs from the framework (`environment` in jobs/job.py).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from gan_runtime import catalog
from gan_runtime.base.blocked_imports import keep_scikit_learn_out
from gan_runtime.base.errors import CheckpointError, DatasetError, quoted
from gan_runtime.base.fields import class_names
from gan_runtime.data import loading
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.contract import Engine
from gan_runtime.engines.inputs import drawn_inputs, inputs_of
from gan_runtime.engines.task import data_for_workload, workload_of
from gan_runtime.records import run_folder
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, snapshots
from gan_runtime.training.checkpoints import Checkpoint, Which
from gan_runtime.workloads.contract import Workload

ONE_REPLICA = {"replicas": 1, "workers": 1, "sync_every_steps": 1, "xla": "off"}
CPU = "cpu"
State = Literal["newest", "best", "every"]
MOST_NAMED = 20  # classes in a sentence


@dataclass(frozen=True)
class Trained:
    """The networks of a run as `checkpoint` has them.

    `data`: with the fields that the workload reads.
    """

    spec: RunSpec
    workload: Workload
    data: DataSet
    engine: Engine
    checkpoint: Checkpoint

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the labels that the networks are asked with; empty where they know none."""
        return class_names(self.data.fields)

    def generated(self, count: int, seed: int, label: str = "") -> dict[str, NDArray[Any]]:
        """What the workload shows for `count` rows: named arrays (count, …), the same for the same
        seed and class. `label`: of one class alone. With samples_from=ema they come from the
        average.

        Raises:
            DatasetError: the networks know no such class.
        """
        number = number_of(label, self.classes) if label else None
        options = self.spec.of_workload
        asked = drawn_inputs(self.workload, options, self.data, count, seed, number)
        return self.engine.generate(asked, seed)

    def generated_for(self, rows: dict[str, NDArray[Any]], seed: int) -> dict[str, NDArray[Any]]:
        """As `generated`, asked for with what these rows have, values by field: energies,
        angles, classes.
        """
        asked = inputs_of(self.workload, self.spec.of_workload, self.data.fields, rows, seed)
        return self.engine.generate(asked, seed)


def number_of(label: str, classes: tuple[str, ...]) -> int:
    """Which class has this name. Raises DatasetError with the names that there are."""
    if label in classes:
        return classes.index(label)
    named = f"{', '.join(classes[:MOST_NAMED])}{' …' if len(classes) > MOST_NAMED else ''}"
    there = (
        f"there are {named}" if classes else "it was trained without labels, so leave the class out"
    )
    raise DatasetError(f"class {quoted(label)} is unknown to this run: {there}.")


def check_data(run: RunDir, home: Home) -> None:
    """Raises DatasetError when the run's data set is gone, or another one was prepared under
    its name: classes may be others.
    """
    dataset = run.spec().dataset
    if refusal := run_folder.data_refusal(run, dataset, loading.content_of(dataset, home)):
        raise DatasetError(refusal)


def states_of(run: RunDir) -> tuple[State, ...]:
    """What a run can be asked with here: its newest checkpoint, its best one, the weights after
    every epoch.

    Empty for a run that has left no checkpoint, such as an imported one, and for one that is gone.
    """
    there: tuple[State, ...] = tuple(checkpoints.steps(run.checkpoints))
    return (*there, "every") if there and kept_epochs(run) else there


def kept_epochs(run: RunDir) -> list[int]:
    """The epochs whose weights were kept; none where what a run shows is a moving average of
    them.
    """
    if not run.has_checkpoint or run.spec().samples_from == "ema":
        return []
    return snapshots.epochs(run.snapshots)


def check_state(
    run: RunDir, state: str, purpose: str, epoch: int | None = None, every: bool = False
) -> None:
    """Raises CheckpointError when a run has no such state here; the message lists what it has.

    `state`: newest, best, or every. `purpose`: what it is for, such as "measure". `epoch`: of
    weights that were kept, which are loaded in place of the newest checkpoint's. `every`: whether
    all epochs can be asked for at once.
    """
    there = states_of(run) if every else tuple(checkpoints.steps(run.checkpoints))
    if not there:
        raise CheckpointError(
            f"run {run.run_id} has no checkpoint to {purpose}: a run saves one after each epoch,"
            " and keeps it where it was trained; bundles hold none. Pick another run."
        )
    if state not in there:
        advice = (
            " Train with weight_snapshots=yes to measure every epoch." if state == "every" else ""
        )
        raise CheckpointError(
            f"checkpoint is {quoted(state)}, but run {run.run_id} has {' and '.join(there)}: use"
            f" one of them.{advice}"
        )
    if epoch is not None:
        _check_epoch(run, state, epoch, " and ".join(there))


def _check_epoch(run: RunDir, state: str, epoch: int, there: str) -> None:
    if state != "newest":
        raise CheckpointError(
            f"checkpoint is {quoted(state)} and epoch is {epoch}: leave out one of them."
        )
    kept = kept_epochs(run)
    if not kept:
        raise CheckpointError(
            f"epoch is {epoch}, but run {run.run_id} has kept no weights of its epochs here, only"
            f" the {there} checkpoint: leave epoch out, or train with weight_snapshots=yes and"
            " samples_from=live."
        )
    if epoch not in kept:
        raise CheckpointError(
            f"epoch is {epoch}, but run {run.run_id} has kept the weights of"
            f" {snapshots.in_words(kept)}, beside the {there} checkpoint: use one of these."
        )


def of_run(run: RunDir, home: Home, which: Which = "newest") -> Trained:
    """The networks of a run as one of its checkpoints has them.

    Raises:
        CheckpointError: it has none, or none that can be used, or its networks were others, as in
            another version.
        DatasetError: the run's data is not at hand, from which the networks are built and asked;
            see also `check_data`.
        SpecError: its options cannot be read.
    """
    spec = run.spec().model_copy(update=ONE_REPLICA)
    check_data(run, home)
    checkpoint = checkpoints.load(run.checkpoints, which)
    keep_scikit_learn_out()
    entry = catalog.engine(spec.engine)
    importlib.import_module(entry.flags).set_flags(spec, CPU)  # before anything loads the framework
    data = data_for_workload(spec, loading.load(spec.dataset, home))
    workload = workload_of(spec)
    engine: Engine = importlib.import_module(entry.module).ENGINE(spec, workload, data, CPU)
    engine.load(checkpoint.arrays)
    return Trained(spec, workload, data, engine, checkpoint)
