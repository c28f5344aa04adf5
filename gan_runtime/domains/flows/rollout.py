"""The work of the evaluation `rollout`: a run's model predicts frame after frame from its output,
and the frames are scored against the true frames. There is one answer for each way of tiling, with
a file of frames.

The views flow, flow_scores, flow_steps and flow_stages (views.sql) read the names in the answers.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime import catalog
from gan_runtime.base.errors import CheckpointError, DatasetError, FieldError, SpecError
from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.base.framework_settings import block_scikit_learn
from gan_runtime.data import loading
from gan_runtime.data.contract import DataSet, Progress
from gan_runtime.domains.flows import films
from gan_runtime.domains.flows.evaluation import MOST_CORES, NAME, RolloutOptions, film_of
from gan_runtime.domains.flows.fields import WIDTH
from gan_runtime.domains.flows.films import Film, Replay, nearest
from gan_runtime.domains.flows.lattice import Lattice
from gan_runtime.domains.flows.score_metrics import MEASURED
from gan_runtime.domains.flows.scores import (
    FrameTimes,
    RolloutScores,
    probe_velocity,
    scored,
    shedding_period,
)
from gan_runtime.engines.inputs import host_value
from gan_runtime.engines.task import workload_of
from gan_runtime.engines.tile_grid import TileGrid
from gan_runtime.engines.tiles import (
    StageTime,
    TiledTranslator,
    TileProgram,
    Translator,
    Way,
    translator_of,
)
from gan_runtime.evaluation.catalog import EvaluationResult, Subject
from gan_runtime.records import image_files
from gan_runtime.records.answer import EPOCH_PREFIX, Answer, ArrayFile, Curve, CurveSeries
from gan_runtime.records.image_files import Frames
from gan_runtime.records.run_folder import RunDir, steps_per_epoch
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.checkpoints import Checkpoint, first_not_finite
from gan_runtime.workloads.contract import Translates

CPU = "cpu"
SOLVED = 3  # frames by the solver, for its own time
Values = NDArray[np.float32]
Paint = Callable[[Values], Values]
OnStep = Callable[[int], None]


@dataclass(frozen=True)
class RolloutModel:
    """A checkpoint of a run as an image-to-image network, and its engine's programs."""

    spec: RunSpec
    checkpoint: Checkpoint
    translator: Translator
    program: type[TileProgram]


