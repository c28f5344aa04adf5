"""Simulated flows as a data set: time-ordered frames, whole flows held out, a live image during
preparation, and all-or-nothing results.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dashboard import data_summary
from gan_runtime.base.errors import DatasetError, SpecError
from gan_runtime.base.fields import SOURCE, TARGET
from gan_runtime.data import loading, preparations, prepared
from gan_runtime.data.contract import DataSet
from gan_runtime.data.preparations import PREPARATIONS, PreparationRequest
from gan_runtime.data.prepared import LiveImage
from gan_runtime.domains.flows import films, preparation_options
from gan_runtime.domains.flows import lattice as flow_frames
from gan_runtime.domains.flows.fields import (
    LATER,
    LATTICE_STEP,
    OBSTACLE_SHIFT,
    OBSTACLE_WIDTH,
    REYNOLDS,
)
from gan_runtime.domains.flows.lattice import Lattice, square
from gan_runtime.records.home import Home

FEW = {
    "reynolds": "80,100",
    "held_out_reynolds": "90, 95.5",
    "frames": 6,
    "steps_per_frame": 5,
    "discarded": 10,
    "later": 1,
}


def prepare(home: Home, preparation: str = "karman", name: str = "", **options: Any) -> DataSet:
    request = PreparationRequest(preparation, name, None, {**FEW, **options})
    manifest = preparations.prepare(home, request, lambda *_: None)
    assert manifest is not None
    return prepared.open_set(home, manifest.name)


def test_a_row_has_a_frame_the_next_one_and_later_ones(home: Home) -> None:
    flows = prepare(home, later=2)
    rows = flows.read(np.arange(flows.rows))
    assert flows.rows == 2 * 3
    assert rows[SOURCE].shape == (6, 80, 192, 4)
    assert rows[LATER].shape == (6, 2, 80, 192, 3)
    assert rows[LATTICE_STEP].tolist() == [10, 15, 20] * 2
    assert rows[REYNOLDS].tolist() == [80.0] * 3 + [100.0] * 3
    for first in (0, 3):  # of each flow
        assert np.array_equal(rows[TARGET][first], rows[SOURCE][first + 1, ..., :3])
        assert np.array_equal(rows[LATER][first, 0], rows[TARGET][first + 1])
        assert np.array_equal(rows[LATER][first, 1], rows[LATER][first + 1, 0])
    assert not np.array_equal(rows[SOURCE][0], rows[SOURCE][1])
    assert abs(rows[SOURCE]).max() <= 1.0
    assert np.array_equal(rows[SOURCE][5, ..., 3] == 1.0, square())


def test_frames_match_the_solver(home: Home) -> None:
    rows = prepare(home).read(np.array([3]))  # the last row of the first flow
    flow = Lattice(80.0, square(), kick=0.5)
    flow.advance(25)
    assert rows[SOURCE][0, ..., :3] == pytest.approx(flow_frames.of(flow), abs=1e-3)


def test_whole_flows_are_held_out_in_time_order(home: Home) -> None:
    flows = prepare(home)
    held_out = flows.read_held_out(100)
    assert flows.held_out == 2 * 4
    assert held_out[REYNOLDS].tolist() == [90.0] * 4 + [95.5] * 4
    assert held_out[LATTICE_STEP].tolist() == [10, 15, 20, 25] * 2
    trained = flows.read(np.arange(flows.rows))
    assert set(trained[REYNOLDS].tolist()) == {80.0, 100.0}


def test_the_small_grid_averages_four_cells(home: Home) -> None:
    full, half = (
        prepare(home, name=name, grid=name).read(np.arange(2)) for name in ("full", "half")
    )
    assert half[SOURCE].shape == (2, 40, 96, 4)
    assert half[TARGET] == pytest.approx(
        flow_frames.halved(full[TARGET].astype(np.float32)), abs=1e-3
    )
    obstacle = half[SOURCE][0, ..., 3]
    assert set(obstacle.ravel().tolist()) == {0.0, 1.0}
    assert obstacle.sum() == 6 * 6 - 4, "cells at its corners are the obstacle's in one of four"
    assert np.array_equal(obstacle, obstacle[::-1]), "upside down it is the same"


@pytest.mark.parametrize("name", ["karman", "karman_small"])
def test_a_data_set_matches_the_fields_listed_before_its_preparation(home: Home, name: str) -> None:
    promised = loading.data_sets(home)[name]
    assert (promised.is_prepared, promised.rows) == (False, 12 * 147)
    assert not loading.is_streamed(name, home), "it fits into the memory of a device"
    data = prepare(home, name)
    options = PREPARATIONS[name].options(**FEW)
    promise = preparation_options.promised(options)
    assert (data.fields, data.rows) == (promise.fields, promise.rows)
    assert {field: data.fields[field].odd_channels for field in (SOURCE, TARGET, LATER)} == {
        SOURCE: (1, 2),
        TARGET: (1, 2),
        LATER: (1, 2),
    }


def test_rows_without_later_frames_lack_the_later_field(home: Home) -> None:
    flows = prepare(home, later=0)
    assert set(flows.fields) == {
        *(SOURCE, TARGET, REYNOLDS, LATTICE_STEP, OBSTACLE_WIDTH, OBSTACLE_SHIFT)
    }
    assert flows.rows == 2 * 5


def test_obstacle_shifts_are_reproducible_for_a_seed(
    home: Home,
) -> None:
    options = {"shift": 12, "reynolds": "80, 90, 100, 110", "held_out_reynolds": "120", "frames": 4}
    first, again, other = (
        prepare(home, name=name, seed=seed, **options)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    tops = [places(flows) for flows in (first, again, other)]
    assert len(set(tops[0])) > 1
    assert tops[0] == tops[1] != tops[2]
    assert min(tops[0]) >= 35 - 12
    assert max(tops[0]) <= 35 + 12


def test_listed_flows_may_have_own_obstacles_named_in_the_manifest(
    home: Home,
) -> None:
    """The viscosity of a flow follows from its own obstacle width."""
    lists = {
        "reynolds": "80, 100 width 8 shift -3",
        "held_out_reynolds": "80 width 16, 120  shift 7,60",
    }
    flows = prepare(home, **lists)
    rows, held_out = flows.read(np.arange(flows.rows)), flows.read_held_out(100)
    assert rows[OBSTACLE_WIDTH].tolist() == [10.0] * 4 + [8.0] * 4
    assert rows[OBSTACLE_SHIFT].tolist() == [0.0] * 4 + [-3.0] * 4
    assert np.array_equal(rows[SOURCE][4, ..., 3] == 1.0, square(shift=-3, diameter=8))
    assert np.array_equal(held_out[SOURCE][0, ..., 3] == 1.0, square(diameter=16))
    wide = Lattice(80.0, square(diameter=16), kick=0.5, diameter=16)
    same = Lattice(50.0, square(diameter=16), kick=0.5)
    for flow in (wide, same):
        flow.advance(20)
    assert held_out[SOURCE][2, ..., :3] == pytest.approx(flow_frames.of(wide), abs=1e-3)
    assert flow_frames.of(wide) == pytest.approx(flow_frames.of(same), abs=1e-6), (
        "U D / ν, D its own width"
    )
    manifest = prepared.manifest(home, "karman")
    assert manifest.options["held_out_reynolds"] == "80 width 16, 120 shift 7, 60"
    assert manifest.held_out_counts == {"Re 80, width 16": 4, "Re 120, shift 7": 4, "Re 60": 4}
    assert manifest.counts == {
        **manifest.held_out_counts,
        "Re 80": 4,
        "Re 100, width 8, shift -3": 4,
    }
    assert list(manifest.counts) == [
        *manifest.held_out_counts,
        "Re 80",
        "Re 100, width 8, shift -3",
    ]
    assert [film.title for film in films.films(flows)] == [
        "Re 80, width 16",
        "Re 120, shift 7",
        "Re 60",
    ]
    assert [film.title for film in films.trained(flows)] == ["Re 80", "Re 100, width 8, shift -3"]


def places(flows: DataSet) -> list[int]:
    """The first row of the obstacle in each flow."""
    rows = flows.read(np.arange(flows.rows))[SOURCE][::2, ..., 3]
    return [int(row) for row in (rows.max(axis=2) > 0).argmax(axis=1)]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"reynolds": "80; 100"},
            (
                "Reynolds numbers (reynolds) is '80; 100', but allowed is different flows separated"
                " by commas: a number from 40 to 250,"
            ),
        ),
        (
            {"reynolds": "39"},
            "but allowed is different flows separated by commas: a number from 40 to 250",
        ),
        ({"reynolds": "80, 80.0"}, "different flows separated by commas"),
        ({"held_out_reynolds": ""}, "Held-out Reynolds numbers (held_out_reynolds) is ''"),
        (
            {"held_out_reynolds": "100, 120"},
            "but reynolds has 100 too: remove it from one of them.",
        ),
        (
            {"held_out_reynolds": "100 shift 0, 120"},
            "but reynolds has 100 shift 0 too: remove it from one of them.",
        ),
        ({"held_out_reynolds": "120 width 13"}, "widths are even, 6 to 20 cells"),
        ({"held_out_reynolds": "120 width 22"}, "widths are even, 6 to 20 cells"),
        (
            {"reynolds": "80 shift 21"},
            "shifts are up to 20 cells down, or up with a minus",
        ),
        (
            {"reynolds": "80 wide 12"},
            "but allowed is different flows separated by commas: a number from 40 to 250",
        ),
        (
            {"frames": 4, "later": 3},
            "frames is 4, fewer than the 5 of a row with later=3: use more.",
        ),
        ({"obstacle": "circel"}, "did you mean circle?"),
    ],
)
def test_wrong_options_are_refused_before_preparation_starts(
    home: Home, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SpecError) as refused:
        prepare(home, **options)
    assert sentence in str(refused.value)
    assert not home.data.exists()


def test_equal_numbers_in_another_notation_are_the_same_data_set(home: Home) -> None:
    prepare(home)
    prepare(home, reynolds="80.0,  100")
    with pytest.raises(DatasetError, match="data set karman exists already, from other files"):
        prepare(home, reynolds="80, 110")


def test_an_unstable_flow_is_reported_and_nothing_is_stored(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Lattice, "velocity", lambda flow: (np.full(flow.obstacle.shape, np.nan),) * 2
    )
    with pytest.raises(
        DatasetError, match="the flow at Re 80 became unstable at step 10: leave it out"
    ):
        prepare(home)
    assert list(home.data.iterdir()) == []


class CancelledError(Exception):
    """Raised when the user presses Cancel."""


def test_a_live_image_shows_the_flow_and_cancel_leaves_nothing(home: Home, tmp_path: Path) -> None:
    home.prepare()
    work, reports = tmp_path / "work", []
    work.mkdir()

    def cancel(done: int, total: int, sentence: str) -> None:
        reports.append((done, total, sentence, prepared.read_live_image(work)))
        if done == 20:
            raise CancelledError

    with pytest.raises(CancelledError):
        preparations.prepare(home, PreparationRequest("karman", "", None, FEW), cancel, work)
    assert reports[0] == (0, 4 * 35, "Simulating Re 80, flow 1 of 4: step 0", None)
    image = np.asarray(Image.open(io.BytesIO(reports[-1][3] or b"")))
    assert image.shape == (240, 576, 3)
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 50, "nothing is drawn"
    assert list(work.iterdir()) == []
    assert list(home.data.iterdir()) == []


def test_the_live_image_is_redrawn_each_second_and_not_in_the_data_set(
    tmp_path: Path, home: Home
) -> None:
    seconds = [0.0]
    picture, images = LiveImage(tmp_path, clock=lambda: seconds[0]), []

    def draw() -> np.ndarray:
        images.append(seconds[0])
        return np.full((2, 3, 3), 99, np.uint8)

    for now_s in (0.0, 0.4, 0.9, 1.0, 1.5, 7.0):
        seconds[0] = now_s
        picture.renew(draw)
    assert images == [0.0, 1.0, 7.0]
    assert [path.name for path in tmp_path.glob("live*")] == [prepared.LIVE_FILE]
    prepare(home)
    assert not list(prepared.folder(home, "karman").glob("*live*"))


def test_the_card_of_a_flow_data_set_shows_frames_and_describes_a_row(home: Home) -> None:
    flows = prepare(home, later=0, grid="half", frames=17)
    image = prepared.png_of_rows(flows.read(np.arange(prepared.FIRST_ROWS_COUNT)))
    assert image is not None
    picture = Image.open(io.BytesIO(image))
    assert picture.size == (2 * 96 + 2, 2 * 40 + 2)
    assert data_summary.row(flows.fields) == "40 × 96, each with the next one · Reynolds number"
    assert data_summary.noun(flows.fields) == "frame"
