"""Scores of predicted frames of a flow against the true ones, as score_metrics.py declares them.

Frames: values from -1 to 1, (K, height, width, channels); numbers: one a frame, (K,).

A vortex street is characterized by its Strouhal number St = f D / U: pairs of eddies that are shed
while the stream passes one diameter. Published for a square and a circle between distant walls at
Re 100: about 0.145 and 0.165; near walls raise it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.flows import lattice
from gan_runtime.domains.flows.fields import DIAMETER, UX, UY, VORTICITY, WIDTH
from gan_runtime.domains.flows.films import Film
from gan_runtime.domains.flows.lattice import CENTER, INFLOW
from gan_runtime.engines.tile_grid import TileGrid, seam_ratio
from gan_runtime.records.answer import Curve, CurveSeries, Score

Values = NDArray[np.float32]
Numbers = NDArray[np.float64]
Frames = NDArray[np.floating]
Mask = NDArray[np.bool_]

PROBE_DIAMETERS = 3.0  # from the obstacle's center to the probe
STEADY = 0.01  # of U; a smaller standard deviation means no vortex street
LEAST_PERIODS, LEAST_SAMPLES = 2.0, 8  # least in a signal to determine a frequency
PADDING = 8  # times the length of a signal, with zeros, before its transform
RANGE = 2.0  # range of the values
FAINTEST = 1e-4  # of the truth's strongest wavelength; the spectrum ignores fainter wavelengths
WINDOW = 11  # pixels: the smallest side of a frame for SSIM
DIGITS = 6


def probe_velocity(frames: Frames, shift: float = 0.0) -> Numbers:
    """uy / U, 30 cells of the solver behind the obstacle's center (K,).

    `shift`: of the obstacle, cells of the solver below the middle.
    """
    height, width = frames.shape[1:3]
    column = int((CENTER + PROBE_DIAMETERS * DIAMETER) * width / WIDTH)
    lower = round(shift * width / WIDTH)
    middle = frames[:, (height - 1) // 2 + lower : height // 2 + 1 + lower, column : column + 1]
    velocity: Numbers = lattice.physical(middle)[..., UY].mean(axis=(1, 2), dtype=np.float64)
    return velocity


def power_spectrum(signal: Numbers) -> tuple[Numbers, Numbers]:
    """Frequencies from 0 to 1/2 a sample (M,) and the power at each (M,) of a signal (K,) without
    its mean, under a Hann window and zero-padded, so that a peak has a rounded top.
    """
    deviations = np.asarray(signal, np.float64) - np.mean(signal)
    length = PADDING * len(deviations)
    amplitudes = np.abs(np.fft.rfft(deviations * np.hanning(len(deviations)), length))
    power: Numbers = np.square(amplitudes)
    return np.arange(len(power)) / length, power


def shedding_period(signal: Numbers) -> float:
    """Samples of one oscillation of a signal (K,): 1 / f of the highest peak of its spectrum; NaN
    where it is steady or too short.

    A parabola through the logarithm of the peak and of its neighbors is right to 0.5% from three
    periods on (Gasior and Gonzalez 2004, doi:10.1063/1.1831158).
    """
    if len(signal) < LEAST_SAMPLES or not np.isfinite(signal).all() or np.std(signal) < STEADY:
        return float("nan")
    frequencies, power = power_spectrum(signal)
    first = int(LEAST_PERIODS * PADDING)  # lower frequencies are those of the window
    peak = first + int(np.argmax(power[first:-1]))
    if peak == first:
        return float("nan")
    left, top, right = np.log(power[peak - 1 : peak + 2] + np.finfo(np.float64).tiny)
    offset = 0.5 * (left - right) / (left - 2.0 * top + right)
    return float(1.0 / ((peak + offset) * frequencies[1]))


def strouhal(frequency: float, steps_between: float, diameter: float = DIAMETER) -> float:
    """St = f D / U of a frequency per sample, one sample every `steps_between` steps of the solver;
    `diameter`: cells.
    """
    return frequency * diameter / (INFLOW * steps_between)


def enstrophy(frames: Frames, obstacle: Mask) -> Numbers:
    """Mean of ½ (ω D / U)² over the fluid's pixels (K,); `obstacle`: (height, width)."""
    vorticity = lattice.physical(frames)[..., VORTICITY][:, ~obstacle]
    mean: Numbers = 0.5 * np.square(vorticity, dtype=np.float64).mean(axis=1)
    return mean


