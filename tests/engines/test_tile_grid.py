"""The grid of tiles: positions, shares of the cores, and the merged image."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.engines.tile_grid import (
    Blend,
    TileGrid,
    TileMerge,
    blend_weights,
    group_tiles,
    seam_ratio,
    split_tiles,
    tile_borders,
    tile_starts,
    tiles_per_core,
    ungroup_tiles,
)


def image(height: int, width: int, channels: int = 2) -> np.ndarray:
    """An image in which every value is unique."""
    return np.arange(height * width * channels, dtype=np.float32).reshape(height, width, channels)


@pytest.mark.parametrize(
    ("length", "tile", "overlap", "expected"),
    [
        (64, 64, 0, (0,)),
        (128, 64, 0, (0, 64)),
        (80, 64, 0, (0, 16)),
        (192, 64, 16, (0, 48, 96, 128)),
        (10, 4, 3, (0, 1, 2, 3, 4, 5, 6)),
        (9, 4, 0, (0, 4, 5)),
    ],
)
def test_tiles_are_a_stride_apart_with_the_last_moved_inward(
    length: int, tile: int, overlap: int, expected: tuple[int, ...]
) -> None:
    assert tile_starts(length, tile, overlap) == expected


def test_frame_of_the_vortex_street_has_six_tiles() -> None:
    grid = TileGrid((80, 192), (64, 64))
    assert grid.positions == ((0, 0), (0, 64), (0, 128), (16, 0), (16, 64), (16, 128))
    assert len(grid) == 6


@pytest.mark.parametrize("overlap", range(4))
@pytest.mark.parametrize("sides", [(4, 4), (5, 9), (7, 4), (11, 13)])
def test_tiles_cover_every_pixel(sides: tuple[int, int], overlap: int) -> None:
    grid = TileGrid(sides, (4, 4), overlap)
    covered = np.zeros(sides, int)
    for position in grid.positions:
        tile = covered[grid.at(position)]
        assert tile.shape == (4, 4)
        tile += 1
    assert covered.min() >= 1


@pytest.mark.parametrize(
    ("tile", "overlap", "message"),
    [
        ((8, 4), 0, "a tile of 8 × 4 pixels does not fit into 6 × 9"),
        ((4, 4), 4, "overlap is 4, but allowed is 0 to 3"),
        ((4, 4), -1, "overlap is -1"),
    ],
)
def test_invalid_tile_grid_is_refused(tile: tuple[int, int], overlap: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TileGrid((6, 9), tile, overlap)


@pytest.mark.parametrize("blend", ["none", "hann"])
@pytest.mark.parametrize("overlap", [0, 1, 3])
def test_split_and_merge_restores_the_image(overlap: int, blend: Blend) -> None:
    whole, grid = image(10, 13), TileGrid((10, 13), (4, 4), overlap)
    merged = TileMerge(grid, blend)(split_tiles(whole, grid))
    np.testing.assert_allclose(merged, whole, rtol=1e-6)


def test_values_covered_by_one_tile_are_exact() -> None:
    whole, grid = image(8, 8) / np.float32(7.0), TileGrid((8, 8), (4, 4))
    np.testing.assert_array_equal(TileMerge(grid)(split_tiles(whole, grid)), whole)


def test_overlapping_tiles_are_blended_by_weight() -> None:
    """Two tiles of 4 columns on 6 share columns 2 and 3, where the Hann windows are 0.854, 0.146
    and 0.146, 0.854.
    """
    grid = TileGrid((4, 6), (4, 4), 2)
    tiles = np.stack([np.zeros((4, 4, 1)), np.ones((4, 4, 1))]).astype(np.float32)
    assert TileMerge(grid)(tiles)[0, :, 0].tolist() == [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]
    blended = TileMerge(grid, "hann")(tiles)[0, :, 0]
    assert blended == pytest.approx([0.0, 0.0, 0.1464466, 0.8535534, 1.0, 1.0], abs=1e-6)


def test_hann_window_is_never_zero() -> None:
    window = blend_weights((4, 2), "hann")
    assert window[:, 0] == pytest.approx([0.0732233, 0.4267767, 0.4267767, 0.0732233], abs=1e-6)
    assert window.shape == (4, 2)


@pytest.mark.parametrize(
    ("tiles", "cores", "each"), [(6, 1, 6), (6, 2, 3), (6, 4, 2), (6, 8, 1), (7, 2, 4)]
)
def test_every_core_gets_the_same_number_of_tiles(tiles: int, cores: int, each: int) -> None:
    numbers = np.arange(tiles * 2).reshape(tiles, 2)
    assert tiles_per_core(tiles, cores) == each
    groups = group_tiles(numbers, cores)
    assert groups.shape == (cores * each, 2)
    np.testing.assert_array_equal(ungroup_tiles(groups, tiles), numbers)
    assert (groups[tiles:] == numbers[-1]).all(), "filled up with the last tile"


def test_tile_borders_are_where_tiles_start_and_end() -> None:
    assert tile_borders((0, 16), 64, 80) == (16, 64)
    assert tile_borders((0, 64, 128), 64, 192) == (64, 128)
    assert tile_borders((0,), 64, 64) == ()


def test_seam_ratio_is_one_on_a_slope_and_higher_at_a_step() -> None:
    """A slope of 1 per column and row. Then the right half is raised by 3: a border of 8 pairs has
    4 instead of 1, next to 8 pairs of the border between rows.
    """
    rows, columns = np.mgrid[:8, :8]
    even = (rows + columns).astype(np.float32)[np.newaxis, ..., np.newaxis]
    lifted = even + 3.0 * (columns >= 4)[..., np.newaxis]
    ratio = seam_ratio(np.concatenate([even, lifted]), TileGrid((8, 8), (4, 4)))
    assert ratio == pytest.approx([1.0, (8 * 4.0 + 8 * 1.0) / 16])


def test_no_border_or_no_change_gives_no_seam_ratio() -> None:
    flat = np.zeros((2, 8, 8, 1), np.float32)
    assert np.isnan(seam_ratio(flat, TileGrid((8, 8), (8, 8)))).all()
    assert np.isnan(seam_ratio(flat, TileGrid((8, 8), (4, 4)))).all()
