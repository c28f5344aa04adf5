"""The evaluation `rollout`: its options, when a run has none, and how it is declared.

Loads no framework.
"""

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
from gan_runtime.data import loading, prepared
from gan_runtime.domains.flows import films
from gan_runtime.domains.flows.films import Film
from gan_runtime.domains.flows.score_metrics import BY_NAME, METRICS, RolloutScore
from gan_runtime.engines.tiling.stopwatch import ONCE, WAYS, Blend, Way
from gan_runtime.evaluation.catalog import Grid, Report
from gan_runtime.jobs.job import ON_THE_CPU
from gan_runtime.records.answer import KEPT, Answer, Score
from gan_runtime.records.home import Home
from gan_runtime.records.record import MOST_STEPS
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import answers_of
from gan_runtime.training.checkpoints import Which

NAME = "rollout"
# Simulated cores that the job's process has with JAX, whatever is asked for: XLA shares out its
# threads by their number, and with that its sums.
MOST_CORES = 8
# Frames that are predicted where nobody says how many: four shedding periods of the default flows,
# of which two must be there for a frequency.
USUAL_STEPS = 100
ALL_WAYS = f"one or more of {', '.join(WAYS)}, each once, with commas between them"


class RolloutOptions(OptionRecord):
    """From which frame, how far, and how the tiles of a picture are shared out."""

    checkpoint: Which = option(
        "newest",
        label="Checkpoint",
        choices=get_args(Which),
        help="Which of the run's.",
        error="use newest or best.",
    )
    epoch: int | None = option(
        None,
        label="Epoch",
        ge=0,
        text="an epoch whose weights the run has kept",
        help="The weights kept after this epoch, in place of a checkpoint.",
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
            f"How often the model is fed with its own picture. Left out: {USUAL_STEPS}, or all that"
            " the film has."
        ),
        error="use about 100, or leave it out.",
    )
    ways: tuple[Way, ...] = option(
        ("map_reduce",),
        label="Ways",
        text=ALL_WAYS,
        help=(
            "naive: one core, tile by tile; map_reduce: the tiles over all cores; whole: the"
            " picture at once."
        ),
        error="use map_reduce.",
    )
    cores: int = option(
        1,
        label="Cores",
        ge=1,
        le=MOST_CORES,
        help="Simulated cores over which map_reduce shares the tiles.",
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
        help="How tiles are merged where they overlap: their mean, or under Hann's window.",
        error="use none or hann.",
    )
    trajectory: int = option(
        0,
        label="Film",
        ge=0,
        le=1_000_000,
        help="Which of the held-out films, from 0.",
        error="use the number of a held-out film.",
    )
    start: int = option(
        0,
        label="First frame",
        ge=0,
        le=1_000_000,
        help="The frame of the film that is given.",
        error="use a frame of the film, such as 0.",
    )

    @field_validator("ways", mode="before")
    @classmethod
    def _ways(cls, value: Any) -> Any:
        """ "naive, whole" as well as a list.

        Raises ValueError for none, and for one that is named twice.
        """
        ways = [way.strip() for way in value.split(",")] if isinstance(value, str) else list(value)
        if not ways or len(set(ways)) < len(ways):
            raise ValueError("one or more ways, each once")
        return ways

    @property
    def state(self) -> str:
        """What an answer calls the weights: "newest", "best", "epoch 3"."""
        return self.checkpoint if self.epoch is None else f"{KEPT}{self.epoch}"

    def steps_of(self, there: int) -> int:
        """Frames that are predicted. `there`: frames that the film has after the given one."""
        return usual_steps(there) if self.steps is None else self.steps

    def is_usual(self, there: int) -> bool:
        """Whether the answer can be compared with those of other runs: the first film from its
        first frame on, as many steps as where nobody says how many, of a checkpoint and not of an
        epoch of one's choice. `there`: steps of the film.
        """
        question = (self.trajectory, self.start, self.steps_of(there - self.start))
        return self.epoch is None and question == (0, 0, usual_steps(there))


def usual_steps(there: int) -> int:
    """Steps where nobody says how many.

    `there`: frames that the true film has after the given one.
    """
    return max(1, min(USUAL_STEPS, there))


def usual_overlap(tile: int | None) -> int:
    """Pixels that tiles share where nobody says how many, merged under Hann's window: three
    quarters, so that each pixel is seen by a tile in which it is not near a border. `tile`: side of
    the tiles; None where a network sees whole pictures.
    """
    return 0 if tile is None else 3 * tile // 4


def applies(_entry: WorkloadEntry, _options: Options, fields: Fields) -> str:
    """To workloads that read pictures in pairs, whose targets can be fed back."""
    if SOURCE not in fields or TARGET not in fields:
        return (
            f"This run is not an image-to-image model: its data set has no {SOURCE} and {TARGET}."
            " Pick a run that has."
        )
    return films.not_fed_back(fields)


def usual(_home: Home, run: RunDir) -> dict[str, int]:
    """An overlap of three quarters of a tile."""
    return {"overlap": usual_overlap(tile_of(run))}


