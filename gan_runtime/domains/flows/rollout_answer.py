"""The answer of a rollout in one way: its scores, curves and facts, and the file of its frames.

The views flow, flow_scores, flow_steps and flow_stages (views.sql) are built on these names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.flows import measures
from gan_runtime.domains.flows.evaluation import NAME
from gan_runtime.domains.flows.films import Film
from gan_runtime.domains.flows.score_metrics import MEASURED
from gan_runtime.engines.tiling.division import Division, seam_ratio
from gan_runtime.engines.tiling.stopwatch import StageTime
from gan_runtime.records import film_files
from gan_runtime.records.answer import KEPT, Answer, ArrayFile, Curve, Score, Series
from gan_runtime.records.film_files import Frames
from gan_runtime.records.run_folder import RunDir


@dataclass(frozen=True)
class RolloutState:
    """Weights of the run: after which epoch and step, and what an answer calls them."""

    epoch: int
    step: int
    name: str


def answer_of(
    facts: dict[str, Any], state: RolloutState, found: Scored, stages: Sequence[StageTime]
) -> Answer:
    """The answer of one way, but for the file of the frames.

    Numbers of the run are those of the usual question, of which those in tiles come before the
    whole picture.
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
        scores=found.scores,
        curves=[*(numbers.curve for numbers in found.by_step), _curve_of(stages)],
    )


def key_of(facts: dict[str, Any], state: RolloutState) -> str:
    """Equal for rollouts that begin in the same frame, take as many steps and divide the picture in
    the same way.

    Weights kept after an epoch are no checkpoint: they never take the place of one.
    """
    weights = "weights" if state.name.startswith(KEPT) else "checkpoint"
    tiles = f"{facts['way']}, {facts['cores']} cores, overlap {facts['overlap']}, {facts['blend']}"
    film = f"film {facts['trajectory']} from {facts['start']}, {facts['steps']} steps"
    return f"{weights} of epoch {state.epoch}, {tiles}, {film}"


def _curve_of(stages: Sequence[StageTime]) -> Curve:
    """Seconds of all calls of a stage, how many there were, and the median of one."""
    lines = {
        "seconds": [stage.seconds for stage in stages],
        "times": [float(stage.times) for stage in stages],
        "median_s": [stage.median_s for stage in stages],
    }
    return Curve(
        name="stages",
        x=[float(number) for number in range(len(stages))],
        series=[Series(name=name, values=values) for name, values in lines.items()],
        facts={"names": [stage.stage for stage in stages]},
    )


def written(run: RunDir, kept: list[tuple[Answer, Frames]]) -> list[Answer]:
    """The answers, each with its file of frames, which is there by then.

    Raises:
        HomeError: the disk is full; no file is left.
    """
    answers: list[Answer] = []
    files: list[str] = []
    try:
        for answer, frames in kept:
            files.append(
                film_files.write(run, f"{answer.facts['iteration']}-{answer.facts['way']}", frames)
            )
            arrays = [ArrayFile(name="frames", file=files[-1])]
            answers.append(answer.model_copy(update={"arrays": arrays}))
    except BaseException:
        for file in files:
            (run.path / file).unlink(missing_ok=True)
        raise
    return answers


# ---- scoring -------------------------------------------------------------------------------------
# The scores of predicted frames beside the true ones, as domains/flows/score_metrics.py declares
# them.

Values = NDArray[np.float32]
Numbers = NDArray[np.float64]
DIGITS = 6
ERRORS = {
    "mae": measures.mae,
    "rmse": measures.rmse,
    "psnr": measures.psnr,
    "ssim": measures.ssim,
    "spectrum": measures.spectrum_error,
}


@dataclass(frozen=True)
class Times:
    """Median seconds of a frame: by the model, and by the solver; NaN where it was not measured."""

    frame_s: float
    solver_s: float


@dataclass(frozen=True)
class FrameNumbers:
    """A number a frame, from step `first` on: of the prediction (`values`), of the copied start
    frame, of the true frames, and of the replay, NaN from its end on. Empty: there is no such
    number.
    """

    name: str
    values: list[float]
    persistence: list[float] = field(default_factory=list)
    truth: list[float] = field(default_factory=list)
    replay: list[float] = field(default_factory=list)
    first: int = 1

    @property
    def curve(self) -> Curve:
        """As it is in an answer."""
        lines = (
            ("prediction", self.values),
            ("persistence", self.persistence),
            ("truth", self.truth),
            ("replay", self.replay),
        )
        return Curve(
            name=self.name,
            x=[float(self.first + place) for place in range(len(self.values))],
            series=[Series(name=name, values=values) for name, values in lines if values],
        )


@dataclass(frozen=True)
class Scored:
    """`by_step`: a number a frame; `scores`: single ones, the means of those by step first."""

    scores: list[Score]
    by_step: list[FrameNumbers]


