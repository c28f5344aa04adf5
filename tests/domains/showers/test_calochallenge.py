"""Conversion of showers to and from the format of the CaloChallenge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from gan_runtime.domains.showers.file_formats import (
    GEOMETRIES,
    cells_of,
    showers_mev_of,
    write_submission,
)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda geometry: f"data set {geometry.number}")
def test_voxels_round_trip_through_cells(geometry) -> None:
    showers = np.random.default_rng(0).uniform(0.0, 9.0, (3, geometry.voxels))
    cells = cells_of(showers) / 1_000.0
    assert cells.shape == (3, *geometry.shape)
    np.testing.assert_allclose(showers_mev_of(cells), showers, rtol=1e-5)
    np.testing.assert_allclose(showers_mev_of(cells[..., None]), showers, rtol=1e-5)


def test_voxels_in_another_order_map_to_the_same_cells() -> None:
    """Rows are flattened (N, radius, layer, angle); the angle varies fastest."""
    rows = np.arange(2.0 * 6_480).reshape(2, 6_480)
    cells = cells_of(rows, ("radius", "layer", "angle"))
    assert cells.shape == (2, 16, 9, 45)
    assert cells[1, 3, 8, 44] == rows[1, (8 * 45 + 44) * 16 + 3]


def test_submission_has_the_keys_shapes_and_unit_of_the_data(tmp_path: Path) -> None:
    cells = np.zeros((3, 16, 9, 45))
    cells[0, 2, 1, 7] = 0.5  # alpha 2, radius 1, layer 7: voxel (7 · 16 + 2) · 9 + 1 = 1027
    path = tmp_path / "submission.hdf5"
    parts = [(cells[:2], np.array([1.0, 50.0])), (cells[2:], np.array([1_000.0]))]
    assert write_submission(path, parts) == 3
    with h5py.File(path, "r") as file:
        assert sorted(file) == ["incident_energies", "showers"]
        assert file["incident_energies"][:].tolist() == [[1_000.0], [50_000.0], [1_000_000.0]]
        assert (file["showers"].shape, file["showers"].compression) == ((3, 6_480), "gzip")
        assert (int(file["showers"][0].argmax()), float(file["showers"][0].max())) == (1_027, 500.0)
    assert [path.name for path in tmp_path.iterdir()] == ["submission.hdf5"]


def test_failed_submission_leaves_no_file(tmp_path: Path) -> None:
    def torn() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        yield np.zeros((1, 16, 9, 45)), np.ones(1)
        raise RuntimeError("the networks are gone")

    path = tmp_path / "submission.hdf5"
    with pytest.raises(RuntimeError, match="the networks are gone"):
        write_submission(path, torn())
    with pytest.raises(ValueError, match="the CaloChallenge has no showers of"):
        write_submission(path, [(np.zeros((1, 51, 51, 25)), np.ones(1))])
    with pytest.raises(ValueError, match="there are no showers to write"):
        write_submission(path, [])
    assert not list(tmp_path.iterdir())
