"""How far predicted frames are from true ones, frame by frame. Values from -1 to 1, (K, height, width, channels) → (K,).

Sources: SSIM: Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, IEEE Trans. Image Process. 13, 600 (2004), with its windows (Gaussian of
1.5 pixels, 11 × 11), by scikit-image.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Frames = NDArray[np.floating]
Numbers = NDArray[np.float64]
RANGE = 2.0  # of the values
FAINTEST = 1e-4  # of the strongest wavelength of the truth: what is fainter is left out of the spectrum
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
    """Mean structural similarity, 1 for equal frames. NaN for frames below 11 pixels a side. Loads scikit-image."""
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
    """Mean |log₁₀(P_p(k) / P_t(k))| over the wavelengths along the width that the truth holds, P the power summed over rows and channels.

    1: the power at each wavelength is ten times too high or too low. NaN for a truth that does not vary along the width.
    """
    of_predicted, of_truth = power(predicted), power(truth)
    held = of_truth > FAINTEST * of_truth.max(axis=1, keepdims=True, initial=0.0)
    tiny = np.finfo(np.float64).tiny
    decades = np.abs(np.log10(of_predicted + tiny) - np.log10(of_truth + tiny))
    with np.errstate(invalid="ignore"):
        return np.where(held, decades, 0.0).sum(axis=1) / held.sum(axis=1)


def power(frames: Frames) -> Numbers:
    """|∫ f e^(-i k x) dx|² along the width, summed over rows and channels, without the mean: (K, width // 2)."""
    waves = np.fft.rfft(frames.astype(np.float64), axis=2)[:, :, 1:]
    return np.square(np.abs(waves)).sum(axis=(1, 3))


def horizon(errors: Numbers, of_persistence: Numbers) -> int:
    """Steps before the first whose error is above that of standing still, or no number; all of them where none is."""
    worse = np.flatnonzero((errors > of_persistence) | np.isnan(errors))
    return int(worse[0]) if len(worse) else len(errors)


def _difference(predicted: Frames, truth: Frames) -> Numbers:
    return predicted.astype(np.float64) - truth.astype(np.float64)
