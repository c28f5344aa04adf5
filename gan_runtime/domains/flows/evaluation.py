"""The evaluation `rollout`: options, conditions, declaration and report. Loads no framework."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import field_validator

from gan_runtime.base.errors import FieldError, GanRuntimeError, JobError, SpecError
from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.entries import Options, WorkloadEntry
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.data import prepared
from gan_runtime.domains.flows import films
from gan_runtime.domains.flows.facts import FACTS
from gan_runtime.domains.flows.films import Film
from gan_runtime.domains.flows.score_metrics import BY_NAME, METRICS, RolloutScore
from gan_runtime.engines.tile_grid import Blend
from gan_runtime.engines.tiles import ONCE, WAYS, Way
from gan_runtime.evaluation.catalog import EvaluationReport, TextTable
from gan_runtime.jobs.job import ON_THE_CPU
from gan_runtime.records.answer import EPOCH_PREFIX, Answer, Score
from gan_runtime.records.home import Home
from gan_runtime.records.record import MOST_STEPS
from gan_runtime.records.run_folder import RunDir, answers_of
from gan_runtime.training.checkpoints import Which

NAME = "rollout"
# Simulated cores of the job's process with JAX, whatever the options: XLA divides its threads, and
# with them its sums, by their number.
MOST_CORES = 8
# Default number of predicted frames: four shedding periods of the default flows; a frequency needs
# two.
USUAL_STEPS = 100
ALL_WAYS = f"one or more of {', '.join(WAYS)}, each once, with commas between them"


class RolloutOptions(OptionRecord):
    """The start frame, the steps, and the division of images into tiles."""

    checkpoint: Which = option(
        "newest",
        label="Checkpoint",
        choices=get_args(Which),
        help="Checkpoint of the run to evaluate.",
        error="use newest or best.",
    )
    epoch: int | None = option(
        None,
        label="Epoch",
        ge=0,
        text="an epoch whose weights the run has stored",
        help="Evaluates the weights stored after this epoch instead of a checkpoint.",
        error="use one of the run's epochs, or leave it out.",
    )
    steps: int | None = option(
        None,
        label="Steps",
        unit="frames",
        ge=1,
        le=MOST_STEPS,
        text=f"a whole number from 1 to {MOST_STEPS}",
        help=(
            f"Frames to predict, each from the last one. Default: {USUAL_STEPS}, or all of a"
            " shorter film."
        ),
        error="use about 100, or leave it out.",
    )
    ways: tuple[Way, ...] = option(
        ("map_reduce",),
        label="Ways",
        text=ALL_WAYS,
        help=(
            "naive: tile by tile on one core; map_reduce: tiles distributed over all cores; whole:"
            " the image at once."
        ),
        error="use map_reduce.",
    )
    cores: int = option(
        1,
        label="Cores",
        ge=1,
        le=MOST_CORES,
        help="Simulated cores over which map_reduce distributes the tiles.",
        error="use 1 to 8.",
    )
    overlap: int = option(
        0,
        label="Overlap",
        unit="pixels",
        ge=0,
        le=512,
        help="Pixels that neighboring tiles share.",
        error="use three quarters of a tile.",
    )
    blend: Blend = option(
        "hann",
        label="Blend",
        choices=get_args(Blend),
        help="How overlapping tiles are merged: none: their mean; hann: weighted by Hann's window.",
        error="use none or hann.",
    )
    trajectory: int = option(
        0,
        label="Film",
        ge=0,
        le=1_000_000,
        help="Number of the held-out film, from 0.",
        error="use the number of a held-out film.",
    )
    start: int = option(
        0,
        label="First frame",
        ge=0,
        le=1_000_000,
        help="Frame of the film at which the rollout starts.",
        error="use a frame of the film, such as 0.",
    )

    @field_validator("ways", mode="before")
    @classmethod
    def _ways(cls, value: Any) -> Any:
        """Accepts "naive, whole" and a list. Raises ValueError for no way, and for a repetition."""
        ways = [way.strip() for way in value.split(",")] if isinstance(value, str) else list(value)
        if not ways or len(set(ways)) < len(ways):
            raise ValueError("one or more ways, each once")
        return ways

    @property
    def state(self) -> str:
        """Name of the weights in an answer: "newest", "best", "epoch 3"."""
        return self.checkpoint if self.epoch is None else f"{EPOCH_PREFIX}{self.epoch}"

    def steps_of(self, available: int) -> int:
        """Frames to predict. `available`: frames of the film after the start frame."""
        return usual_steps(available) if self.steps is None else self.steps

    def is_usual(self, available: int) -> bool:
        """Whether the answer is comparable between runs: the first film from its first frame on,
        the usual number of steps, and a checkpoint. `available`: steps of the film.
        """
        question = (self.trajectory, self.start, self.steps_of(available - self.start))
        return self.epoch is None and question == (0, 0, usual_steps(available))


def usual_steps(available: int) -> int:
    """Default number of steps. `available`: frames of the true film after the start frame."""
    return max(1, min(USUAL_STEPS, available))


def applies(_entry: WorkloadEntry, _options: Options, fields: Fields) -> str:
    """Applies to paired images whose targets can be inputs."""
    if SOURCE not in fields or TARGET not in fields:
        return (
            f"This run is not an image-to-image model: its data set has no {SOURCE} and {TARGET}."
            " Pick a run with paired images."
        )
    return films.not_fed_back(fields)


def usual(_home: Home, run: RunDir) -> dict[str, int]:
    """An overlap of three quarters of a tile, so that some tile has each pixel far from its border;
    0 for a network that reads whole images.
    """
    tile = tile_of(run)
    return {"overlap": 0 if tile is None else 3 * tile // 4}


def check(home: Home, run: RunDir, options: RolloutOptions) -> None:
    """Raises SpecError for an overlap of whole tiles, and DatasetError for a missing film."""
    tile = tile_of(run)
    if tile is not None and options.overlap >= tile:
        sentence = (
            f"overlap is {options.overlap}, but allowed is 0 to {tile - 1}: the tiles of run"
            f" {run.run_id} are {tile} pixels wide."
        )
        raise SpecError([FieldError("overlap", sentence)])
    film_of(trajectories(home, run), options)


def film_of(held_out: list[Film], options: RolloutOptions) -> tuple[Film, int]:
    """The requested film and its steps. Raises DatasetError: it is missing or too short."""
    film = films.selected(held_out, options.trajectory, options.start, 1)
    steps = options.steps_of(film.steps - options.start)
    return films.selected(held_out, options.trajectory, options.start, steps), steps


def tile_of(run: RunDir) -> int | None:
    """Side of the tiles of a run's network in pixels; None where it reads whole images.

    Raises SpecError for unreadable options.
    """
    spec = run.spec()
    return None if spec.entry.tile is None else spec.entry.tile(spec.of_workload)


def trajectories(home: Home, run: RunDir) -> list[Film]:
    """The held-out films of a run's data set; empty where it is deleted."""
    try:
        return films.films(prepared.open_set(home, run.spec().dataset, resident_bytes=0))
    except GanRuntimeError:
        return []