def divergence(frames: Frames, obstacle: Mask) -> Numbers:
    """Mean of |∂ux/∂x + ∂uy/∂y| D / U over pixels whose neighbors are fluid too (K,).

    Central differences. It is not quite 0 for the solver, whose fluid is slightly compressible.
    """
    physical = lattice.physical(frames).astype(np.float64)
    ux, uy = physical[..., UX], physical[..., UY]
    along = (ux[:, 1:-1, 2:] - ux[:, 1:-1, :-2]) / 2.0
    upwards = (uy[:, :-2, 1:-1] - uy[:, 2:, 1:-1]) / 2.0
    fluid = ~obstacle
    within = (
        fluid[1:-1, 1:-1] & fluid[1:-1, 2:] & fluid[1:-1, :-2] & fluid[2:, 1:-1] & fluid[:-2, 1:-1]
    )
    mean: Numbers = np.abs(along + upwards)[:, within].mean(axis=1)
    return mean * lattice.diameter_pixels(frames.shape[2])


def mae(predicted: Frames, truth: Frames) -> Numbers:
    """Mean of |p - t|."""
    return np.abs(_difference(predicted, truth)).mean(axis=(1, 2, 3))


def rmse(predicted: Frames, truth: Frames) -> Numbers:
    """√ mean (p - t)²."""
    return np.sqrt(np.square(_difference(predicted, truth)).mean(axis=(1, 2, 3)))


def psnr(predicted: Frames, truth: Frames) -> Numbers:
    """20 log₁₀(2 / rmse) in dB; infinite for equal frames."""
    with np.errstate(divide="ignore"):
        return 20.0 * np.log10(RANGE / rmse(predicted, truth))


def ssim(predicted: Frames, truth: Frames) -> Numbers:
    """Mean structural similarity, 1 for equal frames; NaN for frames below 11 pixels a side.

    Wang, Bovik, Sheikh and Simoncelli, IEEE Trans. Image Process. 13, 600 (2004), with their
    windows (Gaussian of 1.5 pixels, 11 × 11). Loads scikit-image.
    """
    from skimage.metrics import structural_similarity

    if min(truth.shape[1:3]) < WINDOW:
        return np.full(len(truth), np.nan)
    similarities = [
        structural_similarity(
            *(frame.astype(np.float64) for frame in pair),
            data_range=RANGE,
            channel_axis=-1,
            gaussian_weights=True,
            sigma=1.5,
            use_sample_covariance=False,
        )
        for pair in zip(predicted, truth, strict=True)
    ]
    return np.array(similarities, np.float64)


def spectrum_error(predicted: Frames, truth: Frames) -> Numbers:
    """Mean |log₁₀(P_p(k) / P_t(k))| over the wavelengths of the truth along the width, P the power
    summed over rows and channels.

    1: the power at each wavelength is ten times too high or too low. NaN for a truth that does not
    vary along the width.
    """
    of_predicted, of_truth = power(predicted), power(truth)
    present = of_truth > FAINTEST * of_truth.max(axis=1, keepdims=True, initial=0.0)
    tiny = np.finfo(np.float64).tiny
    decades = np.abs(np.log10(of_predicted + tiny) - np.log10(of_truth + tiny))
    with np.errstate(invalid="ignore"):
        return np.where(present, decades, 0.0).sum(axis=1) / present.sum(axis=1)


