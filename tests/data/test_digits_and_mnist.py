"""The training sets: what they hold, where they are looked for, and what is said when they cannot be had."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
import sklearn.datasets

from gan_runtime import catalog
from gan_runtime.data import digits, idx, keras_sets, loading, mnist
from gan_runtime.errors import DatasetError
from gan_runtime.home import REPOSITORY

WriteIdx = Callable[[Path, np.ndarray], Path]
TRAIN, TEST = "train-images-idx3-ubyte", "t10k-images-idx3-ubyte"
TRAIN_LABELS, TEST_LABELS = "train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """GAN_DATA_DIR: an empty folder, with no Keras cache beside it."""
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("GAN_DATA_DIR", str(path))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    return path


def pictures(count: int, side: int = 28) -> np.ndarray:
    """uint8 (count, side, side); picture i holds i·10 everywhere, and 255 in its first pixel."""
    images = np.repeat(np.arange(count, dtype=np.uint8) * 10, side * side).reshape(count, side, side)
    images[:, 0, 0] = 255
    return images


def noise(count: int) -> np.ndarray:
    """uint8 (count, 28, 28) that does not compress."""
    return np.random.default_rng(1).integers(0, 256, (count, 28, 28), dtype=np.uint8)


# ---- digits -----------------------------------------------------------------------------------------------------------------


def test_digits_are_1797_grey_images_over_the_whole_range() -> None:
    data = digits.load()
    assert data.resident["images"].shape == (1_797, 28, 28, 1)
    assert data.resident["images"].dtype == np.uint8
    assert (data.resident["images"].min(), data.resident["images"].max()) == (0, 255)
    assert 40 < data.resident["images"].mean() < 80
    assert (data.name, data.origin, data.note) == ("digits", "embedded in scikit-learn", "")


def test_digits_are_those_of_scikit_learn_enlarged() -> None:
    inner = (
        digits.load()
        .resident["images"][:, digits.MARGIN : -digits.MARGIN, digits.MARGIN : -digits.MARGIN, 0]
        .astype(np.float32)
    )
    made_small = (
        inner.reshape(-1, 8, 3, 8, 3).mean(axis=(2, 4)).reshape(-1, 64)
    )  # 24 pixels a side: three for each of the eight
    alike = [
        np.corrcoef(one, other)[0, 1]
        for one, other in zip(made_small, sklearn.datasets.load_digits().data, strict=True)
    ]
    assert min(alike) > 0.97


def test_digits_keep_a_black_margin_as_mnist_has() -> None:
    images = digits.load().resident["images"][..., 0]
    assert not images[:, :2].any()
    assert not images[:, -2:].any()
    assert not images[:, :, :2].any()
    assert not images[:, :, -2:].any()
    assert images[:, 2].any()


def test_digits_are_at_hand_without_reading_anything() -> None:
    known = loading.availability("digits")
    assert (known.ready, known.images) == (True, catalog.DATASETS["digits"].rows)


def test_digits_know_which_digit_each_picture_is() -> None:
    data = digits.load()
    assert np.array_equal(data.resident["labels"], sklearn.datasets.load_digits().target)
    assert data.fields["labels"].classes == tuple("0123456789")
    assert data.fields == catalog.DATASETS["digits"].fields


def test_all_digits_are_trained_on_so_the_held_out_ones_are_among_them() -> None:
    data = digits.load()
    assert (data.rows, data.held_out) == (1_797, 0)
    assert np.array_equal(data.read_held_out(5)["images"], data.resident["images"][:5])


def test_rows_are_read_by_their_numbers_in_the_order_asked_for() -> None:
    data = digits.load()
    rows = data.read(np.array([7, 3, 7]))
    assert list(rows) == ["images", "labels"]
    assert rows["labels"].tolist() == [7, 3, 7]
    assert np.array_equal(rows["images"], data.resident["images"][[7, 3, 7]])


# ---- IDX files --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [TRAIN, TRAIN + ".gz", "train-images.idx3-ubyte", "train-images.idx3-ubyte.gz"]
)
def test_idx_files_are_read_plain_and_compressed(folder: Path, write_idx: WriteIdx, name: str) -> None:
    path = write_idx(folder / name, pictures(3))
    data = loading.load("mnist")
    assert np.array_equal(data.resident["images"][..., 0], pictures(3))
    assert (data.name, data.origin, data.note) == ("mnist", str(path), "")
    known = loading.availability("mnist")
    assert (known.ready, known.images, known.origin) == (True, 3, str(path))


def test_only_test_files_are_used_and_said_so(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TEST, pictures(2))
    data = loading.load("mnist")
    assert len(data.resident["images"]) == 2
    assert data.note == f"{folder} has only the test files: training on these 10,000 images."
    assert loading.availability("mnist").note == data.note


def test_training_files_win_over_test_files(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TEST, pictures(2))
    write_idx(folder / (TRAIN + ".gz"), pictures(3))
    assert (len(loading.load("mnist").resident["images"]), loading.load("mnist").note) == (3, "")


def test_files_directly_in_the_folder_count_as_mnist_not_as_fashion(
    folder: Path, write_idx: WriteIdx
) -> None:
    write_idx(folder / TRAIN, pictures(3))
    assert loading.availability("mnist").images == 3
    with pytest.raises(DatasetError, match="no fashion_mnist images are there"):
        loading.availability("fashion_mnist")


def test_files_in_a_folder_called_fashion_count_as_fashion_only(
    tmp_path: Path, write_idx: WriteIdx, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "Fashion-MNIST"
    write_idx(root / TRAIN, pictures(3))
    monkeypatch.setenv("GAN_DATA_DIR", str(root))
    assert loading.availability("fashion_mnist").images == 3
    with pytest.raises(DatasetError, match="no mnist images are there"):
        loading.availability("mnist")


@pytest.mark.parametrize("own", ["fashion_mnist", "fashion-mnist"])
def test_a_folder_of_its_own_name_wins(folder: Path, write_idx: WriteIdx, own: str) -> None:
    write_idx(folder / TRAIN, pictures(3))
    write_idx(folder / own / TRAIN, pictures(4))
    assert loading.availability("fashion_mnist").images == 4
    assert loading.availability("mnist").images == 3


# ---- labels and held-out images ----------------------------------------------------------------------------------------------


def test_label_files_beside_the_images_give_labels(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(3))
    write_idx(folder / (TRAIN_LABELS + ".gz"), np.array([9, 0, 4]))
    data = loading.load("mnist")
    assert data.resident["labels"].tolist() == [9, 0, 4]
    assert data.fields == mnist.fields("mnist") == catalog.DATASETS["mnist"].fields


def test_images_without_labels_offer_none(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(3))
    assert list(loading.load("mnist").fields) == list(mnist.fields("mnist")) == ["images"]


def test_the_test_images_are_held_out(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(3))
    write_idx(folder / TEST, pictures(5)[3:])
    data = loading.load("mnist")
    assert (data.rows, data.held_out) == (3, 2)
    assert np.array_equal(data.read_held_out(9)["images"][..., 0], pictures(5)[3:])


def test_test_images_without_the_labels_that_the_others_have_are_left_out(
    folder: Path, write_idx: WriteIdx
) -> None:
    write_idx(folder / TRAIN, pictures(3))
    write_idx(folder / TRAIN_LABELS, np.array([9, 0, 4]))
    write_idx(folder / TEST, pictures(2))
    assert loading.load("mnist").held_out == 0
    write_idx(folder / TEST_LABELS, np.array([1, 2]))
    assert loading.load("mnist").read_held_out(2)["labels"].tolist() == [1, 2]


def test_labels_of_other_images_are_refused(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(3))
    path = write_idx(folder / TRAIN_LABELS, np.array([1, 2]))
    for look in (loading.availability, loading.load):
        with pytest.raises(DatasetError) as refused:
            look("mnist")
        assert str(refused.value) == (
            f"{path} holds 2 labels, but {TRAIN} beside it 3 images: use the original files."
        )


def test_a_label_of_no_class_is_refused(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(2))
    write_idx(folder / TRAIN_LABELS, np.array([1, 10]))
    with pytest.raises(DatasetError, match="holds the label 10, but allowed is 0 to 9"):
        loading.load("mnist")


def test_a_label_file_that_is_none_is_named(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(2))
    (folder / TRAIN_LABELS).write_bytes(b"\x00\x00\x08\x01\x00\x00\x00\x02\x01")
    with pytest.raises(
        DatasetError, match=r"is not a readable IDX label file .*promises 2 bytes of labels, but 1 follow"
    ):
        loading.availability("mnist")


# ---- what is wrong with a file or a folder ----------------------------------------------------------------------------------


def test_a_file_with_another_header_is_refused(folder: Path, write_idx: WriteIdx) -> None:
    path = write_idx(folder / TRAIN, pictures(3))
    path.write_bytes(b"\x00\x00\x0d\x03" + path.read_bytes()[4:])
    with pytest.raises(DatasetError) as refused:
        loading.availability("mnist")
    assert str(refused.value) == (
        f"{path} is not a readable IDX image file (it does not start like an IDX file of images): "
        "download it again, or point GAN_DATA_DIR elsewhere."
    )


def test_a_file_cut_within_its_header_is_refused(folder: Path, write_idx: WriteIdx) -> None:
    path = write_idx(folder / TRAIN, pictures(3))
    path.write_bytes(path.read_bytes()[:10])
    with pytest.raises(DatasetError, match="it holds only 10 bytes"):
        loading.availability("mnist")


@pytest.mark.parametrize("missing", [-1, 1])
def test_a_file_with_too_few_or_too_many_bytes_is_refused(
    folder: Path, write_idx: WriteIdx, missing: int
) -> None:
    path = write_idx(folder / TRAIN, pictures(3))
    content = path.read_bytes()
    path.write_bytes(content[:-1] if missing == 1 else content + b"\x00")
    with pytest.raises(
        DatasetError, match=f"its header promises 2352 bytes of pixels, but {2352 - missing} follow"
    ):
        loading.load("mnist")


@pytest.mark.parametrize("kept", [5, 20, 1_000])
def test_a_compressed_file_cut_short_is_refused(folder: Path, write_idx: WriteIdx, kept: int) -> None:
    path = write_idx(folder / (TRAIN + ".gz"), noise(3))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DatasetError, match="is not a readable IDX image file"):
        loading.load("mnist")


def test_a_damaged_compressed_file_is_refused(folder: Path, write_idx: WriteIdx) -> None:
    path = write_idx(folder / (TRAIN + ".gz"), noise(3))
    content = bytearray(path.read_bytes())
    content[1000:1010] = bytes(byte ^ 255 for byte in content[1000:1010])
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="is not a readable IDX image file"):
        loading.load("mnist")


def test_a_file_that_only_claims_to_be_compressed_is_refused(folder: Path) -> None:
    (folder / (TRAIN + ".gz")).write_bytes(b"<html>404</html>")
    with pytest.raises(DatasetError, match="is not a readable IDX image file"):
        loading.availability("mnist")


@pytest.mark.parametrize("name", [TRAIN, TRAIN + ".gz"])
@pytest.mark.parametrize("damage", ["short", "long", "wrong count"])
def test_what_is_wrong_with_a_file_is_found_before_a_run_is_queued(
    folder: Path, name: str, damage: str
) -> None:
    count, pixels = {"short": (3, 3 * 784 - 1), "long": (3, 3 * 784 + 1), "wrong count": (4, 3 * 784)}[damage]
    content = struct.pack(">HBB3I", 0, 8, 3, count, 28, 28) + bytes(pixels)
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    for look in (loading.availability, loading.load):
        with pytest.raises(
            DatasetError, match=rf"its header promises {count * 784} bytes of pixels, but (more|\d+) follow"
        ):
            look("mnist")


def test_a_damaged_compressed_file_is_found_before_a_run_is_queued(folder: Path, write_idx: WriteIdx) -> None:
    path = write_idx(folder / (TRAIN + ".gz"), noise(3))
    content = bytearray(path.read_bytes())
    content[1000:1010] = bytes(byte ^ 255 for byte in content[1000:1010])
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="is not a readable IDX image file"):
        loading.availability("mnist")


def test_a_file_that_grows_without_end_is_read_no_further_than_its_header_promises(folder: Path) -> None:
    header = struct.pack(">HBB3I", 0, 8, 3, 2, 28, 28)
    (folder / (TRAIN + ".gz")).write_bytes(gzip.compress(header + bytes(300_000_000), 1))
    tracemalloc.start()
    with pytest.raises(DatasetError, match="its header promises 1568 bytes of pixels, but more follow"):
        loading.load("mnist")
    with pytest.raises(DatasetError, match="its header promises 1568 bytes of pixels, but more follow"):
        loading.availability("mnist")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_a_sparse_file_of_many_gigabytes_is_refused_unread(folder: Path) -> None:
    with (folder / TRAIN).open("wb") as file:
        file.write(struct.pack(">HBB3I", 0, 8, 3, 25_000_000, 28, 28))
        file.truncate(16 + 25_000_000 * 784)
    for look in (loading.availability, loading.load):
        with pytest.raises(
            DatasetError, match="its header promises 20 GB of pixels, more than fit into memory"
        ):
            look("mnist")


def test_a_file_that_changes_is_looked_at_again(folder: Path, write_idx: WriteIdx) -> None:
    path = write_idx(folder / TRAIN, pictures(3))
    assert loading.availability("mnist").images == 3
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DatasetError, match="but 2351 follow"):
        loading.availability("mnist")


@pytest.mark.parametrize("given", ["~nosuch-user", "/tmp/" + "x" * 300])
def test_a_data_folder_that_no_folder_can_be_is_named(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("GAN_DATA_DIR", given)
    with pytest.raises(DatasetError) as refused:
        loading.availability("mnist")
    assert str(refused.value) == (
        f"GAN_DATA_DIR is '{given[:80]}', which is not a folder: set it to a folder of IDX files, or unset it."
    )


def test_images_of_another_size_are_refused(folder: Path, write_idx: WriteIdx) -> None:
    path = write_idx(folder / TRAIN, pictures(3, side=32))
    with pytest.raises(DatasetError) as refused:
        loading.load("mnist")
    assert str(refused.value) == (
        f"{path} holds 3 images of 32 × 32 pixels, but 28 × 28 is needed: use the original files."
    )


def test_a_file_without_images_is_refused(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(0))
    with pytest.raises(DatasetError, match="holds 0 images"):
        loading.availability("mnist")


def test_a_missing_file_is_no_readable_idx_file(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="No such file or directory"):
        idx.read(tmp_path / "none")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path / "none"))
    with pytest.raises(DatasetError) as refused:
        loading.load("mnist")
    assert str(refused.value) == (
        f"GAN_DATA_DIR is '{tmp_path / 'none'}', which is not a folder: set it to a folder of IDX files, or unset it."
    )


def test_an_empty_folder_says_which_file_belongs_where(folder: Path) -> None:
    with pytest.raises(DatasetError) as refused:
        loading.load("mnist")
    assert str(refused.value) == (
        f"GAN_DATA_DIR is '{folder}', but no mnist images are there: put train-images-idx3-ubyte (.gz or not) into "
        f"{folder / 'mnist'}, or unset GAN_DATA_DIR to use Keras' cache or its download."
    )


# ---- Keras' cache and download ----------------------------------------------------------------------------------------------


def test_keras_cache_is_found_without_loading_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAN_DATA_DIR", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    assert not loading.availability("mnist").ready
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "mnist.npz").touch()
    known = loading.availability("mnist")
    assert (known.ready, known.images) == (True, 60_000)
    assert not loading.availability("fashion_mnist").ready


@pytest.mark.usefixtures("alone")
def test_images_in_keras_cache_are_loaded(tmp_path: Path, write_idx: WriteIdx) -> None:
    """In a child, because Keras fixes its home folder when it is imported; Fashion-MNIST, whose files carry
    no checksum.
    """
    cache = tmp_path / ".keras" / "datasets" / "fashion-mnist"
    for images in (TRAIN, TEST):
        write_idx(cache / f"{images}.gz", pictures(3))
        labels = cache / f"{images.replace('images-idx3', 'labels-idx1')}.gz"
        labels.write_bytes(gzip.compress(b"\x00\x00\x08\x01" + b"\x00\x00\x00\x03" + b"\x00" * 3))
    code = (
        "from gan_runtime.data import loading; data = loading.load('fashion_mnist');"
        "images = data.resident['images']; "
        "print(images.shape, images.dtype, images[2, 1, 0, 0], data.held_out, len(data.fields), data.origin)"
    )
    child = _child(["-c", code])
    assert child.stdout.splitlines()[-1:] == ["(3, 28, 28, 1) uint8 20 3 2 Keras' cache"], child.stderr


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
@pytest.mark.usefixtures("alone")
def test_without_network_the_three_ways_to_get_the_images_are_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError) as refused:
        keras_sets.prepare(name, lambda *_: None)
    sentence = str(refused.value)
    assert sentence.startswith(f"{name} is not on this machine and Keras could not download it (")
    assert sentence.endswith(
        "): connect to the network, or set GAN_DATA_DIR to a folder with its IDX files, "
        "or put Keras' own copy into ~/.keras/datasets; dataset digits needs none of this."
    )
    assert not list((tmp_path / ".keras" / "datasets").iterdir())


@pytest.mark.usefixtures("alone")
def test_a_cancelled_download_leaves_nothing_and_no_process(tmp_path: Path) -> None:
    class CancelledError(Exception):
        """What a caller raises to cancel."""

    def progress(*_: object) -> None:
        raise CancelledError

    before = set(psutil.Process().children())  # of other tests of this process, such as a browser
    with pytest.raises(CancelledError):
        keras_sets.prepare("mnist", progress)
    assert not list((tmp_path / ".keras" / "datasets").iterdir())
    assert set(psutil.Process().children()) <= before


@pytest.mark.usefixtures("alone")
def test_what_was_downloaded_as_a_whole_gets_into_the_cache(
    tmp_path: Path, write_idx: WriteIdx, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(_name: str, aside: Path, _progress: object) -> None:
        write_idx(aside / "datasets" / "fashion-mnist" / f"{TRAIN}.gz", pictures(3))

    monkeypatch.setattr(keras_sets, "_download", download)
    assert not loading.availability("fashion_mnist").ready
    keras_sets.prepare("fashion_mnist", lambda *_: None)
    assert loading.availability("fashion_mnist").ready
    assert [path.name for path in (tmp_path / ".keras" / "datasets").iterdir()] == ["fashion-mnist"]


@pytest.mark.usefixtures("alone")
def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / ".keras").write_text("a file")
    with pytest.raises(
        DatasetError, match=r"mnist cannot be put into Keras' cache \(.+datasets: Not a directory\)"
    ):
        keras_sets.prepare("mnist", lambda *_: None)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty home folder, no folder of data, and no way to the network."""
    for name in ("GAN_DATA_DIR", "KERAS_HOME", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path))


def _child(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
