"""The work of the job that feeds a run's model with its own pictures: the frames that come, their
scores beside the true ones, and the time of each stage. One answer for each way in which it was
done, with a file of frames.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime import catalog
from gan_runtime.base.blocked_imports import keep_scikit_learn_out
from gan_runtime.base.errors import CheckpointError, DatasetError, FieldError, SpecError
from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.data import loading
from gan_runtime.data.contract import DataSet, Progress
from gan_runtime.domains.flows import films, measures
from gan_runtime.domains.flows.evaluation import MOST_CORES, RolloutOptions, film_of
from gan_runtime.domains.flows.fields import WIDTH
from gan_runtime.domains.flows.films import Film, Replay, nearest
from gan_runtime.domains.flows.lattice import Lattice
from gan_runtime.domains.flows.rollout_answer import RolloutState, Times, answer_of, scored, written
from gan_runtime.engines.inputs import host_value
from gan_runtime.engines.task import workload_of
from gan_runtime.engines.tiles import Painter, TileProgram, Translator, translator_of
from gan_runtime.engines.tiling.division import Division
from gan_runtime.engines.tiling.stopwatch import Way
from gan_runtime.evaluation.work import Evaluated, Subject
from gan_runtime.records.answer import Answer
from gan_runtime.records.film_files import Frames
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import steps_per_epoch
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, snapshots, trained
from gan_runtime.training.alarms import first_not_finite
from gan_runtime.training.checkpoints import Checkpoint
from gan_runtime.workloads.contract import Translates

CPU = "cpu"
SOLVED = 3  # frames by the solver, for its own time
Values = NDArray[np.float32]
Paint = Callable[[Values], Values]
Told = Callable[[int], None]


@dataclass(frozen=True)
class RolloutModel:
    """A checkpoint of a run as a network that makes pictures of pictures, and its engine's
    programs.
    """

    spec: RunSpec
    checkpoint: Checkpoint
    translator: Translator
    program: type[TileProgram]


@dataclass(frozen=True)
class RolloutCase:
    """What a model is fed with and held against, as values.

    `source`: (height, width, channels in) of the start frame; `truth`: (1 + steps, height, width,
    channels out), the start frame first. `period`: in frames, of the whole film; NaN of pictures
    and where no eddies are shed. `replay`: of the nearest training film.
    """

    film: Film
    source: Values
    truth: Values
    period: float
    replay: Replay | None = None

    @property
    def steps(self) -> int:
        """How often the model is fed with its own picture."""
        return len(self.truth) - 1

    @property
    def mask(self) -> Values:
        """(height, width, more): the source's channels that no step changes."""
        return self.source[..., self.truth.shape[-1] :]

    @property
    def obstacle(self) -> NDArray[np.bool_]:
        """Where the fluid cannot be, on the solver's cells: (80, 192) of a frame of either
        size, whose pixels are one or four of them.
        """
        pixels = np.asarray((self.mask > 0.5).any(axis=-1))
        each = max(1, WIDTH // pixels.shape[1])
        return pixels.repeat(each, axis=0).repeat(each, axis=1)


@dataclass(frozen=True)
class Iteration:
    """`name`: the job's; `per_epoch`: steps of the run's training; `solver_s`: of a frame by
    the solver, NaN for pictures.
    """

    name: str
    options: RolloutOptions
    per_epoch: int
    solver_s: float


def iterate(subject: Subject) -> Evaluated:
    """One answer for each way.

    The result has the iteration's name, the step of the checkpoint and warnings.

    Raises:
        CheckpointError, SpecError: the run has no such checkpoint, or its options cannot be read.
        DatasetError: its data set is gone, is another by now, or has no such film.
    """
    run, options = subject.run, subject.options
    subject.progress(0, 1, "reading the frames")
    trained.check_data(run, subject.home)
    data = loading.load(run.spec().dataset, subject.home)
    given, model = given_of(data, options, subject.progress), model_of(run, data.fields, options)
    tiles = division_of(given, model, options)
    iteration = Iteration(subject.key, options, steps_per_epoch(run), solver_seconds(given))
    kept: dict[Way, tuple[Answer, Frames]] = {}
    # The way over several cores first: TensorFlow makes the simulated ones once.
    for number, way in enumerate(sorted(options.ways, key=lambda way: way != "map_reduce")):

        def told(step: int, begin: int = number * given.steps, way: Way = way) -> None:
            sentence = f"{way.replace('_', '-')}: step {step} of {given.steps}"
            subject.progress(begin + step, len(options.ways) * given.steps, sentence)

        kept[way] = outcome(iteration, model, given, tiles, way, told)
    answers = written(run, [kept[way] for way in options.ways])
    result = {
        "iteration": iteration.name,
        "step": model.checkpoint.step,
        "warnings": list(model.checkpoint.warnings),
    }
    files = tuple(run.path / array.file for answer in answers for array in answer.arrays)
    return Evaluated(answers, result, files)


def given_of(data: DataSet, options: RolloutOptions, progress: Progress) -> RolloutCase:
    """Raises DatasetError when the data set has no such film, too few frames of it, or
    targets that cannot be fed back.
    """
    if reason := films.not_fed_back(data.fields):
        raise DatasetError(reason)
    film, steps = film_of(films.films(data), options)
    source, targets = films.frames(data, film, options.start, steps)
    first = host_value(source, data.fields[SOURCE])
    truth = host_value(targets, data.fields[TARGET])
    frames = np.concatenate([first[np.newaxis, ..., : truth.shape[-1]], truth])
    return RolloutCase(
        film, first, frames, period_of(data, film), nearest(data, frames[0], steps, progress)
    )


def period_of(data: DataSet, film: Film) -> float:
    """Frames in which the flow of a film sheds a pair of eddies; NaN where it sheds none, and
    of pictures.
    """
    if film.reynolds is None:
        return float("nan")
    _, targets = films.frames(data, film, 0, film.steps)
    return measures.period(measures.probe(host_value(targets, data.fields[TARGET]), film.shift))


def model_of(run: RunDir, offered: Fields, options: RolloutOptions) -> RolloutModel:
    """Loads the framework that the run was trained with, on simulated cores.

    `offered`: the fields of its data set.

    Raises:
        CheckpointError: the run has no such checkpoint, or no usable weights of that epoch.
        DatasetError: its workload makes no pictures of pictures.
    """
    spec, checkpoint = run.spec(), checkpoint_of(run, options)
    set_flags(spec)
    workload: object = workload_of(spec)
    if not isinstance(workload, Translates):
        raise DatasetError(f"run {run.run_id} makes no pictures of pictures: pick a run that does.")
    fields = spec.entry.reads(spec.of_workload, offered)
    translator = translator_of(spec, workload, fields, checkpoint.arrays)
    program = importlib.import_module(catalog.engine(spec.engine).tiles).TILE_PROGRAM
    return RolloutModel(spec, checkpoint, translator, program)


def checkpoint_of(run: RunDir, options: RolloutOptions) -> Checkpoint:
    """That of the run's checkpoints; where an epoch is wanted, with the weights that were kept
    after it, in half precision.

    Raises:
        CheckpointError: there is none, or the weights are damaged or too large for half precision.
    """
    checkpoint = checkpoints.load(run.checkpoints, options.checkpoint)
    if options.epoch is None:
        return checkpoint
    arrays = {**checkpoint.arrays, **snapshots.load_one(run.snapshots, options.epoch)}
    if broken := first_not_finite(arrays):
        raise CheckpointError(
            f"the weights of epoch {options.epoch} cannot be used: {broken} holds numbers too large"
            " for the half precision that they are kept in: take another epoch."
        )
    return replace(checkpoint, arrays=arrays, step=options.epoch * steps_per_epoch(run))


def set_flags(spec: RunSpec) -> None:
    """For as many simulated cores as an iteration may ask for.

    Before anything loads the framework.
    """
    keep_scikit_learn_out()
    cores = MOST_CORES if spec.engine == "jax" else 1
    importlib.import_module(catalog.engine(spec.engine).flags).set_flags(
        spec.model_copy(update={**trained.ONE_REPLICA, "replicas": cores}), CPU, trains=False
    )


def division_of(given: RolloutCase, model: RolloutModel, options: RolloutOptions) -> Division:
    """Into the tiles that the network was trained with.

    Raises SpecError for an overlap that is not below their side.
    """
    height, width = given.source.shape[:2]
    try:
        return Division((height, width), (model.translator.tile,) * 2, options.overlap)
    except ValueError as error:
        raise SpecError([FieldError("overlap", str(error))]) from None


def outcome(
    iteration: Iteration,
    model: RolloutModel,
    given: RolloutCase,
    tiles: Division,
    way: Way,
    told: Told,
) -> tuple[Answer, Frames]:
    """The answer of one way and its frames.

    `tiles`: at whose borders seams are looked for, in every way.
    """
    options, shape = iteration.options, given.source.shape
    division = (options.cores, options.overlap, options.blend)
    painter = Painter(model.program, model.translator, way, shape, *division)
    predicted = rolled_out(painter, given.source, given.steps, told)
    times = Times(painter.stopwatch.picture_s(), iteration.solver_s)
    replayed = given.replay.frames if given.replay else None
    found = scored(
        given.truth, predicted, given.mask, tiles, given.film, times, given.period, replayed
    )
    halves = (each.astype(np.float16) for each in (given.truth, predicted, given.mask))
    facts = facts_of(iteration, model, given, painter)
    step = model.checkpoint.step
    state = RolloutState(round(step / iteration.per_epoch), step, options.state)
    answer = answer_of(facts, state, found, painter.stopwatch.times())
    return answer, Frames(np.arange(len(predicted)), *halves)


def rolled_out(paint: Paint, source: Values, steps: int, told: Told) -> Values:
    """(1 + steps, height, width, channels out): the start frame, then each picture made of the one
    before. Channels that the source has beyond those of a picture stay as they are.
    """
    made: list[Values] = []
    for step in range(1, steps + 1):
        picture = paint(source)
        if not made:
            made.append(source[..., : picture.shape[-1]])
        made.append(picture)
        source = np.concatenate([picture, source[..., picture.shape[-1] :]], axis=-1)
        told(step)
    return np.stack(made)


def solver_seconds(given: RolloutCase) -> float:
    """Median seconds in which the solver makes a frame of this flow, past its own obstacle,
    on this machine; NaN for pictures.
    """
    flow, steps = solver_of(given), given.film.solver_steps
    if flow is None or steps is None:
        return float("nan")
    seconds = []
    for _ in range(SOLVED):
        begin = time.perf_counter()
        flow.advance(steps)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def solver_of(given: RolloutCase) -> Lattice | None:
    """The flow at its beginning; None for pictures."""
    film = given.film
    return (
        None
        if film.reynolds is None
        else Lattice(film.reynolds, given.obstacle, diameter=film.width)
    )


def facts_of(
    iteration: Iteration, model: RolloutModel, given: RolloutCase, painter: Painter
) -> dict[str, Any]:
    """What an answer says besides its numbers, by name."""
    options, film = iteration.options, given.film
    return {
        "iteration": iteration.name,
        "way": painter.way,
        "engine": model.spec.engine,
        "cores": painter.cores,
        "tile": list(painter.division.tile),
        "overlap": painter.division.overlap,
        "blend": options.blend,
        "tiles": len(painter.division),
        "grid": [*given.source.shape[:2], given.truth.shape[-1]],
        "reynolds": film.reynolds,
        "trajectory": options.trajectory,
        "start": options.start,
        "steps": given.steps,
        "is_usual": options.is_usual(film.steps),
        "solver_steps": film.solver_steps,
        "film": film.title,
        "obstacle_width": None if film.reynolds is None else film.width,
        "replay": given.replay.title if given.replay else "",
    }
