"""Negative and faint cells: noise that would raise the sums of showers is refused, and a few such
cells are emptied.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gan_runtime.data import prepared
from gan_runtime.domains.showers.entry import DEPOSIT, SHOWERS
from gan_runtime.records.home import Home
from tests.domains.showers.hdf5_showers import challenge_columns
from tests.domains.showers.shower_files import KEYS, columns_of, prepare, refusal, rows


@pytest.mark.parametrize("preparation", KEYS)
def test_noise_that_raises_sums_is_refused_with_numbers_and_remedies(
    home: Home, tmp_path: Path, preparation: str
) -> None:
    columns = columns_of(preparation, 40)
    cell_key = KEYS[preparation][1]
    cells = columns[cell_key]
    sums = cells.reshape(len(cells), -1).sum(axis=1)
    noise = np.random.default_rng(2).normal(size=cells.shape).reshape(len(cells), -1)
    noise -= noise.mean(axis=1, keepdims=True)
    noise *= 0.5 * sums[:, None] / np.abs(noise).sum(axis=1, keepdims=True)
    columns[cell_key] = cells + noise.reshape(cells.shape)
    said = refusal(home, tmp_path, columns)
    assert "they raise them from " in said
    assert "negative_cells=rescale" in said
    assert re.search(r"threshold=[0-9.e-]+ to remove the noise .leaves 0\.[0-9]+", said)
    prepare(home, tmp_path, columns, negative_cells="rescale")
    unit = 0.05 if preparation == "calochallenge" else 1.0
    stored = rows(home, preparation)
    assert stored[DEPOSIT] == pytest.approx(unit * sums[:5], rel=1e-3)
    assert stored[SHOWERS].min() == 0.0
    prepared.remove(home, preparation)
    clipped = prepare(home, tmp_path, columns, negative_cells="clip")
    assert (rows(home, preparation)[DEPOSIT] > 1.1 * unit * sums[:5]).all()
    assert clipped.converted["negative cells emptied"] > 100
    assert any(
        "Cells below 0 or the threshold are emptied, so the sums change" in warning
        for warning in clipped.warnings
    )


def test_noise_that_raises_only_faint_showers_is_refused(home: Home, tmp_path: Path) -> None:
    """About 50 MeV more per shower is 6% of the sum at 1 GeV, but under 1% of the mean from 1 GeV
    to 1 TeV.
    """
    columns = challenge_columns(6_480, 60)
    noise = np.random.default_rng(2).normal(0.0, 0.02, columns["showers"].shape)
    columns["showers"] += noise
    assert "in one shower of 10" in refusal(home, tmp_path, columns)


@pytest.mark.parametrize("preparation", KEYS)
def test_empty_shower_with_noise_is_skipped_instead_of_rescaled(
    home: Home, tmp_path: Path, preparation: str
) -> None:
    columns = columns_of(preparation)
    cells = columns[KEYS[preparation][1]] = columns[KEYS[preparation][1]].copy()
    noise = np.random.default_rng(3).normal(0.0, 0.1, cells[2].shape)
    cells[2] = noise - noise.mean() - 1e-6
    summary = prepare(home, tmp_path, columns, negative_cells="rescale")
    left_out = {
        "calochallenge": "1 of 8 showers are skipped",
        "showers_hdf5": "2 of 6 showers are skipped",
    }
    assert left_out[preparation] in summary.note
    assert (prepared.open_set(home, preparation).read(np.arange(4))[DEPOSIT] > 0.0).all()


def test_a_few_negative_cells_are_emptied_and_counted(home: Home, tmp_path: Path) -> None:
    columns = challenge_columns(6_480)
    columns["showers"][3, [10, 20, 30]] = -1e-3
    summary = prepare(home, tmp_path, columns)
    assert summary.converted == {"negative cells emptied": 3}


def test_threshold_in_mev_empties_faint_calochallenge_cells(home: Home, tmp_path: Path) -> None:
    prepare(home, tmp_path, challenge_columns(6_480), threshold=2.0)
    values = rows(home, "calochallenge")[SHOWERS]
    assert values[values > 0].min() >= np.float16(0.1**0.85)
