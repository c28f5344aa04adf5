"""Features of showers, compared with manually computed values."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.domains.showers.features import (
    SPECTRUM_EDGES,
    correlated,
    features_of,
    high_level,
    places_across,
)
from tests.domains.showers.toy_showers import toy_showers


def two_cells() -> np.ndarray:
    """One shower of 4 × 4 × 6 cells: 3 GeV in (1, 2, 0), 1 GeV in (3, 2, 4), and 0.11 MeV in
    (0, 0, 5).
    """
    cells = np.zeros((1, 4, 4, 6), np.float32)
    cells[0, 1, 2, 0], cells[0, 3, 2, 4], cells[0, 0, 0, 5] = 3.0, 1.0, 1.1e-4
    return cells


def test_two_cells_give_the_expected_features() -> None:
    features = features_of(two_cells(), np.asarray([200.0]))
    assert features.visible_gev == pytest.approx([4.00011])
    assert features.sampling_fraction == pytest.approx([0.02000055])
    assert features.hits.tolist() == [2], "0.11 MeV is below the threshold of a hit"
    assert features.along_x[0] == pytest.approx([1.1e-4, 3.0, 0.0, 1.0])
    assert features.along_z[0] == pytest.approx([3.0, 0.0, 0.0, 0.0, 1.0, 1.1e-4])
    assert features.moments[0, 0] == pytest.approx([2.0, 0.75, 0.75], abs=2e-3), (
        "x: 1.5 with 3 GeV, 3.5 with 1"
    )
    assert features.moments[0, 1, :2] == pytest.approx([2.5, 0.0], abs=2e-3)
    assert features.moments[0, 2] == pytest.approx([1.5, 3.0, 6.0], abs=5e-3), (
        "z: 0.5 with 3 GeV, 4.5 with 1"
    )
    assert features.thirds[0] == pytest.approx([0.75, 0.0, 0.25], abs=1e-4)


def test_centers_and_widths_are_per_layer() -> None:
    cells = np.zeros((1, 4, 4, 2), np.float32)
    cells[0, 0, 1, 0], cells[0, 2, 1, 0] = 1.0, 1.0
    features = features_of(cells, np.asarray([100.0]))
    assert features.centers[0].tolist() == [[1.5, 1.5], [0.0, 0.0]], "an empty layer has none"
    assert features.widths[0].tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_spectrum_bins_span_a_tenth_of_a_decade() -> None:
    counts = features_of(two_cells(), np.asarray([200.0])).spectrum[0]
    assert counts.sum() == 3
    lows = SPECTRUM_EDGES[:-1][counts > 0]
    highs = SPECTRUM_EDGES[1:][counts > 0]
    energies = np.asarray([1.1e-4, 1.0, 3.0])
    assert ((lows <= energies) & (highs > energies)).all()


def test_periodic_grid_places_cells_on_circles() -> None:
    x, y = places_across(
        (4, 2), periodic=(0,)
    )  # angles of 45°, 135°, 225° and 315°; radii 0.5 and 1.5
    assert x[:, 1] == pytest.approx(1.5 * np.sqrt(0.5) * np.asarray([1, -1, -1, 1]))
    assert y[:, 1] == pytest.approx(1.5 * np.sqrt(0.5) * np.asarray([1, 1, -1, -1]))
    ring = np.ones((1, 16, 9, 5), np.float32)
    assert features_of(ring, np.asarray([1.0]), (0,), has_angle=False).moments[
        0, :2, 0
    ] == pytest.approx([0, 0], abs=1e-9)


def test_empty_showers_have_finite_features() -> None:
    features = features_of(np.zeros((3, 4, 4, 6), np.float32), np.full(3, 100.0))
    assert features.visible_gev.tolist() == features.hits.tolist() == [0, 0, 0]
    assert np.isfinite(high_level(features)).all()
    assert np.isfinite(correlated(features)).all()
    assert features.angle.tolist() == [100.0] * 3, "as the authors have it"


def test_features_are_independent_of_blocks_and_rows_are_selectable() -> None:
    cells, energy, _ = toy_showers(130)
    features = features_of(cells, energy)
    few = features_of(cells[100:], energy[100:])
    assert np.array_equal(features.select(np.arange(100, 130)).moments, few.moments)
    assert high_level(features).shape == (130, 1 + 5 * 12)
    assert correlated(features).shape == (130, 12)
    with pytest.raises(ValueError, match="130 showers but 129 energies"):
        features_of(cells, energy[1:])