def power(frames: Frames) -> Numbers:
    """|∫ f e^(-i k x) dx|² along the width, summed over rows and channels, without the mean:
    (K, width // 2).
    """
    waves = np.fft.rfft(frames.astype(np.float64), axis=2)[:, :, 1:]
    return np.square(np.abs(waves)).sum(axis=(1, 3))


def horizon(errors: Numbers, of_persistence: Numbers) -> int:
    """The number of steps before the error first exceeds that of the copied frame or is NaN; all
    steps if it never does.
    """
    worse = np.flatnonzero((errors > of_persistence) | np.isnan(errors))
    return int(worse[0]) if len(worse) else len(errors)


def _difference(predicted: Frames, truth: Frames) -> Numbers:
    return predicted.astype(np.float64) - truth.astype(np.float64)


# ---- scores of a rollout -------------------------------------------------------------------------

ERRORS = {"mae": mae, "rmse": rmse, "psnr": psnr, "ssim": ssim, "spectrum": spectrum_error}


@dataclass(frozen=True)
class FrameTimes:
    """Median seconds of a frame: by the model, and by the solver; NaN where not measured."""

    model_s: float
    solver_s: float


@dataclass(frozen=True)
class FrameNumbers:
    """A number a frame, from step `first` on: of the prediction (`values`), the copied start frame,
    the true frames, and the replay, NaN after its end. An empty list: there is no such number.
    """

    name: str
    values: list[float]
    persistence: list[float] = field(default_factory=list)
    truth: list[float] = field(default_factory=list)
    replay: list[float] = field(default_factory=list)
    first: int = 1

    @property
    def curve(self) -> Curve:
        """The form in which an answer stores it."""
        lines = (
            ("prediction", self.values),
            ("persistence", self.persistence),
            ("truth", self.truth),
            ("replay", self.replay),
        )
        return Curve(
            name=self.name,
            x=[float(self.first + place) for place in range(len(self.values))],
            series=[CurveSeries(name=name, values=values) for name, values in lines if values],
        )

    @property
    def sides(self) -> tuple[list[float], list[float], list[float]]:
        """The scores of the prediction, its reference and the replay."""
        return self.values, self.persistence or self.truth, self.replay


@dataclass(frozen=True)
class RolloutScores:
    """The scores of a rollout. `by_step`: scores with one number per frame; `scores`: single
    numbers, first the means of those by step.
    """

    scores: list[Score]
    by_step: list[FrameNumbers]


def scored(
    truth: Values,
    predicted: Values,
    mask: Values,
    tiles: TileGrid,
    film: Film,
    times: FrameTimes,
    period: float = math.nan,
    replay: Values | None = None,
) -> RolloutScores:
    """`truth`, `predicted`: (1 + steps, height, width, channels), the start frame first; `mask`:
    (height, width, more); `period`: frames of one shedding period of the true flow, NaN where
    unknown; `replay`: (K, height, width, channels) of the first K steps.
    """
    still = np.repeat(truth[:1], len(truth) - 1, axis=0)  # persistence
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
        series.extend(_of_flow(truth, predicted, still, np.asarray((mask > 0.5).any(axis=-1))))
        series.append(_at_probe(truth, predicted, replayed, film.shift))
    by_name = {numbers.name: numbers for numbers in series}
    singles = [_mean(numbers) for numbers in series if numbers.name != "probe"]
    singles.extend(_horizons(by_name["rmse"], len(replayed)))
    if film.reynolds is not None and film.solver_steps is not None:
        singles.extend(_street(by_name["probe"], film, period))
        singles.extend(_of_period(by_name[name], period) for name in ("rmse", "ssim"))
    singles.append(_single("ms_frame", (1e3 * times.model_s, 1e3 * times.solver_s, math.nan)))
    return RolloutScores(singles, series)


def _of_flow(
    truth: Values, predicted: Values, still: Values, obstacle: Mask
) -> tuple[FrameNumbers, FrameNumbers]:
    true = enstrophy(truth[1:], obstacle)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [enstrophy(frames, obstacle) / true for frames in (predicted[1:], still)]
    divergences = [divergence(frames[1:], obstacle) for frames in (predicted, truth)]
    return (
        _series("enstrophy_ratio", ratios[0], persistence=ratios[1]),
        _series("divergence", divergences[0], truth=divergences[1]),
    )


