"""The images of a run: the files written from an engine's arrays, and their journal records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gan_runtime.catalog.entries import Picture
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training.recorder import SampleWriter

PLAIN = Picture("samples", "Generated images", "grey_grid", ("images",))
BY_CLASS = Picture("by_class", "By class", "labelled_grid", ("images", "labels"))
IMAGES = -np.ones((4, 8, 8, 1), np.float32)
LABELS = np.asarray([0, 1, 0, 1])


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


def files(run: RunDir) -> list[str]:
    return sorted(path.name for path in run.samples.iterdir())


def test_each_kind_is_a_file_and_a_record_of_the_epoch(run: RunDir) -> None:
    album, inputs = (
        SampleWriter((PLAIN, BY_CLASS), ("cat", "dog"), "3f"),
        {
            "images": IMAGES,
            "labels": LABELS,
        },
    )
    album.write(inputs, run, epoch=3)
    records = album.records(inputs, run, epoch=3, step=30)
    assert files(run) == ["by_class-00003.png", "samples-00003.png"]
    assert [(record.epoch, record.step, record.sample_kind, record.file) for record in records] == [
        (3, 30, "samples", "samples/samples-00003.png"),
        (3, 30, "by_class", "samples/by_class-00003.png"),
    ]
    assert [record.meta for record in records] == [
        {"inputs": "3f", "renderer": "grey_grid"},
        {"inputs": "3f", "renderer": "labelled_grid"},
    ]
    with Image.open(run.sample_file("by_class", 3)) as picture:
        assert picture.height == 2 * 18 - 2, "a row for each class"


def test_kind_without_its_arrays_is_skipped(run: RunDir) -> None:
    """A network built without labels has no labels to show."""
    album = SampleWriter((PLAIN, BY_CLASS))
    album.write({"images": IMAGES}, run, epoch=1)
    assert files(run) == ["samples-00001.png"]
    assert len(album.records({"images": IMAGES}, run, 1, 10)) == 1


def test_workload_that_returns_none_of_its_image_arrays_is_refused(run: RunDir) -> None:
    with pytest.raises(ValueError, match=r"returns image, but the images need \(samples: images\)"):
        SampleWriter((PLAIN,)).write({"image": IMAGES}, run, epoch=1)


def test_a_run_has_the_sample_images_of_its_workload() -> None:
    album = SampleWriter.of(RunSpec.parse({"workload": "mlp_gan"}), ("cat", "dog"))
    assert [kind.name for kind in album.kinds] == ["samples"]
    assert album.classes == ("cat", "dog")
