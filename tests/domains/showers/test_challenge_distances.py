"""FPD and KPD of the CaloChallenge, compared with a second implementation of its features and with
values from jetnet.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from gan_runtime.domains.showers import distances
from gan_runtime.domains.showers.distances import challenge_fpd, challenge_kpd
from gan_runtime.domains.showers.features import THRESHOLD_GEV, features_of
from tests.domains.showers import jetnet_reference
from tests.domains.showers.jetnet_reference import FIGURES, LAYERS, challenge_arrays, showers
from tests.domains.showers.toy_showers import beam_showers, toy_showers


def features(name: str) -> np.ndarray:
    """Features of a reference sample, as the program measures them."""
    return features_of(*showers(name), (0,), has_angle=False).challenge


@pytest.mark.parametrize("name", ["alike", "off"])
def test_fpd_and_kpd_match_jetnet(name: str) -> None:
    """0.5% is required. The draws are the same, so only rounding differs."""
    theirs = json.loads(FIGURES.read_text(encoding="utf-8"))[name]
    real, other = features("real"), features(name)
    assert challenge_fpd(real, other).value == pytest.approx(theirs["fpd"][0], rel=1e-4)
    assert challenge_kpd(real, other).value == pytest.approx(theirs["kpd"][0], rel=1e-4)


def test_features_match_challenge_evaluation_up_to_units() -> None:
    """The evaluation uses mm / 100 and angles from -π, the program cells and angles from 0, so
    centers have the opposite sign.
    """
    mine, theirs = features("off"), challenge_arrays(*showers("off"))
    assert mine.shape == theirs.shape == (jetnet_reference.COUNT, 2 + 8 * LAYERS)
    columns = np.split(np.arange(1, 2 + 8 * LAYERS), np.cumsum([LAYERS] * 5 + [1] + [LAYERS] * 2))
    _, x, y, x_width, y_width, _, _, r, r_width = columns
    factors = np.ones(mine.shape[1])
    factors[np.concatenate([x, y])] = -0.0465
    factors[np.concatenate([x_width, y_width, r, r_width])] = 0.0465
    assert mine * factors == pytest.approx(theirs, abs=1e-7)


def test_data_set_2_has_362_features() -> None:
    cells, energy = beam_showers(3)
    assert features_of(cells, energy, (0,), has_angle=False).challenge.shape == (3, 362)


def test_cells_below_the_readout_threshold_are_ignored() -> None:
    cells, energy = np.zeros((1, 16, 9, 4)), np.asarray([10.0])
    cells[0, 3, 2, 1] = 1.001 * THRESHOLD_GEV
    alone = features_of(cells, energy, (0,), has_angle=False)
    cells[0, 5, 7, :] = 0.999 * THRESHOLD_GEV
    cells[0, 1, 1, 2], cells[0, 0, 0, 0] = -1.0, np.nan
    noisy = features_of(cells, energy, (0,), has_angle=False).challenge
    assert noisy == pytest.approx(alone.challenge)
    assert pytest.approx(15.15e-6, rel=1e-3) == THRESHOLD_GEV
    assert alone.challenge[0, -3 * 4 : -2 * 4] == pytest.approx([1.0, 1.0 - 1 / 144, 1.0, 1.0]), (
        "sparsity"
    )


def test_radius_without_a_beam_is_from_the_grid_center() -> None:
    cells = np.zeros((1, 5, 5, 1))
    cells[0, 2, 4, 0] = cells[0, 2, 0, 0] = 1.0
    _, _, _, _, width, _, _, radius, radius_width = features_of(
        cells, np.asarray([1.0]), has_angle=False
    ).challenge[0, 1:]
    assert (width, radius, radius_width) == pytest.approx((2.0, 2.0, 0.0), abs=1e-6)


def test_single_cell_layer_does_not_inflate_the_distances() -> None:
    """Its width is only rounding error. Divided by it, another sample with two cells would be
    10¹⁵ away.
    """
    cells, energy, _ = toy_showers(300)
    generated, other_energy, _ = toy_showers(300, 1)
    for sample, count in ((cells, 1), (generated, 2)):
        sample[:, :, :, 3] = 0.0
        sample[:, 1 : 1 + count, 7, 3] = 0.1
    real, other = (
        features_of(cells, energy, has_angle=False),
        features_of(generated, other_energy, has_angle=False),
    )
    assert challenge_fpd(real.challenge, other.challenge).value < 100.0


def test_error_estimates_the_spread_between_equal_samples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(distances, "BATCHES", 1)
    samples = [
        features_of(*beam_showers(300, seed, layers=4), (0,), has_angle=False).challenge
        for seed in range(12)
    ]
    errors = [
        challenge_fpd(first, second)
        for first, second in zip(samples[::2], samples[1::2], strict=True)
    ]
    spread = np.std([value.value for value in errors], ddof=1)
    assert 0.5 * spread < np.mean([value.error for value in errors]) < 4.0 * spread
