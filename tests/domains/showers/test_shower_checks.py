"""Physics checks of shower files: units, every part of a file, and the order of the cells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gan_runtime.data import prepared
from gan_runtime.domains.showers import file_checks, file_formats
from gan_runtime.domains.showers.entry import DEPOSIT, ENERGY, SHOWERS
from gan_runtime.records.home import Home
from tests.domains.showers.hdf5_showers import authors_columns, challenge_columns
from tests.domains.showers.shower_files import KEYS, columns_of, prepare, refusal, rows


@pytest.mark.parametrize(
    ("preparation", "energies", "cells", "said"),
    [
        (
            "calochallenge",
            1.0,
            1.0,
            (
                "Energies are in MeV (1 to 1,000 GeV, the range of the CaloChallenge), cells in MeV"
                " (by their sum: 0.9"
            ),
        ),
        (
            "calochallenge",
            1e-3,
            1e-3,
            (
                "Energies are in GeV (1 to 1,000 GeV, the range of the CaloChallenge), cells in GeV"
                " (by their sum: 0.9"
            ),
        ),
        (
            "calochallenge",
            1.0,
            1e-3,
            "Energies are in MeV (1 to 1,000 GeV, the range of the CaloChallenge), cells in GeV",
        ),
        (
            "calochallenge",
            1.0,
            0.05,
            "cells in 20MeV (by their sum: 0.9 of the energy, where about 1 is expected)",
        ),
        (
            "showers_hdf5",
            1.0,
            1.0,
            (
                "Energies are in GeV (5 to 200 GeV, the range of the 3DGAN's authors), cells in"
                " 20MeV (by their sum: 0.0198 of the energy, where about 0.02 is expected)"
            ),
        ),
        (
            "showers_hdf5",
            1e3,
            1.0,
            "Energies are in MeV (5 to 200 GeV, the range of the 3DGAN's authors), cells in 20MeV",
        ),
        ("showers_hdf5", 1.0, 0.02, "cells in GeV (by their sum: 0.0198"),
        ("showers_hdf5", 1e3, 20.0, "cells in MeV (by their sum: 0.0198"),
    ],
)
def test_units_are_inferred_from_the_data_and_explained(
    home: Home, tmp_path: Path, preparation: str, energies: float, cells: float, said: str
) -> None:
    columns = columns_of(preparation)
    energy_key, cell_key = KEYS[preparation]
    gev = columns[energy_key].reshape(-1) * (1e-3 if preparation == "calochallenge" else 1.0)
    deposit = columns[cell_key].reshape(len(gev), -1).sum(axis=1) * (
        0.05 if preparation == "calochallenge" else 1.0
    )
    changed = {
        **columns,
        energy_key: columns[energy_key] * energies,
        cell_key: columns[cell_key] * cells,
    }
    summary = prepare(home, tmp_path, changed)
    assert said in summary.note
    assert bool(summary.warnings) == (energies != 1.0 or cells != 1.0)
    stored = rows(home, preparation)
    assert stored[ENERGY] == pytest.approx(gev[:5], rel=1e-5)
    assert stored[DEPOSIT] == pytest.approx(deposit[:5], rel=1e-3)


@pytest.mark.parametrize("unit", ["MeV", "GeV"])
def test_ambiguous_energy_unit_is_decided_by_the_shower_depth(
    home: Home, tmp_path: Path, unit: str
) -> None:
    """From 700 to 1,400, the shower maximum is 6.9 radiation lengths deeper in GeV than in MeV."""
    columns = challenge_columns(6_480, 60)
    mev = columns["incident_energies"].reshape(-1)
    is_high = (mev > 7e5) & (mev < 1.4e6)
    is_low = (mev > 700.0) & (mev < 1_400.0)
    is_selected = is_high if unit == "GeV" else is_low
    factor = 1e-3 if unit == "GeV" else 1.0
    summary = prepare(
        home, tmp_path, {key: column[is_selected] * factor for key, column in columns.items()}
    )
    assert f"Energies are in {unit}" in summary.note
    assert "by the depth of the showers" in summary.note
    assert prepared.open_set(home, "calochallenge").read(np.arange(1))[ENERGY] == pytest.approx(
        mev[is_selected][:1] / 1_000.0, rel=1e-5
    )


def test_ambiguous_energy_unit_is_decided_by_the_cell_sum(home: Home, tmp_path: Path) -> None:
    columns = challenge_columns(6_480, 60)
    is_selected = columns["incident_energies"].reshape(-1) > 6e5
    in_gev = {
        "incident_energies": columns["incident_energies"][is_selected] * 1e-3,
        "showers": columns["showers"][is_selected],
    }
    note = prepare(home, tmp_path, in_gev).note
    assert re.search(r"in GeV \(.*, by the sum of the cells\), cells in MeV", note)


def test_ambiguous_energy_unit_without_a_depth_needs_the_option(home: Home, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    energies = random.uniform(550.0, 1_900.0, (40, 1))
    cells = random.random((40, 6_480))
    columns = {
        "incident_energies": energies,
        "showers": energies * cells / cells.sum(axis=1, keepdims=True),
    }
    said = refusal(home, tmp_path, columns)
    assert "in MeV and in GeV" in said
    assert "set energy_unit." in said
    options = {"energy_unit": "GeV", "order": "layer_angle_radius"}
    note = prepare(home, tmp_path, columns, **options).note
    assert "GeV (552 to 1,864 GeV, by the option)" in note


def test_empty_first_showers_do_not_decide_the_unit(home: Home, tmp_path: Path) -> None:
    columns = challenge_columns(6_480, 40)
    columns["showers"][:25] = 0.0
    assert "cells in MeV" in prepare(home, tmp_path, columns).note
    prepared.remove(home, "calochallenge")
    columns["showers"][:] = 0.0
    assert "sum to 0 in MeV, 0 in 20MeV, 0 in GeV" in refusal(home, tmp_path, columns)


def test_energy_of_0_is_refused(home: Home, tmp_path: Path) -> None:
    columns = challenge_columns(6_480)
    columns["incident_energies"][5] = 0.0
    assert (
        refusal(home, tmp_path, columns)
        == "run.h5: its lowest incident energy is 0, but must be above 0."
    )


def test_mixed_energy_units_are_refused(home: Home, tmp_path: Path) -> None:
    columns = challenge_columns(6_480, 40)
    columns["incident_energies"][25:] /= 1_000.0
    columns["showers"][25:] /= 1_000.0
    said = refusal(home, tmp_path, columns)
    assert "Check for mixed units, or set energy_unit." in said


def test_implausible_cell_sums_are_refused_with_the_sum_per_unit(
    home: Home, tmp_path: Path
) -> None:
    columns = challenge_columns(6_480)
    columns["showers"] *= 5.0
    assert (
        "sum to 4.5 in MeV, 90 in 20MeV, 4.5e+03 in GeV of the incident energy in MeV"
        in refusal(home, tmp_path, columns)
    )
    summary = prepare(home, tmp_path, columns, cell_unit="MeV")
    assert "cells in MeV (by the option: 4.5 of the energy" in summary.note
    assert any(
        "sum to 4.5 of the energy, where about 1 is expected" in warning
        for warning in summary.warnings
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cells: cells / 1_000.0, "sum to 0.0009 of the incident energy"),
        (
            lambda cells: np.full_like(cells, -1.0),
            "of the incident energy; the first rows sum to 0.9",
        ),
        (lambda cells: np.full_like(cells, 9_999.0), "or a filler"),
    ],
)
@pytest.mark.parametrize("begin", [50, 76])  # within the second part, and in the last one
def test_every_part_is_checked(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, said: str, begin: int
) -> None:
    monkeypatch.setattr("gan_runtime.domains.showers.file_formats.CHALLENGE_AT_ONCE", 32)
    columns = challenge_columns(6_480, 80)
    columns["showers"][begin:] = change(columns["showers"][begin:])
    refused = refusal(home, tmp_path, columns)
    assert said in refused
    assert f"from row {begin} on" in refused


def test_single_odd_showers_are_skipped_and_counted(home: Home, tmp_path: Path) -> None:
    columns = challenge_columns(6_480, 50)
    columns["showers"][7] *= 30.0
    columns["showers"][9] = 0.0
    summary = prepare(home, tmp_path, columns)
    assert "1 of 50 showers are skipped: each has nothing in its cells" in summary.note
    assert (
        "1 of 50 showers are skipped: the sum of each is over 10 times off that of the others"
        in summary.note
    )
    assert prepared.open_set(home, "calochallenge").rows == 48


def test_cell_above_the_float16_range_is_refused(home: Home, tmp_path: Path) -> None:
    columns = challenge_columns(6_480, 40)
    columns["showers"][33, 5] = 1e10
    assert (
        refusal(home, tmp_path, columns)
        == "run.h5, row 33: a cell has 1e+07 GeV, but at most 9,273 GeV can be stored (float16): "
        "correct the shower, or remove it from the file."
    )
    columns["showers"][33, 5] = 9.2e6  # in a shower of 360 GeV: an outlier, but finite
    assert "is over 10 times off" in prepare(home, tmp_path, columns).note


@pytest.mark.parametrize(
    ("voxels", "order"),
    [
        (6_480, "layer_radius_angle"),
        (6_480, "angle_layer_radius"),
        (6_480, "angle_radius_layer"),
        (6_480, "radius_layer_angle"),
        (6_480, "radius_angle_layer"),
        (40_500, "layer_radius_angle"),
    ],
)
def test_wrong_cell_order_is_refused_with_the_right_order_named(
    home: Home, tmp_path: Path, order: str, voxels: int
) -> None:
    columns = challenge_columns(voxels, 40, order)
    said = refusal(home, tmp_path, columns)
    assert said.startswith(
        "run.h5, rows 0 to 39: its cells, in the order layer_angle_radius, are not the showers of"
        " electrons"
    )
    assert f"order={order}" in said
    prepare(home, tmp_path, columns, order=order)
    right = tmp_path / "right"
    right.mkdir()
    stored = rows(home, "calochallenge")
    prepared.remove(home, "calochallenge")
    prepare(home, right, challenge_columns(voxels, 40))
    np.testing.assert_array_equal(stored[SHOWERS], rows(home, "calochallenge")[SHOWERS])


def test_unrecognizable_cell_order_is_refused_unless_order_is_set(
    home: Home, tmp_path: Path
) -> None:
    columns = challenge_columns(6_480, 40)
    columns["showers"] = np.random.default_rng(0).permutation(columns["showers"], axis=1)
    said = refusal(home, tmp_path, columns)
    assert "Check their order and units" in said
    prepare(home, tmp_path, columns, order="layer_angle_radius")


def test_depth_of_the_authors_showers_is_checked(home: Home, tmp_path: Path) -> None:
    columns = authors_columns()
    columns["ECAL"] = np.roll(columns["ECAL"], 12, axis=3)
    assert "in the order x_y_layer, are not the showers of electrons" in refusal(
        home, tmp_path, columns
    )
    assert prepare(home, tmp_path, columns, order="x_y_layer").held_out == 0


def test_summary_has_sampling_fraction_energies_and_layer_shares(
    home: Home, tmp_path: Path
) -> None:
    columns = challenge_columns(6_480, 30)
    summary = prepare(home, tmp_path, columns)
    measured = {quantity.name: quantity.value for quantity in summary.quantities}
    assert measured == pytest.approx(
        {
            "sampling fraction": 0.9,
            "its spread": 0.0,
            "lowest energy": 1.0,
            "highest energy": 1_000.0,
        },
        rel=1e-4,
        abs=1e-3,
    )
    assert summary.curve is not None
    layers = columns["showers"].reshape(30, 45, -1).sum(axis=2)
    shares = 100.0 * (layers / layers.sum(axis=1, keepdims=True)).mean(axis=0)
    assert summary.curve.x == tuple(range(1, 46))
    assert summary.curve.y == pytest.approx(shares, rel=1e-4)


def test_expected_depth_matches_an_independent_formula() -> None:
    """Compares with the profile of the Review of Particle Physics, which the files above follow."""
    columns = challenge_columns(6_480, 64)
    gev = columns["incident_energies"].reshape(-1) / 1_000.0
    cells = np.moveaxis(columns["showers"].reshape(-1, 45, 16, 9), 1, -1)
    expected = file_formats.CALOCHALLENGE
    assert expected.distance(cells, gev) == pytest.approx(0.09, abs=0.02)
    assert expected.distance(cells, gev / 1_000.0) > 0.4 > file_checks.limit(32)
    assert expected.distance(cells, gev * 1_000.0) > 0.4
    assert expected.distance(cells[..., ::-1], gev) > 0.4