ROLLOUT = Evaluation(
    name=NAME,
    title="Autoregressive rollout",
    summary=(
        "From one frame of a held-out film on, the model predicts each frame from its last one."
        " Scores compare them with the true frames."
    ),
    verb="Run rollout",
    options=RolloutOptions,
    applies=applies,
    usual=usual,
    check=check,
    scores=METRICS,
    facts=FACTS,
    page="dashboard.domains.flows.page:PAGE",
    work="gan_runtime.domains.flows.rollout:iterate",
    report="gan_runtime.domains.flows.evaluation:report",
    verdict="gan_runtime.domains.flows.rollout_verdict:verdict",
    earlier_jobs=("iterate",),
    busy="the model of run {run_id} is in a rollout",
    environment=ON_THE_CPU,
)


# ---- report --------------------------------------------------------------------------------------

BASELINES = ("reference", "replay")


def report(_home: Home, run: RunDir, result: Mapping[str, Any]) -> EvaluationReport:
    """The scores of the first way, then the times of all.

    Raises JobError when nothing was measured.
    """
    key = result["iteration"]
    measured = [answer for answer in answers_of(run, NAME) if answer.facts["iteration"] == key]
    if not measured:
        raise JobError(f"job {key} stored no measurement. Check its log.")
    ways = [_document(answer) for answer in measured]
    return EvaluationReport(
        {"run_id": run.run_id, **result, "ways": ways}, list(_parts(run.run_id, measured))
    )


def _document(answer: Answer) -> dict[str, object]:
    """The answer as a JSON document, without the numbers of each step, which are in the
    database.
    """
    scores = [
        {
            "name": score.name,
            "value": score.value,
            **{name: _baseline(score, name) for name in BASELINES},
        }
        for score in answer.scores
    ]
    return {
        **{name: getattr(answer, name) for name in ("epoch", "step", "checkpoint")},
        "at": answer.at.isoformat(),
        **answer.facts,
        "scores": scores,
        "stages": _stages(answer),
        "frames": answer.arrays[0].file if answer.arrays else "",
    }


def _stages(answer: Answer) -> list[dict[str, object]]:
    curve = next(curve for curve in answer.curves if curve.name == "stages")
    lines = {line.name: line.values for line in curve.series}
    return [
        {"name": name, **{of: values[place] for of, values in lines.items()}}
        for place, name in enumerate(curve.facts["names"])
    ]


def _baseline(score: Score, name: str) -> float:
    return score.baselines.get(name, math.nan)


def _parts(run_id: str, measured: list[Answer]) -> Iterator[str | TextTable]:
    first, facts = measured[0], measured[0].facts
    place = f" of {facts['film']}" if facts["film"] else ""
    state = "stored weights" if first.checkpoint.startswith(EPOCH_PREFIX) else first.checkpoint
    what = f"{facts['steps']} steps{place}, {facts['way']}; means over the steps"
    yield f"{run_id} after epoch {first.epoch} ({state}), {what}:"
    rows = [_row(BY_NAME[score.name], score) for score in first.scores if score.name in BY_NAME]
    yield TextTable(("Score", "Predicted", "Replay", "Reference"), rows)
    yield f"Replay: the frames after the nearest training frame, {facts['replay']}."
    yield f"Median milliseconds of a frame; {' and '.join(ONCE)} once per program:"
    yield TextTable(
        ("Way", "Cores", *(str(stage["name"]) for stage in _stages(first))),
        list(map(_times, measured)),
    )


def _row(score: RolloutScore, value: Score) -> tuple[str, str, str, str]:
    reference, replay = (
        "" if math.isnan(number := _baseline(value, name)) else _number(score, number)
        for name in BASELINES
    )
    named = f"{reference} ({score.reference})" if reference else ""
    return score.axis, _number(score, value.value), replay, named


def _times(answer: Answer) -> tuple[str, ...]:
    medians = (f"{1e3 * float(str(stage['median_s'])):.2f}" for stage in _stages(answer))
    return (answer.facts["way"], str(answer.facts["cores"]), *medians)


def _number(score: RolloutScore, value: float) -> str:
    return "–" if math.isnan(value) else f"{value:{score.format}}"
