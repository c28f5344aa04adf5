"""The scores of predicted frames beside the true ones, as catalog/flow_scores.py declares them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gan_runtime.data.films import Film
from gan_runtime.flow import errors, measures
from gan_runtime.records.journal import FlowScore, FlowSeries
from gan_runtime.tiling.division import Division
from gan_runtime.tiling.seams import seam_ratio

Values = NDArray[np.float32]
Numbers = NDArray[np.float64]
DIGITS = 6
ERRORS = {
    "mae": errors.mae,
    "rmse": errors.rmse,
    "psnr": errors.psnr,
    "ssim": errors.ssim,
    "spectrum": errors.spectrum_error,
}


@dataclass(frozen=True)
class Times:
    """Median seconds of a frame: by the model, and by the solver; NaN where it was not measured."""

    frame_s: float
    solver_s: float


@dataclass(frozen=True)
class Scored:
    """`by_step`: a number a frame; `scores`: single ones, the means of those by step first."""

    scores: list[FlowScore]
    by_step: list[FlowSeries]


def scored(
    truth: Values,
    predicted: Values,
    mask: Values,
    tiles: Division,
    film: Film,
    times: Times,
    period: float = math.nan,
) -> Scored:
    """`truth`, `predicted`: (1 + steps, height, width, channels), the given frame first; `mask`: (height, width, more); `period`: frames in which
    the true flow sheds a pair of eddies, NaN where that is not known."""
    still = np.repeat(truth[:1], len(truth) - 1, axis=0)  # persistence: the given frame for ever
    series = [
        _series(name, error(predicted[1:], truth[1:]), persistence=error(still, truth[1:]))
        for name, error in ERRORS.items()
    ]
    seams = [seam_ratio(frames[1:], tiles) for frames in (predicted, truth)]
    series.append(_series("seam_ratio", seams[0], truth=seams[1]))
    if film.reynolds is not None:
        obstacle: NDArray[np.bool_] = np.asarray((mask > 0.5).any(axis=-1))
        series.extend(_of_flow(truth, predicted, still, obstacle))
    known = {one.name: one for one in series}
    singles = [_mean(one) for one in series if one.name != "probe"]
    singles.append(FlowScore(name="horizon", value=errors.horizon(*map(np.array, _both(known["rmse"])))))
    if film.reynolds is not None and film.solver_steps is not None:
        singles.extend(_street(known["probe"], film.solver_steps, period))
        singles.extend(_of_period(known[name], period) for name in ("rmse", "ssim"))
    singles.append(FlowScore(name="ms_frame", value=1e3 * times.frame_s, reference=1e3 * times.solver_s))
    return Scored(singles, series)


def _of_flow(
    truth: Values, predicted: Values, still: Values, obstacle: NDArray[np.bool_]
) -> list[FlowSeries]:
    """What only a flow has."""
    real = measures.enstrophy(truth[1:], obstacle)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [measures.enstrophy(frames, obstacle) / real for frames in (predicted[1:], still)]
    lost = [measures.divergence(frames[1:], obstacle) for frames in (predicted, truth)]
    swings = [measures.probe(frames) for frames in (predicted, truth)]
    return [
        _series("enstrophy_ratio", ratios[0], persistence=ratios[1]),
        _series("divergence", lost[0], truth=lost[1]),
        _series("probe", swings[0], truth=swings[1], first=0),
    ]


def _street(probe: FlowSeries, solver_steps: int, period: float) -> list[FlowScore]:
    """By the frequency at which the probe swings; NaN where it does not, or not often enough to tell. `period`: of the whole true film; where
    it is NaN, the steps alone tell that of the truth."""
    predicted, true = (measures.period(np.array(signal)) for signal in (probe.values, probe.truth))
    periods = (predicted, period if math.isfinite(period) else true)
    numbers = [measures.strouhal_of(1.0 / frames, solver_steps) for frames in periods]
    error = abs(numbers[0] - numbers[1]) / numbers[1]
    return [
        FlowScore(name="strouhal", value=numbers[0], reference=numbers[1]),
        FlowScore(name="strouhal_error", value=error),
        FlowScore(name="period", value=periods[0], reference=periods[1]),
    ]


def _of_period(series: FlowSeries, period: float) -> FlowScore:
    """Mean over the first period; NaN where there are fewer steps."""
    steps = round(period) if math.isfinite(period) else 0
    whole = 0 < steps <= len(series.values)
    means = [_mean_of(numbers[:steps]) if whole else math.nan for numbers in _both(series)]
    return FlowScore(name=f"{series.name}_period", value=means[0], reference=means[1])


def _series(
    name: str,
    values: Numbers,
    truth: Numbers | None = None,
    persistence: Numbers | None = None,
    first: int = 1,
) -> FlowSeries:
    beside = {"truth": truth, "persistence": persistence}
    given = {key: _rounded(numbers) for key, numbers in beside.items() if numbers is not None}
    return FlowSeries(name=name, first=first, values=_rounded(values), **given)


def _mean(series: FlowSeries) -> FlowScore:
    """Over the steps. Equal frames have an infinite PSNR, which no mean can hold: they are left out of it."""
    equal = math.inf if series.name == "psnr" else math.nan  # NaN equals nothing
    means = [_mean_of([number for number in numbers if number != equal]) for numbers in _both(series)]
    return FlowScore(name=series.name, value=means[0], reference=means[1])


def _both(series: FlowSeries) -> tuple[list[float], list[float]]:
    return series.values, series.persistence or series.truth


def _mean_of(values: list[float]) -> float:
    """NaN where one of them is no finite number, as of a model that has run away, and where there is none."""
    return math.fsum(values) / len(values) if values and all(map(math.isfinite, values)) else math.nan


def _rounded(numbers: Numbers) -> list[float]:
    return [float(f"{number:.{DIGITS}g}") for number in numbers.tolist()]
