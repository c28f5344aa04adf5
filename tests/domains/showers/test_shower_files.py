"""Third-party HDF5 files as data sets: converted values, and refusals that name the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from gan_runtime.base.errors import DatasetError
from gan_runtime.cli.app import app
from gan_runtime.data import loading, preparations, prepared
from gan_runtime.data.contract import DataSet
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.data.prepared import Manifest
from gan_runtime.domains.showers.entry import ANGLE, DEPOSIT, ENERGY, SHOWERS
from gan_runtime.domains.showers.features import cells_of, measured_angle
from gan_runtime.records.home import Home
from tests.domains.showers.hdf5_showers import (
    authors_columns,
    challenge_columns,
    simulated,
    written,
)

HELD_NOTHING = {"held_out_percent": 0}


def prepare(home: Home, preparation: str, source: Path, **options: Any) -> Manifest:
    manifest = preparations.prepare(
        home,
        PreparationRequest(preparation, "", source, {**HELD_NOTHING, **options}),
        lambda *_: None,
    )
    assert manifest is not None
    return manifest


def opened(home: Home, preparation: str, source: Path, **options: Any) -> DataSet:
    return prepared.open_set(home, prepare(home, preparation, source, **options).name)


def refusal(home: Home, preparation: str, source: Path) -> str:
    with pytest.raises(DatasetError) as refused:
        prepare(home, preparation, source)
    assert not prepared.names(home)
    assert not list(home.data.glob("*")), "something half-converted is left"
    return str(refused.value)


def test_authors_file_becomes_values_energies_and_angles(home: Home, tmp_path: Path) -> None:
    columns = authors_columns()
    columns["mtheta"] = columns["mtheta"] + 0.25  # to distinguish file angles from measured ones
    rows = opened(home, "showers_hdf5", written(tmp_path / "Ele.h5", columns)).read(np.arange(5))
    cells = np.where(columns["ECAL"] < 1e-4, 0.0, columns["ECAL"])[:5]
    assert rows[SHOWERS].dtype == np.float16
    np.testing.assert_allclose(rows[SHOWERS][..., 0], cells**0.85, rtol=1e-3, atol=1e-6)
    assert rows[ENERGY] == pytest.approx(columns["energy"][:5])
    assert rows[DEPOSIT] == pytest.approx(cells.sum(axis=(1, 2, 3)), rel=1e-5)
    assert rows[ANGLE] == pytest.approx(columns["mtheta"][:5])


def test_last_part_of_empty_events_is_accepted(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = authors_columns()
    columns["ECAL"][-1] = 0.0
    monkeypatch.setattr(
        "gan_runtime.domains.showers.file_formats.AUTHORS_AT_ONCE", len(columns["ECAL"]) - 1
    )
    assert prepare(home, AUTHORS, written(tmp_path / "Ele.h5", columns)).rows >= 4


def test_empty_events_are_dropped_and_counted(home: Home, tmp_path: Path) -> None:
    manifest = prepare(home, "showers_hdf5", written(tmp_path / "Ele.h5", authors_columns()))
    assert manifest.rows == 5
    left_out = "1 of 6 showers are skipped: each has at most 10 units, 0.2 GeV, in its cells"
    assert manifest.note.startswith(f"{left_out}. ")
    assert prepared.open_set(home, "showers_hdf5").note == manifest.note
    assert loading.data_sets(home)["showers_hdf5"].summary == f"{manifest.origin}. {manifest.note}"
    output = (
        CliRunner().invoke(app, ["data", "show", "showers_hdf5", "--home", str(home.path)]).stdout
    )
    assert manifest.note in output


def test_missing_angles_are_measured_and_2d_columns_flattened(home: Home, tmp_path: Path) -> None:
    columns = authors_columns()
    columns = {**columns, "mtheta": None, "energy": columns["energy"][:, None]}
    rows = opened(home, "showers_hdf5", written(tmp_path / "Ele.h5", columns)).read(np.arange(5))
    assert rows[ANGLE] == pytest.approx(measured_angle(simulated()[0])[:5], abs=1e-3)
    assert rows[ENERGY].shape == (5,)


def test_angles_on_the_tiny_grid_are_those_of_merged_cells(home: Home, tmp_path: Path) -> None:
    rows = opened(
        home, "showers_hdf5", written(tmp_path / "Ele.h5", authors_columns()), grid="tiny"
    ).read(np.arange(5))
    merged = simulated()[0][:5].reshape(5, 17, 3, 17, 3, 25).sum(axis=(2, 4))
    np.testing.assert_allclose(cells_of(rows[SHOWERS])[..., 0], merged, rtol=2e-3, atol=1e-5)
    assert rows[ANGLE] == pytest.approx(measured_angle(merged), abs=2e-3)


def test_threshold_empties_faint_cells(home: Home, tmp_path: Path) -> None:
    source = written(tmp_path / "Ele.h5", authors_columns())
    values = opened(home, "showers_hdf5", source, threshold=0.1).read(np.arange(5))[SHOWERS]
    assert values[values > 0].min() >= np.float16(0.1**0.85)


def test_folder_is_read_file_by_file_with_the_last_rows_held_out(
    home: Home, tmp_path: Path
) -> None:
    columns = {key: column[:5] for key, column in authors_columns().items()}
    for number in (1, 0):
        of_file = {**columns, "energy": columns["energy"] + number}
        written(tmp_path / f"Ele_{number:03d}.h5", of_file, chunks=True, compression="gzip")
    (tmp_path / "notes.txt").write_text("no file of showers")
    showers = opened(home, "showers_hdf5", tmp_path, held_out_percent=40)
    assert (showers.rows, showers.held_out) == (6, 4)
    assert showers.read(np.arange(6))[ENERGY].tolist() == [100, 125, 150, 175, 200, 101]
    assert showers.read_held_out(4)[ENERGY].tolist() == [126, 151, 176, 201]


@pytest.mark.parametrize(
    ("voxels", "shape", "largest"), [(6_480, (16, 9, 45), 9), (40_500, (50, 18, 45), 18)]
)
def test_calochallenge_file_becomes_angles_radii_and_layers(
    home: Home, tmp_path: Path, voxels: int, shape: tuple[int, ...], largest: int
) -> None:
    """The radius varies fastest, then the angle, then the layer. The angle is periodic."""
    columns = challenge_columns(voxels)
    showers = opened(home, "calochallenge", written(tmp_path / "dataset.hdf5", columns))
    field = showers.fields[SHOWERS]
    assert (field.shape, field.periodic, ANGLE in showers.fields) == ((*shape, 1), (0,), False)
    rows = showers.read(np.arange(8))
    alphas, radii, _layers = shape
    alpha, radius, layer = 5, largest - 2, 44
    voxel = (layer * alphas + alpha) * radii + radius
    expected = (columns["showers"][:, voxel] / 1_000.0 * 50.0) ** 0.85
    assert rows[SHOWERS][:, alpha, radius, layer, 0] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert rows[ENERGY] == pytest.approx(columns["incident_energies"][:, 0] / 1_000.0)
    assert rows[DEPOSIT] == pytest.approx(50.0 * 0.9 * rows[ENERGY], rel=1e-5)


AUTHORS, CHALLENGE = "showers_hdf5", "calochallenge"


@pytest.mark.parametrize(
    ("preparation", "changed", "sentence"),
    [
        (
            AUTHORS,
            {"ECAL": None},
            "bad.h5 has no ECAL, only energy, mtheta: check that it is the right file.",
        ),
        (
            AUTHORS,
            {"energy": None},
            "bad.h5 has no energy, only ECAL, mtheta: check that it is the right file.",
        ),
        (
            AUTHORS,
            {"ECAL": lambda cells: cells[:, :25, :25]},
            "bad.h5: its ECAL is 6 × 25 × 25 × 25, but N × 51 × 51 × 25 is needed.",
        ),
        (
            AUTHORS,
            {"energy": lambda gev: gev[:4]},
            "bad.h5 has different numbers of rows, or none (6 of ECAL, 4 of energy",
        ),
        (
            AUTHORS,
            {"energy": lambda gev: gev * np.nan},
            "bad.h5: its energy contains NaN, or a number above 3e38, in rows 0 to 5: correct the file, or leave it out.",  # noqa: E501
        ),
        (
            AUTHORS,
            {"energy": lambda gev: np.full(len(gev), b"high")},
            "bad.h5: its energy is not numeric",
        ),
        (AUTHORS, {"mtheta": np.degrees}, "bad.h5: its mtheta is from 7"),
        (
            CHALLENGE,
            {"showers": None},
            "bad.h5 has no showers, only incident_energies: check that it is the right file.",
        ),
        (
            CHALLENGE,
            {"showers": lambda mev: mev[:, :368]},
            "bad.h5: its showers is 8 × 368, but N × 6,480 or N × 40,500 is needed.",
        ),
    ],
)
def test_wrong_columns_are_refused_with_their_name(
    home: Home, tmp_path: Path, preparation: str, changed: dict[str, Any], sentence: str
) -> None:
    columns = authors_columns() if preparation == AUTHORS else challenge_columns(6_480)
    for key, change in changed.items():
        columns[key] = change(columns[key]) if change else None
    assert sentence in refusal(home, preparation, written(tmp_path / "bad.h5", columns))


def test_invalid_file_keeps_earlier_valid_ones_from_being_stored(
    home: Home, tmp_path: Path
) -> None:
    written(tmp_path / "1.h5", authors_columns())
    written(tmp_path / "2.h5", {**authors_columns(), "ECAL": authors_columns()["ECAL"] * 20.0})
    assert refusal(home, AUTHORS, tmp_path).startswith(
        "2.h5, rows 0 to 5: the cells of 6 showers, from row 0"
    )


def test_files_of_different_geometries_are_not_mixed(home: Home, tmp_path: Path) -> None:
    for number, voxels in enumerate((6_480, 40_500)):
        written(tmp_path / f"{number}.hdf5", challenge_columns(voxels))
    assert (
        refusal(home, CHALLENGE, tmp_path)
        == "1.hdf5 has other showers than 0.hdf5: prepare them separately."
    )


def test_damaged_file_is_refused_with_its_name(home: Home, tmp_path: Path) -> None:
    path = written(tmp_path / "torn.h5", authors_columns(), chunks=True, compression="gzip")
    whole = path.read_bytes()
    for begin in range(
        100, len(whole), len(whole) // 7
    ):  # in the metadata, and in the compressed cells
        path.write_bytes(whole[:begin] + bytes(3_000) + whole[begin + 3_000 :])
        assert refusal(home, AUTHORS, path).startswith("torn.h5 ")


def test_oversized_hdf5_chunks_are_refused(home: Home, tmp_path: Path) -> None:
    path = written(tmp_path / "bad.h5", {"energy": np.ones(2_000)})
    with h5py.File(path, "a") as file:
        file.create_dataset(
            "ECAL", (2_000, 51, 51, 25), "f4", chunks=(2_000, 51, 51, 25), compression="gzip"
        )
    assert path.stat().st_size < 100_000
    assert (
        refusal(home, AUTHORS, path)
        == "bad.h5: its ECAL has chunks of 520 MB, but at most 268 MB are allowed: repack it with"
        " smaller ones, such as with h5repack."
    )


def test_external_links_and_storage_are_not_opened(home: Home, tmp_path: Path) -> None:
    written(tmp_path / "secret.bin", {"energy": authors_columns()["energy"]})
    path = written(tmp_path / "bad.h5", {**authors_columns(), "energy": None})
    with h5py.File(path, "a") as file:
        file["energy"] = h5py.ExternalLink("secret.bin", "energy")
    assert refusal(home, AUTHORS, path).startswith(
        "bad.h5: its energy is a link, or is in another file, which is not opened"
    )
    with h5py.File(path, "a") as file:
        del file["energy"]
        file.create_dataset("energy", (6,), "f4", external=[(str(tmp_path / "secret.bin"), 0, 24)])
    assert refusal(home, AUTHORS, path).startswith(
        "bad.h5: its energy is a link, or is in another file, which is not opened"
    )
