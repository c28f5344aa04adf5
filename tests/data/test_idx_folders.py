"""MNIST and Fashion-MNIST from a folder of IDX files: which files are used, with their labels and
held-out rows.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError, SpecError
from gan_runtime.data import builtin_sets, idx_files, loading
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from tests.data.idx_files import TEST, TEST_LABELS, TRAIN, TRAIN_LABELS, WriteIdx, pictures
from tests.support.asking import ask


@pytest.mark.parametrize(
    "name", [TRAIN, TRAIN + ".gz", "train-images.idx3-ubyte", "train-images.idx3-ubyte.gz"]
)
def test_idx_files_are_read_plain_and_compressed(
    folder: Path, write_idx: WriteIdx, name: str
) -> None:
    path = write_idx(folder / name, pictures(3))
    data = loading.load("mnist")
    assert np.array_equal(data.resident["images"][..., 0], pictures(3))
    assert (data.name, data.origin, data.note) == ("mnist", str(path), "")
    availability = loading.availability("mnist")
    assert (availability.ready, availability.images, availability.origin) == (True, 3, str(path))


def test_a_folder_with_only_test_files_is_used_with_a_note(
    folder: Path, write_idx: WriteIdx
) -> None:
    write_idx(folder / TEST, pictures(2))
    data = loading.load("mnist")
    assert len(data.resident["images"]) == 2
    assert data.note == f"{folder} has only the test files: runs train on these 10,000 images."
    assert loading.availability("mnist").note == data.note


def test_training_files_take_precedence_over_test_files(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TEST, pictures(2))
    write_idx(folder / (TRAIN + ".gz"), pictures(3))
    assert (len(loading.load("mnist").resident["images"]), loading.load("mnist").note) == (3, "")


def test_files_directly_in_the_folder_count_as_mnist_not_as_fashion(
    folder: Path, write_idx: WriteIdx
) -> None:
    write_idx(folder / TRAIN, pictures(3))
    assert loading.availability("mnist").images == 3
    with pytest.raises(DatasetError, match="has no fashion_mnist images"):
        loading.availability("fashion_mnist")


def test_files_in_a_folder_named_fashion_count_as_fashion_only(
    tmp_path: Path, write_idx: WriteIdx, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "Fashion-MNIST"
    write_idx(root / TRAIN, pictures(3))
    monkeypatch.setenv("GAN_DATA_DIR", str(root))
    assert loading.availability("fashion_mnist").images == 3
    with pytest.raises(DatasetError) as refused:
        loading.availability("mnist")
    assert str(refused.value) == (
        f"{root} has images of fashion_mnist, not of mnist, since its folder is 'Fashion-MNIST':"
        f" use dataset=fashion_mnist, or put the files of mnist into {root / 'mnist'}."
    )


@pytest.mark.parametrize(
    ("place", "reason", "advice"),
    [
        ("KMNIST/raw", "it is in a folder 'KMNIST'", "put its images into a folder for each class"),
        ("data/fashion-mnist/data", "it is in a folder 'fashion-mnist'", "use dataset=fashion_"),
        ("mnist/q_mnist", "it is in a folder 'q_mnist'", "put its images into a folder for each"),
    ],
)
def test_a_set_is_recognized_by_all_folders_around_it(
    tmp_path: Path,
    write_idx: WriteIdx,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    reason: str,
    advice: str,
) -> None:
    write_idx(tmp_path / place / TRAIN, pictures(3))
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path / place))
    with pytest.raises(DatasetError) as refused:
        loading.availability("mnist")
    assert reason in str(refused.value)
    assert advice in str(refused.value)
    write_idx(tmp_path / place / "mnist" / TRAIN, pictures(2))  # as the message says
    assert loading.availability("mnist").images == 2


def test_a_published_file_is_recognized_in_any_folder(
    folder: Path, write_idx: WriteIdx, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_idx(folder / (TRAIN + ".gz"), pictures(3))
    digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    monkeypatch.setitem(idx_files.PUBLISHED, digest, "fashion_mnist")
    assert loading.availability("fashion_mnist").images == 3
    with pytest.raises(DatasetError, match="is the published file of it: use dataset=fashion_"):
        loading.availability("mnist")
    (folder / "mnist").mkdir()
    path.rename(folder / "mnist" / path.name)
    with pytest.raises(DatasetError, match="has images of fashion_mnist, not of mnist"):
        loading.availability("mnist")


@pytest.mark.parametrize("folder_name", ["fashion_mnist", "fashion-mnist"])
def test_a_subfolder_named_after_the_data_set_takes_precedence(
    folder: Path, write_idx: WriteIdx, folder_name: str
) -> None:
    write_idx(folder / TRAIN, pictures(3))
    write_idx(folder / folder_name / TRAIN, pictures(4))
    assert loading.availability("fashion_mnist").images == 4
    assert loading.availability("mnist").images == 3


def test_label_files_next_to_the_images_give_labels(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(3))
    write_idx(folder / (TRAIN_LABELS + ".gz"), np.array([9, 0, 4]))
    data = loading.load("mnist")
    assert data.resident["labels"].tolist() == [9, 0, 4]
    assert data.fields == builtin_sets.fields("mnist") == catalog.DATASETS["mnist"].fields


def test_images_without_label_files_have_no_labels(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(3))
    assert list(loading.load("mnist").fields) == list(builtin_sets.fields("mnist")) == ["images"]


def test_the_test_images_are_held_out(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(3))
    write_idx(folder / TEST, pictures(5)[3:])
    data = loading.load("mnist")
    assert (data.rows, data.held_out) == (3, 2)
    assert np.array_equal(data.read_held_out(9)["images"][..., 0], pictures(5)[3:])


def test_unlabeled_test_images_are_skipped_if_training_has_labels(
    folder: Path, write_idx: WriteIdx
) -> None:
    write_idx(folder / TRAIN, pictures(3))
    write_idx(folder / TRAIN_LABELS, np.array([9, 0, 4]))
    write_idx(folder / TEST, pictures(2))
    assert loading.load("mnist").held_out == 0
    write_idx(folder / TEST_LABELS, np.array([1, 2]))
    assert loading.load("mnist").read_held_out(2)["labels"].tolist() == [1, 2]


def test_a_label_count_mismatch_is_refused(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(3))
    path = write_idx(folder / TRAIN_LABELS, np.array([1, 2]))
    for look in (loading.availability, loading.load):
        with pytest.raises(DatasetError) as refused:
            look("mnist")
        assert (
            str(refused.value)
            == f"{path} has 2 labels, but {TRAIN} next to it has 3 images: use the original files."
        )


@pytest.mark.parametrize("part", ["train", "t10k"])
def test_an_invalid_label_is_refused_before_a_run_is_queued(
    folder: Path, write_idx: WriteIdx, part: str
) -> None:
    """The 47 classes of EMNIST's balanced set under the file names of MNIST."""
    for other in ("train", "t10k"):
        write_idx(folder / f"{other}-images-idx3-ubyte", pictures(2))
        write_idx(folder / f"{other}-labels-idx1-ubyte", np.array([1, 46 if other == part else 9]))
    for look in (loading.availability, loading.load):
        with pytest.raises(
            DatasetError, match=r"has the label 46, but allowed are 0 to 9: .*EMNIST"
        ):
            look("mnist")