def scored(
    truth: Values,
    predicted: Values,
    mask: Values,
    tiles: Division,
    film: Film,
    times: Times,
    period: float = math.nan,
    replay: Values | None = None,
) -> Scored:
    """`truth`, `predicted`: (1 + steps, height, width, channels), the given frame first; `mask`:
    (height, width, more); `period`: frames in which the true flow sheds a pair of eddies, NaN where
    that is not known; `replay`: (K, height, width, channels), of the first K steps.
    """
    still = np.repeat(truth[:1], len(truth) - 1, axis=0)  # persistence: the given frame for ever
    replayed = truth[:0] if replay is None else replay
    series = [
        _series(
            name,
            error(predicted[1:], truth[1:]),
            persistence=error(still, truth[1:]),
            replay=error(replayed, truth[1 : 1 + len(replayed)]),
        )
        for name, error in ERRORS.items()
    ]
    seams = [seam_ratio(frames[1:], tiles) for frames in (predicted, truth)]
    series.append(_series("seam_ratio", seams[0], truth=seams[1]))
    if film.reynolds is not None:
        obstacle: NDArray[np.bool_] = np.asarray((mask > 0.5).any(axis=-1))
        series.extend(_of_flow(truth, predicted, still, obstacle))
        series.append(_probe(truth, predicted, replayed, film.shift))
    known = {one.name: one for one in series}
    singles = [_mean(one) for one in series if one.name != "probe"]
    singles.extend(_horizons(known["rmse"], len(replayed)))
    if film.reynolds is not None and film.solver_steps is not None:
        singles.extend(_street(known["probe"], film, period))
        singles.extend(_of_period(known[name], period) for name in ("rmse", "ssim"))
    singles.append(_single("ms_frame", (1e3 * times.frame_s, 1e3 * times.solver_s, math.nan)))
    return Scored(singles, series)


def _of_flow(
    truth: Values, predicted: Values, still: Values, obstacle: NDArray[np.bool_]
) -> list[FrameNumbers]:
    """What only a flow has."""
    real = measures.enstrophy(truth[1:], obstacle)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [measures.enstrophy(frames, obstacle) / real for frames in (predicted[1:], still)]
    lost = [measures.divergence(frames[1:], obstacle) for frames in (predicted, truth)]
    return [
        _series("enstrophy_ratio", ratios[0], persistence=ratios[1]),
        _series("divergence", lost[0], truth=lost[1]),
    ]


def _probe(truth: Values, predicted: Values, replayed: Values, shift: float) -> FrameNumbers:
    """Of the given frame too, which the replay does not have: its own signal begins with the
    truth's.
    """
    given, true, swings = (
        measures.probe(frames, shift) for frames in (truth[:1], truth, predicted)
    )
    replay = np.concatenate([given, measures.probe(replayed, shift)]) if len(replayed) else None
    return _series("probe", swings, truth=true, replay=replay, first=0)


def _horizons(rmse: FrameNumbers, replayed: int) -> list[Score]:
    """Against the copied frame, and against the replay as far as it goes."""
    predicted, still, replay = (
        np.array(frame_errors) for frame_errors in (rmse.values, rmse.persistence, rmse.replay)
    )
    scores = [Score(name="horizon", value=measures.horizon(predicted, still))]
    if replayed:
        steps = measures.horizon(predicted[:replayed], replay[:replayed])
        scores.append(Score(name="horizon_replay", value=steps))
    return scores


def _street(probe: FrameNumbers, film: Film, period: float) -> list[Score]:
    """By the frequency at which the probe swings; NaN where it does not, or not often enough to
    tell. `period`: of the whole true film; where it is NaN, the steps alone tell that of the truth.
    """
    signals = (np.array(signal) for signal in (probe.values, probe.truth, probe.replay))
    predicted, true, replay = map(measures.period, signals)
    periods = (predicted, period if math.isfinite(period) else true, replay)
    strouhal = [
        measures.strouhal_of(1.0 / frames, film.solver_steps or 1, film.width) for frames in periods
    ]
    off = [abs(number - strouhal[1]) / strouhal[1] for number in strouhal]
    return [
        _single("strouhal", strouhal),
        _single("strouhal_error", (off[0], math.nan, off[2])),
        _single("period", periods),
    ]


def _of_period(series: FrameNumbers, period: float) -> Score:
    """Mean over the first period; NaN where there are fewer steps."""
    steps = round(period) if math.isfinite(period) else 0
    whole = 0 < steps <= len(series.values)
    means = [_mean_of(numbers[:steps]) if whole else math.nan for numbers in _sides(series)]
    return _single(f"{series.name}_period", means)


def _series(
    name: str,
    values: Numbers,
    truth: Numbers | None = None,
    persistence: Numbers | None = None,
    replay: Numbers | None = None,
    first: int = 1,
) -> FrameNumbers:
    """A replay that ends before is NaN from there on; one without a number is none."""
    references = {"truth": truth, "persistence": persistence}
    if replay is not None and len(replay):
        references["replay"] = np.pad(
            replay, (0, len(values) - len(replay)), constant_values=np.nan
        )
    rounded = {key: _rounded(numbers) for key, numbers in references.items() if numbers is not None}
    return FrameNumbers(name=name, first=first, values=_rounded(values), **rounded)


def _single(name: str, sides: Sequence[float]) -> Score:
    """Of the prediction, of its reference and of the replay."""
    value, reference, replay = sides
    baselines = {"reference": reference, "replay": replay}
    given = {key: number for key, number in baselines.items() if not math.isnan(number)}
    return Score(name=name, value=value, baselines=given)


def _mean(series: FrameNumbers) -> Score:
    """Over the steps.

    Equal frames have an infinite PSNR, which no mean can hold: they are left out of it.
    """
    equal = math.inf if series.name == "psnr" else math.nan  # NaN equals nothing
    means = [
        _mean_of([number for number in numbers if number != equal]) for numbers in _sides(series)
    ]
    return _single(series.name, means)


def _sides(series: FrameNumbers) -> tuple[list[float], list[float], list[float]]:
    return series.values, series.persistence or series.truth, series.replay


def _mean_of(values: list[float]) -> float:
    """NaN where one of them is no finite number, as of a model that has run away, and where
    there is none.
    """
    return (
        math.fsum(values) / len(values) if values and all(map(math.isfinite, values)) else math.nan
    )


def _rounded(numbers: Numbers) -> list[float]:
    return [float(f"{number:.{DIGITS}g}") for number in numbers.tolist()]
