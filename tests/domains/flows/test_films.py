"""The held-out films of a data set, recognized by the Reynolds number and time step of each row."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import format as npy

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import SOURCE, Fields, pair_fields
from gan_runtime.data import prepared
from gan_runtime.data.contract import ArraySet
from gan_runtime.data.sharded import ShardedSet, row_bytes, shard_file
from gan_runtime.domains.flows import films
from gan_runtime.domains.flows.fields import (
    LATTICE_STEP,
    OBSTACLE_SHIFT,
    OBSTACLE_WIDTH,
    REYNOLDS,
    flow_fields,
)
from gan_runtime.domains.flows.films import Film
from gan_runtime.records.home import Home
from tests.support import stored_films


def test_a_film_ends_where_another_flow_begins(home: Home) -> None:
    stored_films.stored_flows(home)
    for resident_bytes in (0, 10**9):
        data = prepared.open_set(home, "street", resident_bytes)
        assert films.films(data) == [Film(0, 0, 40, 120.0, 24), Film(1, 40, 6, 200.0, 24)]


def test_flows_of_one_reynolds_number_are_separated_by_time_step() -> None:
    numbers = {
        REYNOLDS: np.array([90.0, 90.0, 90.0, 90.0, 90.0], np.float32),
        LATTICE_STEP: np.array([0, 24, 48, 0, 24], np.int32),
    }
    fields = {name: field for name, field in flow_fields(4, 4).items() if name in numbers}
    data = ArraySet("street", fields, numbers, "test", kept_back=numbers)
    assert [(film.first, film.steps) for film in films.films(data)] == [(0, 3), (3, 2)]
    assert [film.title for film in films.films(data)] == ["Re 90"] * 2, (
        "sets of 0.2.0 know no other obstacle"
    )
    assert films.trained(data) == films.films(data)


def test_a_film_title_names_an_unusual_obstacle() -> None:
    numbers = {
        REYNOLDS: np.array([90.0, 90.0, 90.0], np.float32),
        LATTICE_STEP: np.array([0, 0, 0], np.int32),
        OBSTACLE_WIDTH: np.array([10.0, 16.0, 10.0], np.float32),
        OBSTACLE_SHIFT: np.array([0.0, -7.0, 2.0], np.float32),
    }
    data = ArraySet("street", flow_fields(4, 4), numbers, "test", kept_back=numbers)
    titles = ["Re 90", "Re 90, width 16, shift -7", "Re 90, shift 2"]
    # Only the numbers are read: there are no images.
    assert [film.title for film in films.films(data)] == titles
    assert [(film.width, film.shift) for film in films.films(data)] == [
        (10.0, 0.0),
        (16.0, -7.0),
        (10.0, 2.0),
    ]


def test_film_frames_start_at_the_requested_frame(home: Home) -> None:
    stored_films.stored_flows(home)
    data = prepared.open_set(home, "street", 0)
    film = films.films(data)[1]
    source, targets = films.frames(data, film, start=2, steps=3)
    np.testing.assert_array_equal(source[..., :3], stored_films.frame(2, 200.0))
    np.testing.assert_array_equal(source[..., 3:], stored_films.obstacle())
    np.testing.assert_array_equal(targets, [stored_films.frame(step, 200.0) for step in (3, 4, 5)])


def test_only_the_row_of_a_pair_is_read(tmp_path: Path) -> None:
    """Uses sparse files of 1 TB each. The rows before the last one take no memory."""
    fields, pairs = pair_fields(512, 512), 1_300_000
    for name, field in fields.items():
        with shard_file(tmp_path, name, 0).open("wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (pairs, *field.shape)}
            npy.write_array_header_1_0(file, header)  # type: ignore[arg-type]
            file.truncate(file.tell() + pairs * row_bytes(field) - 1)
            file.seek(0, os.SEEK_END)
            file.write(b"\x07")
    data = ShardedSet(
        "photos", tmp_path, fields, dict.fromkeys(fields, (pairs,)), pairs - 1, "test"
    )
    last = pairs - 2
    tracemalloc.start()
    source, targets = films.frames(data, Film(last, last, 1), 0, 1)
    assert tracemalloc.get_traced_memory()[1] < 10 * row_bytes(fields[SOURCE])
    tracemalloc.stop()
    assert (source[-1, -1, -1], targets[0, -1, -1, -1]) == (7, 7)


def test_image_pairs_are_films_of_one_step(home: Home) -> None:
    stored_films.stored_pairs(home)
    data = prepared.open_set(home, "edges", 0)
    assert films.films(data) == [Film(0, 0, 1), Film(1, 1, 1)]
    assert [film.title for film in films.films(data)] == ["pair 0", "pair 1"]
    source, targets = films.frames(data, films.films(data)[1], 0, 1)
    np.testing.assert_array_equal(targets[0], 255 - source)


@pytest.mark.parametrize("fields", [flow_fields(4, 4), pair_fields(4, 4)], ids=["flows", "pairs"])
def test_a_data_set_without_held_out_rows_has_no_films(
    fields: Fields,
) -> None:
    rows = {name: np.zeros((5, *field.shape), field.dtype) for name, field in fields.items()}
    data = ArraySet("street", fields, rows, "test")
    assert films.films(data) == []
    with pytest.raises(DatasetError, match=r"has no held-out films, so .* higher held_out_percent"):
        films.selected([], 0, 0, 1)


@pytest.mark.parametrize(
    ("number", "start", "steps", "message"),
    [
        (2, 0, 1, "trajectory is 2, but the held-out films are 0 to 1"),
        (-1, 0, 1, "trajectory is -1"),
        (1, 4, 3, "3 steps from frame 4 on are requested, but Re 200 has 6 in all"),
    ],
)
def test_a_missing_or_too_short_film_is_refused(
    number: int, start: int, steps: int, message: str
) -> None:
    trajectories = [Film(0, 0, 40, 120.0, 24), Film(1, 40, 6, 200.0, 24)]
    assert films.selected(trajectories, 1, 4, 2) == trajectories[1]
    with pytest.raises(DatasetError, match=message):
        films.selected(trajectories, number, start, steps)