@dataclass(frozen=True)
class RolloutCase:
    """The start of a rollout and the truth, as values.

    `source`: (height, width, channels in) of the start frame; `truth`: (1 + steps, height, width,
    channels out), the start frame first. `period`: in frames, of the whole film; NaN without
    shedding. `replay`: of the nearest training film.
    """

    film: Film
    source: Values
    truth: Values
    period: float
    replay: Replay | None = None

    @property
    def steps(self) -> int:
        """The number of frames to predict."""
        return len(self.truth) - 1

    @property
    def mask(self) -> Values:
        """(height, width, more): the channels of the source that stay constant."""
        return self.source[..., self.truth.shape[-1] :]

    @property
    def obstacle(self) -> NDArray[np.bool_]:
        """The obstacle on the solver's cells, (80, 192), for a frame on either grid."""
        pixels = np.asarray((self.mask > 0.5).any(axis=-1))
        each = max(1, WIDTH // pixels.shape[1])
        return pixels.repeat(each, axis=0).repeat(each, axis=1)


@dataclass(frozen=True)
class Iteration:
    """`name`: the job's; `per_epoch`: steps of the run's training; `solver_s`: of a frame by
    the solver, NaN for pairs of images.
    """

    name: str
    options: RolloutOptions
    per_epoch: int
    solver_s: float


def iterate(subject: Subject) -> EvaluationResult:
    """Computes one answer for each way; the result has the iteration's name, the step of the
    checkpoint and warnings.

    Raises:
        CheckpointError, SpecError: the run has no such checkpoint, or its options are unreadable.
        DatasetError: its data set is deleted, was replaced, or has no such film.
    """
    run, options = subject.run, subject.options
    subject.progress(0, 1, "reading the frames")
    inference.check_data(run, subject.home)
    data = loading.load(run.spec().dataset, subject.home)
    case, model = case_of(data, options, subject.progress), model_of(run, data.fields, options)
    tiles = division_of(case, model, options)
    iteration = Iteration(subject.key, options, steps_per_epoch(run), solver_seconds(case))
    outcomes: dict[Way, tuple[Answer, Frames]] = {}
    # The way over several cores first, since TensorFlow creates simulated cores only once.
    for number, way in enumerate(sorted(options.ways, key=lambda way: way != "map_reduce")):

        def on_step(step: int, begin: int = number * case.steps, way: Way = way) -> None:
            sentence = f"{way.replace('_', '-')}: step {step} of {case.steps}"
            subject.progress(begin + step, len(options.ways) * case.steps, sentence)

        outcomes[way] = outcome(iteration, model, case, tiles, way, on_step)
    answers = written(run, [outcomes[way] for way in options.ways])
    result = {
        "iteration": iteration.name,
        "step": model.checkpoint.step,
        "warnings": list(model.checkpoint.warnings),
    }
    files = tuple(run.path / array.file for answer in answers for array in answer.arrays)
    return EvaluationResult(answers, result, files)


def case_of(data: DataSet, options: RolloutOptions, progress: Progress) -> RolloutCase:
    """Raises DatasetError for a missing or too short film, and targets that cannot be inputs."""
    if reason := films.not_fed_back(data.fields):
        raise DatasetError(reason)
    film, steps = film_of(films.films(data), options)
    source, targets = films.frames(data, film, options.start, steps)
    first = host_value(source, data.fields[SOURCE])
    truth = host_value(targets, data.fields[TARGET])
    frames = np.concatenate([first[np.newaxis, ..., : truth.shape[-1]], truth])
    replay = nearest(data, frames[0], steps, progress)
    return RolloutCase(film, first, frames, period_of(data, film), replay)


def period_of(data: DataSet, film: Film) -> float:
    """Frames of one shedding period of a film; NaN without shedding."""
    if film.reynolds is None:
        return float("nan")
    _, targets = films.frames(data, film, 0, film.steps)
    return shedding_period(probe_velocity(host_value(targets, data.fields[TARGET]), film.shift))


def model_of(run: RunDir, offered: Fields, options: RolloutOptions) -> RolloutModel:
    """The model of a run. Loads the run's framework on simulated cores. `offered`: the fields of
    its data set.

    Raises:
        CheckpointError: the run has no such checkpoint, or no usable weights of that epoch.
        DatasetError: its workload is not an image-to-image model.
    """
    spec, checkpoint = run.spec(), checkpoint_of(run, options)
    set_flags(spec)
    workload: object = workload_of(spec)
    if not isinstance(workload, Translates):
        raise DatasetError(
            f"run {run.run_id} is not an image-to-image model: pick a run with paired images."
        )
    fields = spec.entry.reads(spec.of_workload, offered)
    translator = translator_of(spec, workload, fields, checkpoint.arrays)
    program = importlib.import_module(catalog.engine(spec.engine).tiles).TILE_PROGRAM
    return RolloutModel(spec, checkpoint, translator, program)


def checkpoint_of(run: RunDir, options: RolloutOptions) -> Checkpoint:
    """The checkpoint to evaluate; for an epoch, with the float16 weights stored after it.

    Raises:
        CheckpointError: it is missing or damaged, or its weights are not finite.
    """
    checkpoint = checkpoints.load(run.checkpoints, options.checkpoint)
    if options.epoch is None:
        return checkpoint
    arrays = {**checkpoint.arrays, **checkpoints.load_snapshot(run.snapshots, options.epoch)}
    if broken := first_not_finite(arrays):
        raise CheckpointError(
            f"the weights of epoch {options.epoch} are unusable: {broken} exceeds float16, in which"
            " they are stored. Use another epoch."
        )
    return replace(checkpoint, arrays=arrays, step=options.epoch * steps_per_epoch(run))


def set_flags(spec: RunSpec) -> None:
    """Sets flags for the most simulated cores of a rollout, before anything loads the framework."""
    block_scikit_learn()
    cores = MOST_CORES if spec.engine == "jax" else 1
    importlib.import_module(catalog.engine(spec.engine).flags).set_flags(
        spec.model_copy(update={**inference.ONE_REPLICA, "replicas": cores}), CPU, trains=False
    )


def division_of(case: RolloutCase, model: RolloutModel, options: RolloutOptions) -> TileGrid:
    """Tiles of the size that the run trained with. Raises SpecError if they overlap fully."""
    height, width = case.source.shape[:2]
    try:
        return TileGrid((height, width), (model.translator.tile,) * 2, options.overlap)
    except ValueError as error:
        raise SpecError([FieldError("overlap", str(error))]) from None


def outcome(
    iteration: Iteration,
    model: RolloutModel,
    case: RolloutCase,
    tiles: TileGrid,
    way: Way,
    on_step: OnStep,
) -> tuple[Answer, Frames]:
    """The answer of one way, and its frames. `tiles`: the tiles whose borders can be seams."""
    options, shape = iteration.options, case.source.shape
    division = (options.cores, options.overlap, options.blend)
    painter = TiledTranslator(model.program, model.translator, way, shape, *division)
    predicted = rolled_out(painter, case.source, case.steps, on_step)
    times = FrameTimes(painter.stopwatch.image_s(), iteration.solver_s)
    replay = case.replay.frames if case.replay else None
    scores = scored(case.truth, predicted, case.mask, tiles, case.film, times, case.period, replay)
    halves = (frames.astype(np.float16) for frames in (case.truth, predicted, case.mask))
    facts = facts_of(iteration, model, case, painter)
    step = model.checkpoint.step
    state = RolloutState(round(step / iteration.per_epoch), step, options.state)
    answer = answer_of(facts, state, scores, painter.stopwatch.times())
    return answer, Frames(np.arange(len(predicted)), *halves)


def rolled_out(paint: Paint, source: Values, steps: int, on_step: OnStep) -> Values:
    """The start frame, then each image predicted from the previous one: (1 + steps, height, width,
    channels out). Further channels of the source stay constant.
    """
    images: list[Values] = []
    for step in range(1, steps + 1):
        image = paint(source)
        if not images:
            images.append(source[..., : image.shape[-1]])
        images.append(image)
        source = np.concatenate([image, source[..., image.shape[-1] :]], axis=-1)
        on_step(step)
    return np.stack(images)


def solver_seconds(case: RolloutCase) -> float:
    """Median seconds of the solver for a frame of this flow on this machine; NaN for pairs of
    images.
    """
    flow, steps = solver_of(case), case.film.solver_steps
    if flow is None or steps is None:
        return float("nan")
    seconds = []
    for _ in range(SOLVED):
        begin = time.perf_counter()
        flow.advance(steps)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def solver_of(case: RolloutCase) -> Lattice | None:
    """The flow at its beginning, past its own obstacle; None for pairs of images."""
    film = case.film
    if film.reynolds is None:
        return None
    return Lattice(film.reynolds, case.obstacle, diameter=film.width)


# ---- answer --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RolloutState:
    """Weights of the run: epoch, step, and their name in an answer."""

    epoch: int
    step: int
    name: str


def answer_of(
    facts: dict[str, Any], state: RolloutState, scores: RolloutScores, stages: Sequence[StageTime]
) -> Answer:
    """The answer of one way, without the file of its frames. Default settings give metrics of the
    run; tiles take precedence over the whole image.
    """
    return Answer(
        evaluation=NAME,
        key=key_of(facts, state),
        epoch=state.epoch,
        step=state.step,
        checkpoint=state.name,
        facts=facts,
        metric_prefix=f"{MEASURED}_" if facts["is_usual"] else "",
        precedence=0 if facts["way"] == "whole" else 1,
        scores=scores.scores,
        curves=[*(numbers.curve for numbers in scores.by_step), _stage_curve(stages)],
    )


def key_of(facts: dict[str, Any], state: RolloutState) -> str:
    """The key of an answer, equal for rollouts with the same start frame, steps and tiling. Answers
    for weights of an epoch never replace those for a checkpoint.
    """
    weights = "weights" if state.name.startswith(EPOCH_PREFIX) else "checkpoint"
    tiles = f"{facts['way']}, {facts['cores']} cores, overlap {facts['overlap']}, {facts['blend']}"
    film = f"film {facts['trajectory']} from {facts['start']}, {facts['steps']} steps"
    return f"{weights} of epoch {state.epoch}, {tiles}, {film}"


def facts_of(
    iteration: Iteration, model: RolloutModel, case: RolloutCase, painter: TiledTranslator
) -> dict[str, Any]:
    """The conditions of a rollout, by name."""
    options, film = iteration.options, case.film
    return {
        "iteration": iteration.name,
        "way": painter.way,
        "engine": model.spec.engine,
        "cores": painter.cores,
        "tile": list(painter.grid.tile),
        "overlap": painter.grid.overlap,
        "blend": options.blend,
        "tiles": len(painter.grid),
        "grid": [*case.source.shape[:2], case.truth.shape[-1]],
        "reynolds": film.reynolds,
        "trajectory": options.trajectory,
        "start": options.start,
        "steps": case.steps,
        "is_usual": options.is_usual(film.steps),
        "solver_steps": film.solver_steps,
        "film": film.title,
        "obstacle_width": None if film.reynolds is None else film.width,
        "replay": case.replay.title if case.replay else "",
    }


def _stage_curve(stages: Sequence[StageTime]) -> Curve:
    """A curve with the seconds of all calls of each stage, their number, and the median
    of a call.
    """
    lines = {
        "seconds": [stage.seconds for stage in stages],
        "times": [float(stage.times) for stage in stages],
        "median_s": [stage.median_s for stage in stages],
    }
    return Curve(
        name="stages",
        x=[float(number) for number in range(len(stages))],
        series=[CurveSeries(name=name, values=values) for name, values in lines.items()],
        facts={"names": [stage.stage for stage in stages]},
    )


def written(run: RunDir, outcomes: list[tuple[Answer, Frames]]) -> list[Answer]:
    """The answers, after their files of frames are written.

    Raises:
        HomeError: the disk is full; no file is left.
    """
    answers: list[Answer] = []
    files: list[str] = []
    try:
        for answer, frames in outcomes:
            name = f"{answer.facts['iteration']}-{answer.facts['way']}"
            files.append(image_files.write_film(run, name, frames))
            arrays = [ArrayFile(name="frames", file=files[-1])]
            answers.append(answer.model_copy(update={"arrays": arrays}))
    except BaseException:
        for file in files:
            (run.path / file).unlink(missing_ok=True)
        raise
    return answers
