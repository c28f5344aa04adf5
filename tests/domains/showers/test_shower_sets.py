"""Simulated showers as a data set: reproducible with the same options, and all or nothing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from gan_runtime.base.errors import DatasetError, SpecError
from gan_runtime.cli.app import app
from gan_runtime.data import loading, preparations, prepared
from gan_runtime.data.contract import DataSet
from gan_runtime.data.preparations import PREPARATIONS, PreparationRequest
from gan_runtime.domains.showers import preparation_options
from gan_runtime.domains.showers.entry import ANGLE, DEPOSIT, ENERGY, SHOWERS
from gan_runtime.domains.showers.features import cells_of, measured_angle
from gan_runtime.records.home import Home


def quiet(_done: int, _total: int, _sentence: str) -> None:
    """Ignores progress."""


def prepare(home: Home, name: str = "", **options: Any) -> DataSet:
    request = PreparationRequest("showers", name, None, {"events": 40, "grid": "tiny", **options})
    manifest = preparations.prepare(home, request, quiet)
    assert manifest is not None
    return prepared.open_set(home, manifest.name)


def test_simulated_data_set_has_energy_angle_and_deposit(home: Home) -> None:
    showers = prepare(home)
    assert (showers.name, showers.rows, showers.held_out) == ("showers", 36, 4)
    rows = showers.read(np.arange(36))
    cells_gev = cells_of(rows[SHOWERS])
    assert cells_gev.shape == (36, 17, 17, 25, 1)
    assert rows[ENERGY].min() >= 100.0
    assert rows[ENERGY].max() <= 200.0
    assert rows[ENERGY].std() > 20.0
    assert rows[DEPOSIT] == pytest.approx(50.0 * cells_gev.sum(axis=(1, 2, 3, 4)), rel=1e-3)
    assert rows[DEPOSIT] / rows[ENERGY] == pytest.approx(np.ones(36), abs=0.3)
    assert rows[ANGLE] == pytest.approx(measured_angle(cells_gev), abs=1e-3)
    assert np.degrees(rows[ANGLE]).std() > 4.0


def test_energies_angles_and_grid_follow_the_options(home: Home) -> None:
    showers = prepare(
        home, events=8, grid="full", energy_low=20, energy_high=20, angle_low=120, angle_high=120
    )
    rows = showers.read(np.arange(8))
    assert rows[SHOWERS].shape == (8, 51, 51, 25, 1)
    assert rows[ENERGY].tolist() == [20.0] * 8
    assert np.degrees(rows[ANGLE]).mean() == pytest.approx(118.0, abs=2.5)


def test_same_seed_gives_the_same_first_showers_at_any_length(home: Home) -> None:
    first, longer, other = (
        prepare(home, name, events=events, seed=seed).read(np.arange(20))[SHOWERS]
        for name, events, seed in (("a", 24, 1), ("b", 70, 1), ("c", 24, 2))
    )
    assert np.array_equal(first, longer)
    assert not np.array_equal(first, other)


def test_preparing_again_does_nothing_but_other_showers_need_a_name(home: Home) -> None:
    prepare(home)
    before = (home.data / "showers" / "manifest.json").stat().st_mtime_ns
    prepare(home)
    assert (home.data / "showers" / "manifest.json").stat().st_mtime_ns == before
    with pytest.raises(DatasetError, match="data set showers exists already, from other files"):
        prepare(home, seed=1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"energy_low": 150, "energy_high": 120},
            "energy_low is 150, above energy_high, which is 120: swap them.",
        ),
        ({"angle_high": "59"}, "angle_low is 60, above angle_high, which is 59: swap them."),
        ({"energy_low": 1}, "allowed is at least 2 and at most 500"),
        ({"grid": "tinny"}, "did you mean tiny?"),
        ({"pixels": "64"}, "is not an option of this preparation: use one of events, seed, grid,"),
    ],
)
def test_invalid_options_are_refused_before_work_starts(
    home: Home, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SpecError) as refused:
        prepare(home, **options)
    assert sentence in str(refused.value)
    assert not home.data.exists()


@pytest.mark.parametrize("name", ["showers", "showers_tiny"])
def test_promised_fields_and_rows_match_the_prepared_data_set(home: Home, name: str) -> None:
    promised = loading.data_sets(home)[name]
    assert (promised.is_prepared, promised.problem) == (False, "")
    assert not loading.availability(name, home).ready
    assert promised.fields == loading.fields_of(name, home)
    assert loading.is_streamed(name, home) == (name == "showers")
    preparations.prepare(home, PreparationRequest(name, "", None, {"events": 40}), lambda *_: None)
    promise = preparation_options.promised(PREPARATIONS[name].options(events=40))
    data = loading.load(name, home)
    assert (data.fields, data.rows) == (promise.fields, promise.rows)
    assert data.fields == promised.fields
    assert loading.data_sets(home)[name].is_prepared
    assert loading.availability(name, home).ready
    assert not loading.is_streamed(name, home)


def test_unprepared_data_set_cannot_be_loaded(home: Home) -> None:
    with pytest.raises(
        DatasetError, match="prepare it first, on the Data page or with `data prepare showers`"
    ):
        loading.load("showers", home)


def test_source_and_reserved_name_are_refused() -> None:
    with pytest.raises(DatasetError, match="has no source, only options: leave out --from"):
        PreparationRequest("showers", "", Path("/tmp")).check()
    with pytest.raises(DatasetError, match="choose another name"):
        PreparationRequest("showers", "digits").check()


def test_cancelled_simulation_leaves_no_files(home: Home) -> None:
    class CancelledError(Exception):
        pass

    def cancel(done: int, _total: int, _sentence: str) -> None:
        if done:
            raise CancelledError

    with pytest.raises(CancelledError):
        preparations.prepare(
            home, PreparationRequest("showers", "", None, {"events": 64, "grid": "tiny"}), cancel
        )
    assert list(home.data.iterdir()) == []


def test_command_line_prepares_showers_in_a_job(home: Home) -> None:
    words = [
        "data",
        "prepare",
        "showers",
        "--set",
        "events=20",
        "--set",
        "grid=tiny",
        "--home",
        str(home.path),
    ]
    ended = CliRunner().invoke(app, words)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert (
        ended.stdout
        == "data set showers is ready: 18 training rows, 2 held out. Train on it with `train"
        " --set dataset=showers`.\nMeasured: sampling fraction 0.01994, its spread 0.001096,"
        " lowest energy 100.3 GeV, highest energy 193.5 GeV.\nSee the first rows in"
        f" {prepared.first_rows_image(home, 'showers')}.\n"
    )


def test_card_of_a_shower_data_set_has_an_image_from_three_sides(home: Home) -> None:
    rows = prepare(home).read(np.arange(16))
    image = prepared.png_of_rows(rows)
    assert image is not None
    picture = Image.open(io.BytesIO(image))
    assert picture.width > picture.height > 100
    assert len(picture.getcolors(1 << 20)) > 50, "nothing is drawn"
    assert prepared.png_of_rows({ENERGY: rows[ENERGY]}) is None
