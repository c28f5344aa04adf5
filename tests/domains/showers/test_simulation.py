"""Simulated showers, compared with independent numbers: the paper's parameterization of this stack,
and CERN's description of its files.

Each tolerance is given next to the change of the number from 10 to 500 GeV, to show the sensitivity
of the test.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from gan_runtime.domains.showers.detector import CLIC, drawn_profiles, mean_profiles
from gan_runtime.domains.showers.features import measured_angle
from gan_runtime.domains.showers.simulation import FULL, TINY, simulate

STRAIGHT = np.pi / 2.0
ENERGIES = (10.0, 50.0, 100.0, 200.0, 500.0)
SHOWERS = 96


@functools.cache
def showers(energy_gev: float, degrees: float = 90.0) -> np.ndarray:
    """(96, 51, 51, 25), GeV."""
    energies, angles = np.full(SHOWERS, energy_gev), np.full(SHOWERS, np.radians(degrees))
    return simulate(energies, angles, np.random.default_rng(3))


def by_energy(*values: float):
    return pytest.mark.parametrize(("energy_gev", "expected"), zip(ENERGIES, values, strict=True))


def test_detector_depth_and_medium_match_the_paper() -> None:
    medium = CLIC.medium
    assert CLIC.layers == 25
    assert CLIC.edges_x0[-1] == pytest.approx(20.55, abs=0.05)
    assert CLIC.sensors_mm[[0, -1]].tolist() == pytest.approx([3.0, 127.8])
    assert medium.atomic_number == pytest.approx(72.4, abs=0.05)
    assert medium.critical_mev == pytest.approx(9.4, abs=0.05)
    assert medium.sections_per_x0 == pytest.approx(1.61, abs=0.005)
    assert medium.response == pytest.approx(0.70, abs=0.005)
    assert medium.moliere_mm == pytest.approx(16.0, abs=0.1)


@by_energy(5.61, 7.22, 7.92, 8.61, 9.53)
def test_shower_maximum_matches_the_paper(energy_gev: float, expected: float) -> None:
    """In radiation lengths; varies by 3.9.

    Single showers scatter around it log-normally.
    """
    assert mean_profiles(np.array([energy_gev]), CLIC.medium).maximum == pytest.approx(
        [expected], abs=0.01
    )
    profiles = drawn_profiles(np.full(4_000, energy_gev), CLIC.medium, np.random.default_rng(0))
    assert np.exp(np.log(profiles.maximum).mean()) == pytest.approx(expected, abs=0.05)


@by_energy(3.93, 4.71, 5.05, 5.39, 5.84)
def test_shower_shape_matches_the_paper(energy_gev: float, expected: float) -> None:
    """Varies by 1.9."""
    assert mean_profiles(np.array([energy_gev]), CLIC.medium).shape == pytest.approx(
        [expected], abs=0.01
    )


def test_maximum_and_shape_scatter_and_correlate_as_in_the_paper() -> None:
    """At 100 GeV, ln y is 9.27: σ_T = 0.110, σ_a = 0.154, ρ = 0.571."""
    profiles = drawn_profiles(np.full(20_000, 100.0), CLIC.medium, np.random.default_rng(1))
    logs = np.log([profiles.maximum, profiles.shape])
    assert logs.std(axis=1) == pytest.approx([0.110, 0.154], abs=0.003)
    assert np.corrcoef(logs)[0, 1] == pytest.approx(0.571, abs=0.015)


@by_energy(0.994, 0.985, 0.978, 0.969, 0.954)
def test_contained_fraction_matches_the_expected_value(energy_gev: float, expected: float) -> None:
    """Varies by 0.040; the tolerance is an eighth of that."""
    profiles = drawn_profiles(np.full(1_000, energy_gev), CLIC.medium, np.random.default_rng(2))
    edges = np.tile(CLIC.edges_x0, (1_000, 1))
    assert profiles.fractions(edges).sum(axis=1).mean() == pytest.approx(expected, abs=0.005)


@by_energy(9, 11, 12, 13, 16)
def test_brightest_layer_is_deeper_at_higher_energy(energy_gev: float, expected: int) -> None:
    """Varies by 7 layers.

    Layer 17, the first thick one, continues the curve. With equal weights for all layers it would
    have twice as much.
    """
    profile = showers(energy_gev).sum(axis=(0, 1, 2))
    assert abs(int(profile.argmax()) - expected) <= 1
    assert profile[17] < 1.05 * profile[16]


@by_energy(0.02183, 0.02095, 0.02019, 0.01935, 0.01810)
def test_sampling_fraction_matches_cern(energy_gev: float, expected: float) -> None:
    """CERN's fit to its files, 0.01 · polyval([0.0018, -0.023, 0.11, -0.28, 2.21], E / 100 GeV).

    Varies by 19%; the tolerance is 3.5%.
    """
    assert showers(energy_gev).sum(axis=(1, 2, 3)).mean() / energy_gev == pytest.approx(
        expected, rel=0.035
    )


@by_energy(214, 543, 776, 1_065, 1_701)
def test_number_of_hit_cells_matches_the_expected_value(energy_gev: float, expected: float) -> None:
    """Grows eightfold.

    The expected numbers come from a simulation with spots of equal energy, each above 0.2 MeV. The
    number of cells hit at all agrees to 12%. Energies drawn for each spot leave some of these below
    0.2 MeV.
    """
    cells = showers(energy_gev)
    hit, above = ((cells > least).sum(axis=(1, 2, 3)).mean() for least in (0.0, 2e-4))
    assert hit == pytest.approx(expected, rel=0.12)
    assert 0.7 < above / hit < 0.9


@pytest.mark.parametrize(
    ("degrees", "expected"), [(60, 62.3), (75, 75.2), (90, 90.3), (105, 104.7), (120, 118.3)]
)
def test_measured_angle_matches_the_authors_bins(degrees: float, expected: float) -> None:
    """62°, 90° and 118° for 60°, 90° and 120°; varies by 56°, with a tolerance of 1.5°."""
    measured = np.degrees(measured_angle(showers(150.0, degrees)))
    assert measured.mean() == pytest.approx(expected, abs=1.5)
    assert measured.std() < 2.5


def test_inclined_shower_peaks_earlier_and_stays_in_the_window() -> None:
    straight, inclined = showers(150.0), showers(150.0, 60.0)
    assert inclined.sum(axis=(0, 1, 2)).argmax() < straight.sum(axis=(0, 1, 2)).argmax()
    assert inclined.sum() / straight.sum() == pytest.approx(1.09, abs=0.04)


def test_barycenter_is_spread_over_the_middle_cell() -> None:
    for degrees in (60.0, 90.0, 120.0):
        image = showers(150.0, degrees)
        total = image.sum(axis=(1, 2, 3))
        places = np.arange(51) + 0.5
        x, y = (image.sum(axis=axes) @ places / total for axes in ((2, 3), (1, 3)))
        assert np.abs(x - 25.5).max() < 0.75
        assert np.abs(y - 25.5).max() < 0.75
        assert x.std() == pytest.approx(
            12**-0.5, abs=0.07
        )  # of a uniform number between -0.5 and 0.5


def test_nine_tenths_of_the_energy_are_within_a_moliere_radius() -> None:
    """This defines the radius. Half of it contains clearly less, twice the radius nearly all."""
    energies = showers(100.0).sum(axis=3)  # (96, 51, 51)
    total = energies.sum(axis=(1, 2))
    places = np.arange(51) + 0.5
    x, y = energies.sum(axis=2) @ places / total, energies.sum(axis=1) @ places / total
    radius_mm = CLIC.cell_mm * np.hypot(
        places[:, None] - x[:, None, None], places - y[:, None, None]
    )
    shares = [
        ((energies * (radius_mm < times * CLIC.medium.moliere_mm)).sum(axis=(1, 2)) / total).mean()
        for times in (0.5, 1.0, 2.0)
    ]
    assert shares == pytest.approx([0.80, 0.91, 0.97], abs=0.03)


def test_same_seed_gives_the_same_showers_and_another_does_not() -> None:
    energies, angles = np.linspace(100.0, 200.0, 4), np.full(4, STRAIGHT)
    first, again, other = (
        simulate(energies, angles, np.random.default_rng(seed)) for seed in (5, 5, 6)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_tiny_grid_merges_nine_cells_of_the_full_one() -> None:
    energies, angles = np.array([100.0, 200.0]), np.array([1.2, STRAIGHT])
    full, tiny = (
        simulate(energies, angles, np.random.default_rng(4), grid) for grid in (FULL, TINY)
    )
    assert tiny.shape == (2, 17, 17, 25)
    np.testing.assert_allclose(
        full.reshape(2, 17, 3, 17, 3, 25).sum(axis=(2, 4)), tiny, rtol=1e-4, atol=1e-7
    )


def test_cell_energies_are_continuous() -> None:
    """Energies have no steps of whole spots: faint cells of one layer hardly ever coincide."""
    cells = showers(100.0)[0, :, :, 12]
    faint = cells[cells > 0.0]
    assert len(np.unique(faint)) == len(faint) > 20


@pytest.mark.parametrize("energy_gev", [2.0, 500.0])
def test_lowest_and_highest_energies_give_valid_showers(energy_gev: float) -> None:
    cells = simulate(np.full(16, energy_gev), np.full(16, 2.0), np.random.default_rng(7))
    assert np.isfinite(cells).all()
    assert 0.01 < cells.sum(axis=(1, 2, 3)).mean() / energy_gev < 0.03
