"""Scores: 0 or their floor for two halves of one sample, higher for every larger fault, and
manually computed values.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from dashboard.domains.showers.words import CURVES
from gan_runtime.domains.showers import distances, scores
from gan_runtime.domains.showers.curves import bounds, curves
from gan_runtime.domains.showers.features import features_of, high_level
from gan_runtime.domains.showers.score_metrics import (
    SCORES,
    fewest_showers,
    layer_features,
    value_words,
)
from gan_runtime.domains.showers.scores import ShowerSample, auc, compared, sample, with_reading
from tests.domains.showers.toy_showers import beam_showers, toy_showers

COUNT = 250


@cache
def real(seed: int = 0) -> ShowerSample:
    """A sample without faults."""
    return faulty(seed=seed)


def faulty(seed: int = 1, **fault: float) -> ShowerSample:
    """Another sample, with a fault."""
    cells, energy, angle = toy_showers(COUNT, seed, **fault)
    generated = sample(cells, energy, angle, ())
    return ShowerSample(cells, generated.features, generated.features.angle if not fault else angle)


@cache
def floor() -> dict[str, float]:
    """Every score of two samples without faults."""
    return {name: value.value for name, value in compared(real(), real(1)).items()}


def test_scores_of_two_equal_samples_are_at_their_floor() -> None:
    low = {
        "sampling_fraction": 0.02,
        "moments": 0.1,
        "angle": 0.02,
        "correlations": 0.02,
        "layers": 0.05,
        "separation": 0.25,
        "fpd": 120.0,
        "kpd": 3.0,
        "challenge_fpd": 500.0,
        "challenge_kpd": 60.0,
    }
    assert {
        name: floor()[name] for name, most in low.items() if not abs(floor()[name]) < most
    } == {}
    assert {axis: floor()[f"profile_{axis}"] < 0.03 for axis in "xyz"} == dict.fromkeys("xyz", True)
    assert floor()["auc_high"] == pytest.approx(0.5, abs=0.08)
    assert floor()["auc_low"] == pytest.approx(0.5, abs=0.08)
    timed = {score.name for score in SCORES if score.name.startswith("ms_")}
    assert set(floor()) | timed == {score.name for score in SCORES}, (
        "a table says what each is called"
    )


FAULTS = {
    "scale": ((1.2, 1.4, 1.8), ("sampling_fraction", "fpd", "separation")),
    "shift": ((0.5, 1.0, 2.0), ("total", "moments", "profile_z", "fpd", "separation", "kpd")),
    "variety": ((0.3, 0.1, 0.01), ("similarity", "fpd", "separation")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_larger_fault_gives_a_larger_score(fault: str) -> None:
    sizes, names = FAULTS[fault]
    theirs = [faulty(**{fault: size}) for size in sizes]
    bins = scores.edges(real().features.energy_gev, scores.ENERGY_BINS)
    mine = real().features
    for name in names:
        values = [floor()[name], *(_score(name, mine, other, bins) for other in theirs)]
        assert values == sorted(values), name
        assert values[-1] > 1.2 * abs(values[0]), name


def _score(name: str, mine: scores.Features, other: ShowerSample, bins: np.ndarray) -> float:
    """A single score. Classifiers take the longest and have a separate test."""
    first, two = high_level(mine), high_level(other.features)
    moments, profiles = (
        scores.moments_error(mine, other.features, bins),
        scores.profile_error(mine, other.features, bins),
    )
    angle = scores.angle_error(mine, other.features, other.requested_angle)
    return {
        "sampling_fraction": (
            lambda: scores.sampling_fraction_error(mine, other.features, bins).value
        ),
        "total": lambda: scores.total_error((moments, profiles, angle)).value,
        "moments": lambda: moments.value,
        "profile_z": lambda: scores.profile_distance(mine, other.features, "z").value,
        "similarity": lambda: scores.similarity(other.cells_gev, other.cells_gev).value,
        "fpd": lambda: 1e3 * distances.fpd(first, two).value,
        "kpd": lambda: 1e3 * distances.kpd(first, two).value,
        "separation": lambda: float(
            np.mean(
                [distances.separation(first[:, k], two[:, k]) for k in range(1, first.shape[1])]
            )
        ),
    }[name]()


def test_classifier_detects_a_shift() -> None:
    shifted = faulty(shift=1.0)
    value = auc(high_level(real().features), high_level(shifted.features))
    assert value.value > 0.9
    assert 0.0 <= value.error < 0.1


def test_ten_percent_higher_energies_give_ten_percent_error() -> None:
    features = real().features
    bins = scores.edges(features.energy_gev, 5)
    higher = sample(1.1 * real().cells_gev, features.energy_gev, real().requested_angle, ())
    error = scores.sampling_fraction_error(features, higher.features, bins)
    assert error.value == pytest.approx(0.1, rel=1e-5)
    assert 0.0 < error.error < 0.02
    assert scores.profile_error(features, higher.features, bins).value == pytest.approx(
        0.1, rel=1e-4
    )
    assert scores.moments_error(features, higher.features, bins).value == pytest.approx(
        0.0, abs=1e-6
    )
    assert scores.profile_distance(features, higher.features, "z").value == pytest.approx(
        0.0, abs=1e-7
    )
    assert scores.correlation_error(features, higher.features).value < 1e-3, "only the hits change"


def test_showers_of_one_energy_share_one_bin() -> None:
    energies = np.full(7, 50.0)
    bins = scores.edges(energies, 5)
    assert bins == pytest.approx([50.0, 50.0])
    assert [rows.tolist() for rows in scores.binned(energies, bins)] == [list(range(7))]


def test_frechet_distance_of_two_normals_matches_the_formula() -> None:
    random = np.random.RandomState(0)
    first, second = random.standard_normal((2, 40_000, 2))
    second = second * [2.0, 1.0] + [3.0, 0.0]
    assert distances.frechet(first, second) == pytest.approx(9.0 + 1.0, rel=0.02), (
        "|μ|² = 9, (2 - 1)² = 1"
    )
    assert distances.frechet(first, first) == pytest.approx(0.0, abs=1e-9)


def test_fpd_corrects_the_bias_of_small_samples() -> None:
    first, second = np.random.RandomState(1).standard_normal((2, 600, 20))
    small = distances.frechet(*distances.scaled(first, second))
    result = distances.fpd(first, second)
    assert abs(result.value) < 0.4 * small
    assert 0.0 < result.error < small


def test_fpd_interval_contains_0_for_equal_samples_with_empty_layers() -> None:
    """Twelve pairs of samples of the minimum size. With the error of a fitted line, eight of the
    intervals contained 0.
    """
    layers = 4
    count = fewest_showers(layer_features(layers))
    samples = [
        features_of(*beam_showers(count, seed, layers=layers), (0,), has_angle=False)
        for seed in range(24)
    ]
    assert all((features.along_z == 0.0).mean() > 0.0 for features in samples), (
        "some layers are empty"
    )
    numbers = [high_level(features) for features in samples]
    intervals = [
        distances.fpd(first, two) for first, two in zip(numbers[::2], numbers[1::2], strict=True)
    ]
    assert sum(abs(value.value) < 2.0 * value.error for value in intervals) >= 11


def test_too_few_showers_have_no_fpd_and_show_the_minimum() -> None:
    first, second = np.random.RandomState(0).standard_normal((2, 104, 26))
    assert not math.isnan(distances.fpd(first, second).value)
    result = distances.fpd(first, second[:-1])
    assert math.isnan(result.value)
    [score] = [score for score in SCORES if score.name == "fpd"]
    words = value_words(score, result.value, result.error, showers=103, layers=5)
    assert words == "needs at least 104 showers"
    assert value_words(score, 7.0, 0.5, showers=103, layers=5) == "7.0 ± 0.5", (
        "as an earlier version measured it"
    )
    assert value_words(SCORES[0], math.nan, math.nan, showers=103, layers=5) == "–"


def test_mmd_is_the_sum_over_pairs() -> None:
    x, y = np.asarray([[1.0], [2.0]]), np.asarray([[0.0], [1.0]])
    # k(a, b) = (ab + 1)^4. Within a sample: k(1, 2) = 81, k(0, 1) = 1.
    # Across: k(1, 0) = 1, k(1, 1) = 16, k(2, 0) = 1, k(2, 1) = 81.
    assert distances.mmd(x, y) == pytest.approx(81 + 1 - 2 * (1 + 16 + 1 + 81) / 4)
    assert distances.kpd(np.ones((10, 3)), np.ones((10, 3))).value == pytest.approx(0.0, abs=1e-12)


def test_separation_is_0_for_equal_and_1_for_disjoint_samples() -> None:
    numbers = np.linspace(0.0, 1.0, 101)
    assert distances.separation(numbers, numbers) == 0.0
    assert distances.separation(numbers, numbers + 5.0) == pytest.approx(1.0)
    assert distances.separation(
        np.asarray([0.0, 1.0]), np.asarray([0.0, 0.0]), bins=2
    ) == pytest.approx(1 / 3), "½ ((½ - 1)² / 1.5 + ½² / ½)"


def test_identical_showers_have_similarity_1() -> None:
    same = np.repeat(real().cells_gev[:1], 5, axis=0)
    assert scores.similarity(same, same).value == pytest.approx(1.0)
    assert scores.similarity(real().cells_gev, real().cells_gev).value < 0.999


def test_curves_are_means_per_energy_and_angle_bin() -> None:
    by_name = {(curve.name, curve.bins): curve for curve in curves(real(), real(1))}
    assert {name for name, _ in by_name} == {curve.name for curve in CURVES if not curve.judged}
    energy, angle = bounds(real())
    assert (len(energy), len(angle)) == (6, 4)
    assert {bins for name, bins in by_name if name not in ("layers", "angle_map")} == {
        (first, two) for first in range(-1, 5) for two in range(-1, 3)
    }
    depth = by_name["along_z", (-1, -1)]
    assert depth.real == pytest.approx(real().features.along_z.mean(axis=0))
    assert depth.real_error == pytest.approx(real().features.along_z.std(axis=0) / math.sqrt(COUNT))
    layers = by_name["layers", (-1, -1)].real.reshape(12, 12)
    assert np.diag(layers)[:9] == pytest.approx(np.ones(9)), "the last ones may be empty"
    share = real().features.along_z[:, 2:4] / real().features.energy_gev[:, np.newaxis]
    assert layers[2, 3] == pytest.approx(np.corrcoef(share.T)[0, 1])
    high = real().features.energy_gev >= energy[4]
    assert by_name["along_x", (4, -1)].real == pytest.approx(
        real().features.along_x[high].mean(axis=0)
    )
    assert 0.95 < by_name["hits", (-1, -1)].real.sum() <= 1.0


def test_brightest_cells_are_counted_by_position() -> None:
    cells = np.zeros((4, 3, 3, 2), np.float32)
    for row, place in enumerate([(2, 0, 1), (2, 1, 1), (0, 1, 1), (2, 2, 0)]):
        cells[(row, *place)] = 1.0
    energy = np.asarray([10.0, 20.0, 30.0, 40.0])
    few = sample(cells, energy, None, ())
    by_name = {curve.name: curve for curve in curves(few, few) if curve.bins == (-1, -1)}
    shares = {axis: by_name[f"peak_{axis}"].real.tolist() for axis in "xyz"}
    assert shares == {"x": [0.25, 0.0, 0.75], "y": [0.25, 0.5, 0.25], "z": [0.25, 0.75]}
    assert by_name["peak_x"].x.tolist() == [1.0, 2.0, 3.0], "cells are counted from 1"


def test_discriminator_readings_are_plotted_for_both_samples() -> None:
    energy = real().features.energy_gev
    sure = with_reading(real(), np.full(COUNT, 0.99), energy)
    fooled = with_reading(real(1), np.full(COUNT, 0.01), 2.0 * real(1).features.energy_gev)
    by_name = {curve.name: curve for curve in curves(sure, fooled) if curve.bins == (-1, -1)}
    assert (by_name["belief"].real[-1], by_name["belief"].generated[0]) == (1.0, 1.0)
    assert by_name["read_energy"].real == pytest.approx(np.ones(10))
    assert by_name["read_energy"].generated == pytest.approx(np.full(10, 2.0))
    off = by_name["read_error"]
    assert off.x[off.generated > 0].min() > 0.9, "twice the energy is off by 100 %"
    assert off.real.sum() == off.generated.sum() == 1.0, "the bins hold both"


def test_angle_map_plots_requested_against_measured_angles() -> None:
    leant = {curve.name: curve for curve in curves(real(), real(1))}["angle_map"]
    assert leant.generated.sum() == pytest.approx(1.0, abs=0.05), "a few lie beyond the real angles"
    requested = np.average(leant.x, weights=leant.generated)
    assert requested == pytest.approx(real(1).requested_angle.mean(), abs=0.02)
    measured = np.average(leant.y, weights=leant.real)
    assert measured == pytest.approx(real().features.angle.mean(), abs=0.05)


def test_showers_without_an_angle_have_no_angle_curve_or_score() -> None:
    cells, energy, _ = toy_showers(60)
    without = sample(cells, energy, None, (0,))
    names = {curve.name for curve in curves(without, without)}
    assert "angles" not in names
    assert {curve.bins[1] for curve in curves(without, without)} == {-1}
    assert math.isnan(
        scores.angle_error(without.features, without.features, without.requested_angle).value
    )
