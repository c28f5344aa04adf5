"""The work of both jobs about showers: the evaluation `physics` compares generated showers with
held-out ones, an answer for each checkpoint; the other job generates showers of one energy and
angle.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Fields
from gan_runtime.data.contract import DataSet
from gan_runtime.domains.showers import file_formats
from gan_runtime.domains.showers.curves import (
    bounds,
    curves,
    example_showers,
    single_energy_curves,
    stored_curve,
    stored_showers,
)
from gan_runtime.domains.showers.entry import ANGLE, BELIEF, ENERGY, ENERGY_SCALE, SHOWERS
from gan_runtime.domains.showers.evaluation import (
    NAME,
    RESULT_FILE,
    SUBMISSION_FILE,
    PhysicsOptions,
    SingleEnergyOptions,
    SingleEnergyResult,
)
from gan_runtime.domains.showers.features import rows_of, values_of
from gan_runtime.domains.showers.pictures import cells_in_gev
from gan_runtime.domains.showers.score_metrics import MEASURED, Estimate
from gan_runtime.domains.showers.scores import ShowerSample, compared, sample, with_reading
from gan_runtime.domains.showers.simulation import GRIDS, incidence, simulate_equal
from gan_runtime.engines.contract import Arrays
from gan_runtime.engines.inputs import HostNoise, drawn_inputs, host_values
from gan_runtime.evaluation.catalog import EvaluationResult, Subject
from gan_runtime.jobs.process import Task
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.run_folder import write_whole
from gan_runtime.training import inference
from gan_runtime.training.inference import EpochWeights, TrainedNetworks
from gan_runtime.workloads.contract import Options, Reads

MOST_EPOCHS = 12  # that one job measures, evenly spread
FEWEST_SHOWERS = 20  # five-fold classifiers, with a part of each fold for early stopping
ROWS = 64  # rows per prediction
REPEATS = 5  # repeats of a timing
CANDIDATES = 2_000  # held-out showers that are searched for the nearest
Reading = Callable[[Arrays, Mapping[str, NDArray[Any]]], dict[str, NDArray[Any]]]


def measure(subject: Subject) -> EvaluationResult:
    """An answer for each measured checkpoint; the result has their epochs.

    Raises:
        CheckpointError, DatasetError, SpecError: as `inference.of_run`.
    """
    options, run = subject.options, subject.run
    subject.progress(0, 1, "building the networks")
    networks = inference.of_run(
        run, subject.home, "best" if options.checkpoint == "best" else "newest"
    )
    states = list(inference.epoch_weights(run, networks, options.checkpoint, MOST_EPOCHS))
    stages = len(states) + 2
    subject.progress(1, stages, "measuring held-out showers")
    held_out, training = _simulated_samples(networks.data, options.showers)
    floor = compared(held_out, training)
    times = {
        "ms_single": Estimate(milliseconds_each(networks, 1)),
        "ms_batch": Estimate(milliseconds_each(networks, 100)),
    }
    read = reading(networks.workload, networks.spec.of_workload, networks.data.fields)
    answers = []
    for number, state in enumerate(states, 2):
        progress = partial(_report, subject, number, stages, state)
        progress("generating showers")
        networks.engine.load(state.arrays)
        generated = _generated(networks, options, held_out)
        scores = compared(held_out, generated, progress) | times
        progress("querying the discriminator")
        first, second = (_with_reading(side, state, read) for side in (held_out, generated))
        answers.append(answer_of(state, first, second, scores, floor, networks.data.fields))
    if options.submission == "yes":
        file_formats.write_submission(
            subject.results / SUBMISSION_FILE,
            [(generated.cells_gev, generated.features.energy_gev)],
        )
    epochs = [state.epoch for state in states]
    result = {"epochs": epochs, "warnings": list(networks.checkpoint.warnings)}
    return EvaluationResult(answers, result)


def _report(subject: Subject, number: int, stages: int, state: EpochWeights, stage: str) -> None:
    subject.progress(number, stages, f"epoch {state.epoch}: {stage}")


def _simulated_samples(data: DataSet, count: int) -> tuple[ShowerSample, ShowerSample]:
    """Held-out showers, and as many training showers; the scores between both are the floor.

    Raises:
        DatasetError: there are too few of either, or of both together in a data set without
            held-out rows.
    """
    rows = min(count, data.held_out, data.rows) if data.held_out else min(count, data.rows // 2)
    if rows < FEWEST_SHOWERS:
        raise DatasetError(
            f"data set {data.name} has {data.rows:,} training and {data.held_out:,} held-out"
            f" showers; scores need {FEWEST_SHOWERS} of each, or {2 * FEWEST_SHOWERS} with none"
            " held out: prepare more."
        )
    held_out = data.read_held_out(rows)
    begin = 0 if data.held_out else rows  # without held-out rows, the first rows replace them
    training = data.read(np.arange(begin, begin + rows))
    first, second = (
        of_values(host_values(stored, data.fields), data.fields) for stored in (held_out, training)
    )
    return first, second


def of_values(values: dict[str, NDArray[Any]], fields: Fields) -> ShowerSample:
    """Measured, from values by field."""
    angle = values[ANGLE].astype(np.float64) if ANGLE in values else None
    return sample(
        cells_in_gev(values[SHOWERS]), _gev(values[ENERGY]), angle, fields[SHOWERS].periodic
    )


def _gev(energy: NDArray[Any]) -> NDArray[np.float64]:
    return energy.astype(np.float64) / ENERGY_SCALE


def _generated(
    networks: TrainedNetworks, options: PhysicsOptions, held_out: ShowerSample
) -> ShowerSample:
    """One generated shower for each held-out shower, of the same energy and angle."""
    outputs = networks.generated(len(held_out), options.seed)
    angle = None if np.isnan(held_out.requested_angle).any() else held_out.requested_angle
    periodic = networks.data.fields[SHOWERS].periodic
    return sample(cells_in_gev(outputs[SHOWERS]), held_out.features.energy_gev, angle, periodic)


def _with_reading(showers: ShowerSample, state: EpochWeights, read: Reading | None) -> ShowerSample:
    """The showers with the outputs of this state's discriminator; unchanged without a
    discriminator.
    """
    if read is None:
        return showers
    outputs = read(state.arrays, {SHOWERS: values_of(showers.cells_gev)[..., np.newaxis]})
    return with_reading(showers, outputs[BELIEF].astype(np.float64), _gev(outputs[ENERGY]))


def answer_of(
    state: EpochWeights,
    held_out: ShowerSample,
    generated: ShowerSample,
    scores: dict[str, Estimate],
    floor: dict[str, Estimate],
    fields: Fields,
) -> Answer:
    """The answer about one checkpoint: scores and their floor, curves, and a few showers."""
    unknown = Estimate(math.nan)
    return Answer(
        evaluation=NAME,
        key=f"epoch {state.epoch}",
        epoch=state.epoch,
        step=state.step,
        checkpoint=state.name,
        facts={
            "showers": len(held_out),
            "grid": list(held_out.cells_gev.shape[1:]),
            "periodic": list(fields[SHOWERS].periodic),
        },
        metric_prefix=f"{MEASURED}_",
        scores=[
            Score(
                name=name,
                value=value.value,
                error=value.error,
                floor=floor.get(name, unknown).value,
                floor_error=floor.get(name, unknown).error,
                samples=len(held_out),
            )
            for name, value in scores.items()
        ],
        curves=[stored_curve(curve, *bounds(held_out)) for curve in curves(held_out, generated)],
        arrays=list(example_showers(held_out, generated)),
    )


# ---- networks ------------------------------------------------------------------------------------
# Keras' own prediction, for a run of any engine.


def reading(workload: object, options: Options, fields: Fields) -> Reading | None:
    """A function of the arrays of a checkpoint and of values (rows, …) by field, which returns what
    the workload's networks read from them, named arrays (rows,). None for a workload that reads
    nothing. Loads Keras, and compiles once for all checkpoints.
    """
    if not isinstance(workload, Reads):
        return None
    import keras

    reader: Reads = workload
    networks = reader.networks(options, fields)

    class ReadingModel(keras.Model):  # type: ignore[misc]
        def call(self, values: Any) -> Any:
            return dict(reader.read(options, networks, values))

    model = ReadingModel()

    def read(arrays: Arrays, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        for name, network in networks.items():
            for variable in network.weights:
                variable.assign(arrays[f"{name}/{variable.path}"])
        count = len(next(iter(values.values())))
        places = np.arange(count + -count % ROWS) % count  # whole batches need only one program
        parts = [
            model.predict_on_batch({name: array[rows] for name, array in values.items()})
            for rows in places.reshape(-1, ROWS)
        ]
        return {name: np.concatenate([part[name] for part in parts])[:count] for name in parts[0]}

    return read


def milliseconds_each(networks: TrainedNetworks, rows: int) -> float:
    """Median time of a generated row on this machine's processor, over REPEATS compiled calls of so
    many rows. Loads Keras.
    """
    import keras

    workload, options, data = networks.workload, networks.spec.of_workload, networks.data
    # New weights, since the time does not depend on them.
    new = workload.networks(options, data.fields)

    class GeneratingModel(keras.Model):  # type: ignore[misc]
        def call(self, inputs: Any) -> Any:
            return dict(workload.show(options, new, inputs, HostNoise(0)))

    inputs, model = drawn_inputs(workload, options, data, rows, seed=0), GeneratingModel()
    model.predict_on_batch(inputs)
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        model.predict_on_batch(inputs)
        seconds.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(seconds) / rows


# ---- showers of one energy -----------------------------------------------------------------------


def make(task: Task) -> dict[str, Any]:
    """Writes RESULT_FILE; returns the step of the checkpoint.

    Raises:
        CheckpointError, DatasetError, SpecError: as `inference.of_run`.
        UnknownRunError: the run is deleted.
    """
    options = SingleEnergyOptions(**task.options)
    task.progress(0, 4, "building the networks")
    networks = inference.of_run(task.home.run_dir(options.run_id), task.home, options.checkpoint)
    task.progress(1, 4, "simulating showers")
    rows, is_simulated = reference_rows(networks.data, options)
    task.progress(2, 4, "generating showers")
    outputs = networks.generated_for(rows, options.seed)
    task.progress(3, 4, "measuring both")
    fields = networks.data.fields
    reference = of_values(rows, fields)
    angle = rows[ANGLE].astype(np.float64) if ANGLE in rows else None
    generated = sample(
        cells_in_gev(outputs[SHOWERS]),
        reference.features.energy_gev,
        angle,
        fields[SHOWERS].periodic,
    )
    result = result_of(options, networks.checkpoint.step, is_simulated, reference, generated)
    write_whole(task.results / RESULT_FILE, result.model_dump_json())
    task.progress(4, 4, "done")
    return {"step": networks.checkpoint.step, "warnings": list(networks.checkpoint.warnings)}


def reference_rows(
    data: DataSet, options: SingleEnergyOptions
) -> tuple[dict[str, NDArray[Any]], bool]:
    """Showers of this energy and angle, as values by field, and whether they were newly simulated.
    On a grid without a simulation they are the nearest held-out showers, each with its energy and
    angle.
    """
    shape = data.fields[SHOWERS].shape[:3]
    grid = next((grid for grid in GRIDS.values() if grid.shape == shape), None)
    if grid is not None and options.angle_deg is not None and ANGLE in data.fields:
        random = np.random.default_rng(options.seed)
        angle = incidence(options.energy_gev, math.radians(options.angle_deg), random, grid)
        cells = simulate_equal(options.energy_gev, angle, options.showers, random, grid)
        energies = np.full(len(cells), options.energy_gev)
        return host_values(rows_of(cells, energies), data.fields), True
    values = host_values(data.read_held_out(CANDIDATES), data.fields)
    # Distance by the ratio of the energies and the difference of the angles in rad.
    distances = np.abs(np.log(values[ENERGY] / (ENERGY_SCALE * options.energy_gev)))
    if ANGLE in values and options.angle_deg is not None:
        distances = distances + np.abs(values[ANGLE] - math.radians(options.angle_deg))
    nearest = np.argsort(distances, kind="stable")[: options.showers]
    return {name: array[nearest] for name, array in values.items()}, False


def result_of(
    options: SingleEnergyOptions,
    step: int,
    is_simulated: bool,
    reference: ShowerSample,
    generated: ShowerSample,
) -> SingleEnergyResult:
    """Profiles and distributions of all showers, and the first pair."""
    sides = {"real": reference.features, "generated": generated.features}
    has_angle = not np.isnan(reference.features.angle).any()
    nothing = np.empty(0)
    return SingleEnergyResult(
        energy_gev=options.energy_gev,
        angle=None if options.angle_deg is None else math.radians(options.angle_deg),
        simulated=is_simulated,
        step=step,
        showers=len(reference),
        grid=reference.cells_gev.shape[1:],
        response={
            side: float(features.sampling_fraction.mean()) for side, features in sides.items()
        },
        measured=(
            {side: float(features.angle.mean()) for side, features in sides.items()}
            if has_angle
            else None
        ),
        curves=[
            stored_curve(curve, nothing, nothing)
            for curve in single_energy_curves(reference, generated)
        ],
        pictures=list(stored_showers(0, 0, reference, generated)),
    )