def check(home: Home, run: RunDir, options: RolloutOptions) -> None:
    """Raises SpecError where neighbors would share whole tiles, and DatasetError where there
    is no such film.
    """
    tile = tile_of(run)
    if tile is not None and options.overlap >= tile:
        sentence = (
            f"overlap is {options.overlap}, but allowed is 0 to {tile - 1}: the tiles of run"
            f" {run.run_id} are {tile} pixels wide."
        )
        raise SpecError([FieldError("overlap", sentence)])
    film_of(trajectories(home, run), options)


def film_of(known: list[Film], options: RolloutOptions) -> tuple[Film, int]:
    """The film that is asked for, and how many steps of it.

    Raises DatasetError: there is no such film, or it is too short.
    """
    film = films.chosen(known, options.trajectory, options.start, 1)
    steps = options.steps_of(film.steps - options.start)
    return films.chosen(known, options.trajectory, options.start, steps), steps


def tile_of(run: RunDir) -> int | None:
    """Side of the tiles that a run's network sees, in pixels; None where it sees whole pictures.

    Raises SpecError for options that cannot be read.
    """
    spec = run.spec()
    return None if spec.entry.tile is None else spec.entry.tile(spec.of_workload)


def trajectories(home: Home, run: RunDir) -> list[Film]:
    """The held-out films of a run's data set; empty where it is gone."""
    try:
        return films.films(prepared.opened(home, run.spec().dataset, resident_bytes=0))
    except GanRuntimeError:
        return []


def read_fields(home: Home, run: RunDir) -> Fields:
    """The fields that a run's workload reads.

    Raises SpecError, DatasetError where they are not known.
    """
    spec = run.spec()
    return spec.entry.reads(spec.of_workload, loading.fields_of(spec.dataset, home))


ROLLOUT = Evaluation(
    name=NAME,
    title="Autoregressive rollout",
    summary=(
        "The model is fed with its own pictures, from a frame of a held-out film on, and compared"
        " with the true ones."
    ),
    verb="Run rollout",
    options=RolloutOptions,
    applies=applies,
    usual=usual,
    check=check,
    scores=METRICS,
    work="gan_runtime.domains.flows.rollout:iterate",
    aliases=("flow",),
    report="gan_runtime.domains.flows.evaluation:report",
    earlier_jobs=("iterate",),
    busy="the model of run {run_id} is in a rollout",
    environment=ON_THE_CPU,
)


# ---- report --------------------------------------------------------------------------------------

BASELINES = ("reference", "replay")


def report(_home: Home, run: RunDir, result: Mapping[str, Any]) -> Report:
    """The scores of the first way, then the times of all.

    Raises JobError when nothing was measured.
    """
    key = result["iteration"]
    measured = [answer for answer in answers_of(run, NAME) if answer.facts["iteration"] == key]
    if not measured:
        raise JobError(f"job {key} has written no measurement: look into its log.")
    ways = [_document(answer) for answer in measured]
    return Report(
        {"run_id": run.run_id, **result, "ways": ways}, list(_parts(run.run_id, measured))
    )


def _document(answer: Answer) -> dict[str, object]:
    """Without the numbers of each step, which are in the store."""
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


def _parts(run_id: str, measured: list[Answer]) -> Iterator[str | Grid]:
    first, facts = measured[0], measured[0].facts
    place = f" of {facts['film']}" if facts["film"] else ""
    state = "weights kept then" if first.checkpoint.startswith(KEPT) else first.checkpoint
    what = f"{facts['steps']} steps{place}, {facts['way']}; means over the steps"
    yield f"{run_id} after epoch {first.epoch} ({state}), {what}:"
    known = ((BY_NAME.get(score.name), score) for score in first.scores)
    rows = [_row(score, value) for score, value in known if score is not None]
    yield Grid(("Score", "Predicted", "Replay", "Beside it"), rows)
    yield f"Replay: what followed the nearest frame of the training films, {facts['replay']}."
    yield f"Median milliseconds of a frame; {' and '.join(ONCE)} once a program:"
    yield Grid(
        ("Way", "Cores", *(str(stage["name"]) for stage in _stages(first))),
        list(map(_times, measured)),
    )


def _row(score: RolloutScore, value: Score) -> tuple[str, str, str, str]:
    reference, replayed = (_baseline(value, name) for name in BASELINES)
    replay = "" if math.isnan(replayed) else _number(score, replayed)
    return score.axis, _number(score, value.value), replay, _beside(score, reference)


def _times(answer: Answer) -> tuple[str, ...]:
    medians = (f"{1e3 * float(str(stage['median_s'])):.2f}" for stage in _stages(answer))
    return (answer.facts["way"], str(answer.facts["cores"]), *medians)


def _number(score: RolloutScore, value: float) -> str:
    return "–" if math.isnan(value) else f"{value:{score.format}}"


def _beside(score: RolloutScore, value: float) -> str:
    return "" if math.isnan(value) else f"{_number(score, value)} ({score.reference})"
