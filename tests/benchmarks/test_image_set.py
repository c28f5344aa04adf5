"""The random images of a benchmark, as an in-memory and as a streamed data set."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from benchmarks import image_set, trainer_side
from benchmarks.run_options import MNIST, PICTURES, STREAMED, reading
from gan_runtime import catalog
from gan_runtime.catalog.dcgan import DcganOptions, reads
from gan_runtime.data import loading
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir

ROWS = 30


def test_the_data_set_fits_a_conditional_dcgan_and_has_ten_classes(home: Home) -> None:
    image_set.write(home, ROWS)
    rows = loading.load(image_set.NAME, home)
    assert list(reads(DcganOptions(), rows.fields)) == ["images", "labels"]
    fields = rows.read(np.arange(ROWS))
    assert fields["images"].shape == (ROWS, 64, 64, 3)
    assert (fields["images"].min(), fields["images"].max()) == (0, 255)
    assert set(fields["labels"]) <= set(range(10))
    assert len(rows.fields["labels"].classes) == 10


def test_sharding_does_not_change_the_row_order(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    image_set.write(home, ROWS)
    in_one_file = loading.load(image_set.NAME, home).read(np.arange(ROWS))
    other = Home(home.path / "other").prepare()
    monkeypatch.setattr(image_set, "SHARD_BYTES", 7 * 64 * 64 * 3)
    image_set.write(other, ROWS)
    assert len(list((other.data / image_set.NAME).glob("images-*.npy"))) == 5
    in_five = loading.load(image_set.NAME, other).read(np.arange(ROWS))
    assert all(np.array_equal(in_five[name], array) for name, array in in_one_file.items())


def test_the_same_rows_are_streamed_only_when_requested(home: Home) -> None:
    image_set.write(home, ROWS)
    some = np.array([3, 0, 29])
    with reading(PICTURES), reading(MNIST):
        in_memory = loading.load(image_set.NAME, home)
    with reading(STREAMED):
        streamed = loading.load(image_set.NAME, home)
    assert in_memory.resident is not None
    assert streamed.resident is None
    assert np.array_equal(streamed.read(some)["images"], in_memory.read(some)["images"])
    assert loading.load(image_set.NAME, home).resident is not None


@pytest.mark.parametrize(("data", "is_streamed"), [(STREAMED, True), (PICTURES, False)])
def test_a_side_trainer_streams_only_when_the_side_requests_it(
    home: Home, monkeypatch: pytest.MonkeyPatch, data: str, is_streamed: bool
) -> None:
    image_set.write(home, ROWS)
    monkeypatch.setitem(
        catalog.ENGINES, "tensorflow", catalog.ENGINES["tensorflow"]
    )  # restored afterwards
    monkeypatch.setattr(trainer_side, "answer_stream", io.StringIO)
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def streams(run: RunDir, *_: object) -> int:
        return int(loading.load(image_set.NAME, Home(run.path.parent.parent)).resident is None)

    monkeypatch.setattr(trainer_side.worker, "main", streams)
    assert trainer_side.train(home.runs / "quick-0001", data) == is_streamed
