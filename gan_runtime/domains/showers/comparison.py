"""A sample of showers beside a real one: every score. Curves: curves.py.

What scores are called, and how they are read, stands in domains/showers/score_metrics.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gan_runtime.domains.showers import distances, scores
from gan_runtime.domains.showers.challenge_distances import challenge_fpd, challenge_kpd
from gan_runtime.domains.showers.classifiers import auc
from gan_runtime.domains.showers.features import Array, Features, high_level, measured
from gan_runtime.domains.showers.values import Value

Told = Callable[[str], None]  # what is computed now


@dataclass(frozen=True)
class Sample:
    """Showers (N, X, Y, Z) in GeV and what is measured on them. `asked_angle`: what they were to have, rad (N,)."""

    cells_gev: NDArray[np.float32]
    features: Features
    asked_angle: Array

    def __len__(self) -> int:
        return len(self.features)


def sample(
    cells_gev: NDArray[np.float32],
    energy_gev: Array,
    asked_angle: Array | None,
    periodic: tuple[int, ...],
) -> Sample:
    """With the features measured. `asked_angle`: None where the data set knows no angle."""
    features = measured(cells_gev, energy_gev, periodic, has_angle=asked_angle is not None)
    return Sample(cells_gev, features, features.angle if asked_angle is None else asked_angle)


def with_reading(showers: Sample, belief: Array, energy_gev: Array) -> Sample:
    """The same showers with what a judging network reads from them: that they are real, 0 to 1, and their incident energy (N,)."""
    return replace(showers, features=replace(showers.features, belief=belief, read_gev=energy_gev))


def compared(real: Sample, other: Sample, told: Told = lambda _: None) -> dict[str, Value]:
    """Every score of `other` beside `real`, by name. A sample in which nothing is left gives what the formulas give.

    On one core: the matrices are small, and beside a training several threads wait for each other longer than they compute.
    """
    with threadpool_limits(1):
        return _compared(real, other, told)


def _compared(real: Sample, other: Sample, told: Told) -> dict[str, Value]:
    told("scores of the authors")
    bounds = scores.edges(real.features.energy_gev, scores.ENERGY_BINS)
    mine, theirs = real.features, other.features
    terms = (
        scores.moments_error(mine, theirs, bounds),
        scores.profile_error(mine, theirs, bounds),
        scores.angle_error(mine, theirs, other.asked_angle),
    )
    found = {
        "sampling_fraction": scores.sampling_fraction_error(mine, theirs, bounds),
        "total": scores.total_error(terms),
        **dict(zip(("moments", "profiles", "angle"), terms, strict=True)),
        **{f"profile_{axis}": scores.profile_distance(mine, theirs, axis) for axis in "xyz"},
        "correlations": scores.correlation_error(mine, theirs),
        "layers": scores.layer_correlation_error(mine, theirs),
        "similarity": scores.similarity(other.cells_gev, other.cells_gev),
    }
    one, two = high_level(mine), high_level(theirs)
    told("distances of the features")
    found |= {
        "challenge_fpd": _thousandfold(challenge_fpd(mine.challenge, theirs.challenge)),
        "challenge_kpd": _thousandfold(challenge_kpd(mine.challenge, theirs.challenge)),
    }
    separations = [distances.separation(one[:, place], two[:, place]) for place in range(1, one.shape[1])]
    found |= {
        "fpd": _thousandfold(distances.fpd(one, two)),
        "kpd": _thousandfold(distances.kpd(one, two)),
        "separation": Value(float(np.mean(separations))),
    }
    told("training classifiers")
    return found | {"auc_high": auc(one, two), "auc_low": auc(low_level(real), low_level(other))}


def low_level(showers: Sample) -> NDArray[np.float32]:
    """(N, 1 + X·Y·Z): log10 of the incident energy in MeV, and each cell over the incident energy."""
    energy = showers.features.energy_gev[:, np.newaxis].astype(np.float32)
    cells = showers.cells_gev.reshape(len(showers), -1) / energy
    return np.concatenate([np.log10(energy * 1e3), cells], axis=1)


def _thousandfold(found: Value) -> Value:
    return Value(found.value * 1e3, found.error * 1e3)