def test_a_run_with_invalid_labels_is_not_queued(
    folder: Path, write_idx: WriteIdx, home: Home, host: Host
) -> None:
    write_idx(folder / TRAIN, pictures(20))
    write_idx(folder / TRAIN_LABELS, np.arange(20) + 7)
    spec = RunSpec.parse({"dataset": "mnist", "batch_size_global": 4})
    with pytest.raises(SpecError, match="has the label 26, but allowed are 0 to 9"):
        ask(home, host).submit(spec)
    assert list(home.runs.glob("[a-z]*")) == []


def test_files_in_folders_of_the_same_name_are_found(folder: Path, write_idx: WriteIdx) -> None:
    """As packaged by Kaggle."""
    write_idx(folder / "fashion_mnist" / TRAIN / TRAIN, pictures(6))
    write_idx(folder / "fashion_mnist" / TRAIN_LABELS / TRAIN_LABELS, np.arange(6))
    assert loading.load("fashion_mnist").resident["labels"].tolist() == [0, 1, 2, 3, 4, 5]


def test_rows_are_counted_by_class_and_split(folder: Path, write_idx: WriteIdx) -> None:
    assert builtin_sets.summary("mnist") is None
    write_idx(folder / TRAIN, pictures(5))
    assert builtin_sets.summary("mnist") is None  # without labels
    write_idx(folder / TRAIN_LABELS, np.array([8, 8, 0, 3, 8]))
    write_idx(folder / TEST, pictures(2))
    write_idx(folder / TEST_LABELS, np.array([3, 8]))
    summary = builtin_sets.summary("mnist")
    assert summary is not None
    rows = {name: both for name, both in summary.by_split().items() if any(both)}
    assert rows == {"0": (1, 0), "3": (1, 1), "8": (3, 1)}
    assert (len(summary.counts), summary.held_out) == (10, 2)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_labels_in_keras_cache_are_counted(
    name: str, tmp_path: Path, write_idx: WriteIdx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GAN_DATA_DIR", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    training, held_out = np.array([7, 7, 1]), np.array([7])
    if name == "mnist":
        (tmp_path / "datasets").mkdir()
        images = {"x_train": pictures(3), "x_test": pictures(1)}
        np.savez(tmp_path / "datasets" / "mnist.npz", **images, y_train=training, y_test=held_out)
    else:
        place = tmp_path / "datasets" / "fashion-mnist"
        write_idx(place / (TRAIN + ".gz"), pictures(3))
        write_idx(place / (TRAIN_LABELS + ".gz"), training)
        write_idx(place / (TEST_LABELS + ".gz"), held_out)
    summary = loading.data_sets(Home(tmp_path))[name].preparation
    assert summary is not None
    assert list(summary.by_split().values()).count((0, 0)) == 8
    assert list(summary.by_split().values())[7] == (2, 1)


def test_an_unreadable_label_file_is_named(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(2))
    (folder / TRAIN_LABELS).write_bytes(b"\x00\x00\x08\x01\x00\x00\x00\x02\x01")
    with pytest.raises(
        DatasetError,
        match=r"is not a readable IDX label file .*declares 2 bytes of labels, but 1 follow",
    ):
        loading.availability("mnist")


@pytest.mark.parametrize(
    ("header", "reason", "advice"),
    [
        (b"\0\0\x0c\2", "its labels are 32-bit integers", "write the first ones alone, as bytes"),
        (b"\0\0\x08\2", "it has 2 dimensions", "write the first ones alone, as bytes"),
        (b"\0\0\x08\3", "it has 3 dimensions", "images and labels are not swapped"),
        (b"\0\0\x08\4", "it has 4 dimensions", "download it again"),
        (b"\0\0\x0c\1", "its labels are 32-bit integers", "write them as bytes from 0 to 255"),
    ],
)
def test_label_files_of_another_shape_are_refused_with_what_they_are(
    folder: Path, write_idx: WriteIdx, header: bytes, reason: str, advice: str
) -> None:
    """QMNIST stores eight 32-bit numbers for each image."""
    write_idx(folder / TRAIN, pictures(2))
    (folder / TRAIN_LABELS).write_bytes(header + bytes(40))
    with pytest.raises(DatasetError) as refused:
        loading.availability("mnist")
    assert reason in str(refused.value)
    assert advice in str(refused.value)
