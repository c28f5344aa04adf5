"""What is measured of a flow's frames: values from -1 to 1 in, numbers out (frames.py says what the
values stand for).

A street is told by its Strouhal number, St = f D / U: how many pairs of eddies are shed while the
stream passes one diameter. Published for a square and a circle between far walls at Re 100: about
0.145 and 0.165; walls that are near raise it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.flows import lattice as flow_frames
from gan_runtime.domains.flows.fields import DIAMETER, UX, UY, VORTICITY, WIDTH
from gan_runtime.domains.flows.lattice import CENTER, INFLOW

Numbers = NDArray[np.float64]
Frames = NDArray[np.floating]
Mask = NDArray[np.bool_]

BEHIND = 3.0  # usual diameters from the obstacle's center to the probe
STILL = 0.01  # of U: what swings less, as a standard deviation, is no street
LEAST_PERIODS, LEAST_SAMPLES = 2.0, 8  # in a signal, for its frequency
PADDED = 8  # times as long, with zeros, before it is transformed


def probe(frames: Frames, shift: float = 0.0) -> Numbers:
    """uy / U, 30 cells of the solver behind the obstacle's center: (K, height, width, 3 or more) →
    (K,).

    `shift`: of the obstacle, so many cells of the solver lower than the middle.
    """
    height, width = frames.shape[1:3]
    column = int((CENTER + BEHIND * DIAMETER) * width / WIDTH)
    lower = round(shift * width / WIDTH)
    middle = frames[:, (height - 1) // 2 + lower : height // 2 + 1 + lower, column : column + 1]
    velocity: Numbers = flow_frames.physical(middle)[..., UY].mean(axis=(1, 2), dtype=np.float64)
    return velocity


def spectrum(signal: Numbers) -> tuple[Numbers, Numbers]:
    """Frequencies from 0 to 1/2 a sample (M,) and the power at each (M,) of a signal (K,), its mean
    removed.

    Under a Hann window, and `PADDED` times as long with zeros behind, so that a peak has a rounded
    top.
    """
    swinging = np.asarray(signal, np.float64) - np.mean(signal)
    length = PADDED * len(swinging)
    amplitudes = np.abs(np.fft.rfft(swinging * np.hanning(len(swinging)), length))
    power: Numbers = np.square(amplitudes)
    return np.arange(len(power)) / length, power


def period(signal: Numbers) -> float:
    """Samples in which a signal (K,) repeats itself: 1 / f of the highest peak of its spectrum; NaN
    where it stands still or is too short.

    A parabola through the logarithm of the peak and of its neighbors is right to 0.5 % from three
    periods on (Gasior and Gonzalez 2004, doi:10.1063/1.1831158).
    """
    if len(signal) < LEAST_SAMPLES or not np.isfinite(signal).all() or np.std(signal) < STILL:
        return float("nan")
    frequencies, power = spectrum(signal)
    first = int(LEAST_PERIODS * PADDED)  # what is slower is the window's own
    peak = first + int(np.argmax(power[first:-1]))
    if peak == first:
        return float("nan")
    left, top, right = np.log(power[peak - 1 : peak + 2] + np.finfo(np.float64).tiny)
    offset = 0.5 * (left - right) / (left - 2.0 * top + right)
    return float(1.0 / ((peak + offset) * frequencies[1]))


def strouhal(signal: Numbers, steps_between: float) -> float:
    """St of a probe's uy / U (K,), sampled each `steps_between` steps of the solver; NaN
    where there is no street.
    """
    return strouhal_of(1.0 / period(signal), steps_between)


def strouhal_of(frequency: float, steps_between: float, diameter: float = DIAMETER) -> float:
    """St = f D / U of a frequency per sample, where a sample is taken each `steps_between`
    steps of the solver; `diameter`: cells.
    """
    return frequency * diameter / (INFLOW * steps_between)


def enstrophy(frames: Frames, obstacle: Mask) -> Numbers:
    """½ (ω D / U)², the mean of the fluid's pixels: frames (K, height, width, 3), obstacle
    (height, width) → (K,).
    """
    turning = flow_frames.physical(frames)[..., VORTICITY][:, ~obstacle]
    strength: Numbers = 0.5 * np.square(turning, dtype=np.float64).mean(axis=1)
    return strength


def divergence(frames: Frames, obstacle: Mask) -> Numbers:
    """|∂ux/∂x + ∂uy/∂y| D / U, the mean of pixels within the fluid, whose neighbors are fluid too;
    0 where nothing is made or lost: (K,).

    Central differences. That of the solver is not quite 0: its fluid can be compressed a little.
    """
    physical = flow_frames.physical(frames).astype(np.float64)
    ux, uy = physical[..., UX], physical[..., UY]
    along = (ux[:, 1:-1, 2:] - ux[:, 1:-1, :-2]) / 2.0
    upwards = (uy[:, :-2, 1:-1] - uy[:, 2:, 1:-1]) / 2.0
    fluid = ~obstacle
    within = (
        fluid[1:-1, 1:-1] & fluid[1:-1, 2:] & fluid[1:-1, :-2] & fluid[2:, 1:-1] & fluid[:-2, 1:-1]
    )
    pixels_a_diameter = flow_frames.diameter_pixels(frames.shape[2])
    lost: Numbers = np.abs(along + upwards)[:, within].mean(axis=1) * pixels_a_diameter
    return lost


# ---- frame errors --------------------------------------------------------------------------------
# How far predicted frames are from true ones, frame by frame. Values from -1 to 1, (K, height,
# width, channels) → (K,).
#
# Sources: SSIM: Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, IEEE Trans. Image Process.
# 13, 600 (2004), with its windows (Gaussian of 1.5 pixels, 11 × 11), by scikit-image.

RANGE = 2.0  # of the values
FAINTEST = (
    1e-4  # of the strongest wavelength of the truth: what is fainter is left out of the spectrum
)
WINDOW = 11  # pixels: the smallest side of a frame that SSIM takes


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
    """Mean structural similarity, 1 for equal frames.

    NaN for frames below 11 pixels a side. Loads scikit-image.
    """
    from skimage.metrics import structural_similarity

    if min(truth.shape[1:3]) < WINDOW:
        return np.full(len(truth), np.nan)
    similar = [
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
    return np.array(similar, np.float64)


def spectrum_error(predicted: Frames, truth: Frames) -> Numbers:
    """Mean |log₁₀(P_p(k) / P_t(k))| over the wavelengths along the width that the truth holds, P
    the power summed over rows and channels.

    1: the power at each wavelength is ten times too high or too low. NaN for a truth that does not
    vary along the width.
    """
    of_predicted, of_truth = power(predicted), power(truth)
    held = of_truth > FAINTEST * of_truth.max(axis=1, keepdims=True, initial=0.0)
    tiny = np.finfo(np.float64).tiny
    decades = np.abs(np.log10(of_predicted + tiny) - np.log10(of_truth + tiny))
    with np.errstate(invalid="ignore"):
        return np.where(held, decades, 0.0).sum(axis=1) / held.sum(axis=1)


def power(frames: Frames) -> Numbers:
    """|∫ f e^(-i k x) dx|² along the width, summed over rows and channels, without the mean:
    (K, width // 2).
    """
    waves = np.fft.rfft(frames.astype(np.float64), axis=2)[:, :, 1:]
    return np.square(np.abs(waves)).sum(axis=(1, 3))


def horizon(errors: Numbers, of_persistence: Numbers) -> int:
    """Steps before the first whose error is above that of standing still, or no number; all
    of them where none is.
    """
    worse = np.flatnonzero((errors > of_persistence) | np.isnan(errors))
    return int(worse[0]) if len(worse) else len(errors)


def _difference(predicted: Frames, truth: Frames) -> Numbers:
    return predicted.astype(np.float64) - truth.astype(np.float64)