def _at_probe(truth: Values, predicted: Values, replayed: Values, shift: float) -> FrameNumbers:
    """The signals at the probe from the start frame on. The replay lacks that frame, so its signal
    begins with the truth's.
    """
    start, true, velocities = (
        probe_velocity(frames, shift) for frames in (truth[:1], truth, predicted)
    )
    replay = np.concatenate([start, probe_velocity(replayed, shift)]) if len(replayed) else None
    return _series("probe", velocities, truth=true, replay=replay, first=0)


def _horizons(errors: FrameNumbers, replayed: int) -> list[Score]:
    """Against the copied frame, and against the replay as far as it goes."""
    predicted, still, replay = map(np.array, (errors.values, errors.persistence, errors.replay))
    scores = [Score(name="horizon", value=horizon(predicted, still))]
    if replayed:
        steps = horizon(predicted[:replayed], replay[:replayed])
        scores.append(Score(name="horizon_replay", value=steps))
    return scores


def _street(probe: FrameNumbers, film: Film, period: float) -> list[Score]:
    """The Strouhal numbers from the frequency at the probe; NaN without enough oscillations.
    `period`: of the whole true film; if NaN, the period of the steps is used.
    """
    signals = (np.array(signal) for signal in (probe.values, probe.truth, probe.replay))
    predicted, true, replay = map(shedding_period, signals)
    periods = (predicted, period if math.isfinite(period) else true, replay)
    numbers = [strouhal(1.0 / frames, film.solver_steps or 1, film.width) for frames in periods]
    errors = [abs(number - numbers[1]) / numbers[1] for number in numbers]
    return [
        _single("strouhal", numbers),
        _single("strouhal_error", (errors[0], math.nan, errors[2])),
        _single("period", periods),
    ]


def _of_period(series: FrameNumbers, period: float) -> Score:
    """Mean over the first period; NaN where there are fewer steps."""
    steps = round(period) if math.isfinite(period) else 0
    is_whole = 0 < steps <= len(series.values)
    means = [_mean_of(numbers[:steps]) if is_whole else math.nan for numbers in series.sides]
    return _single(f"{series.name}_period", means)


def _series(
    name: str,
    values: Numbers,
    truth: Numbers | None = None,
    persistence: Numbers | None = None,
    replay: Numbers | None = None,
    first: int = 1,
) -> FrameNumbers:
    """A score by step. A short replay is padded with NaN; an empty replay counts as none."""
    references = {"truth": truth, "persistence": persistence}
    if replay is not None and len(replay):
        missing = len(values) - len(replay)
        references["replay"] = np.pad(replay, (0, missing), constant_values=np.nan)
    rounded = {key: _rounded(numbers) for key, numbers in references.items() if numbers is not None}
    return FrameNumbers(name=name, first=first, values=_rounded(values), **rounded)


def _single(name: str, sides: Sequence[float]) -> Score:
    value, reference, replay = sides
    baselines = {"reference": reference, "replay": replay}
    measured = {key: number for key, number in baselines.items() if not math.isnan(number)}
    return Score(name=name, value=value, baselines=measured)


def _mean(series: FrameNumbers) -> Score:
    """Over the steps, without the infinite PSNR of equal frames."""
    equal = math.inf if series.name == "psnr" else math.nan  # NaN equals nothing
    means = [
        _mean_of([number for number in numbers if number != equal]) for numbers in series.sides
    ]
    return _single(series.name, means)


def _mean_of(values: list[float]) -> float:
    """The mean; NaN for an empty list, or if a number is not finite."""
    if not values or not all(map(math.isfinite, values)):
        return math.nan
    return math.fsum(values) / len(values)


def _rounded(numbers: Numbers) -> list[float]:
    return [float(f"{number:.{DIGITS}g}") for number in numbers.tolist()]
