"""Errors in IDX files and their folder name the path, before a run is queued."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import idx_files, loading
from tests.data.idx_files import TRAIN, WriteIdx, noise, pictures


def test_a_file_with_a_wrong_header_is_refused(folder: Path, write_idx: WriteIdx) -> None:
    path = write_idx(folder / TRAIN, pictures(3))
    path.write_bytes(b"\x00\x00\x07\x03" + path.read_bytes()[4:])
    with pytest.raises(DatasetError) as refused:
        loading.availability("mnist")
    assert (
        str(refused.value)
        == f"{path} is not a readable IDX image file (it has no IDX header): download it again, or"
        " set GAN_DATA_DIR to another folder."
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b"\0\0\x0e\3" + bytes(12),
            r"its pixels are 64-bit floats, .* write them as bytes from 0 to 255",
        ),
        (b"\0\0\x0b\3" + bytes(12), "its pixels are 16-bit integers"),
        (
            b"\0\0\x08\1" + bytes(12),
            r"it has 1 dimensions, but images have 3\): check that the names of images and labels",
        ),
        (b"PK\3\4" + bytes(40), r"it is a zip file\): unpack it"),
        (b"BZh9" + bytes(40), r"it is packed with bzip2\): unpack it"),
        (
            b"\n<!DOCTYPE html><title>Sign in</title>",
            r"it is a web page\): the link led to a web page",
        ),
        (b"", r"it is empty\): download it again"),
    ],
    ids=["floats", "integers", "labels", "zip", "bzip2", "web page", "empty"],
)
@pytest.mark.parametrize("name", [TRAIN, TRAIN + ".gz"])
def test_a_file_of_another_format_is_identified(
    folder: Path, name: str, content: bytes, sentence: str
) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(DatasetError, match=sentence):
        loading.availability("mnist")


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize(
    "name", ["train-images.idx3-ubyte", TRAIN + ".gz", TRAIN + ".gz?download=1"]
)
def test_compression_is_detected_from_the_contents(
    folder: Path, name: str, is_packed: bool
) -> None:
    """Browsers unpack what they download but keep the name; other programs compress it, or keep the
    end of the URL.
    """
    content = struct.pack(">HBB3I", 0, 8, 3, 5, 28, 28) + pictures(5).tobytes()
    (folder / name).write_bytes(gzip.compress(content) if is_packed else content)
    assert loading.availability("mnist").images == 5
    assert (loading.load("mnist").resident["images"][..., 0] == pictures(5)).all()


def test_a_file_truncated_in_its_header_is_refused(folder: Path, write_idx: WriteIdx) -> None:
    path = write_idx(folder / TRAIN, pictures(3))
    path.write_bytes(path.read_bytes()[:10])
    with pytest.raises(DatasetError, match="it has only 10 bytes"):
        loading.availability("mnist")


@pytest.mark.parametrize("missing", [-1, 1])
def test_a_file_with_too_few_or_too_many_bytes_is_refused(
    folder: Path, write_idx: WriteIdx, missing: int
) -> None:
    path = write_idx(folder / TRAIN, pictures(3))
    content = path.read_bytes()
    path.write_bytes(content[:-1] if missing == 1 else content + b"\x00")
    with pytest.raises(
        DatasetError,
        match=(
            f"its header declares 2352 bytes of pixels, but {'more' if missing < 0 else 2351}"
            " follow"
        ),
    ):
        loading.load("mnist")


@pytest.mark.parametrize("size", [5, 20, 1_000])
def test_a_truncated_compressed_file_is_refused(
    folder: Path, write_idx: WriteIdx, size: int
) -> None:
    path = write_idx(folder / (TRAIN + ".gz"), noise(3))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DatasetError, match="is not a readable IDX image file"):
        loading.load("mnist")


@pytest.mark.parametrize("look", [loading.availability, loading.load])
def test_a_damaged_compressed_file_is_refused_before_queuing_and_on_load(
    folder: Path, write_idx: WriteIdx, look: Callable[[str], object]
) -> None:
    path = write_idx(folder / (TRAIN + ".gz"), noise(3))
    content = bytearray(path.read_bytes())
    content[1000:1010] = bytes(byte ^ 255 for byte in content[1000:1010])
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="is not a readable IDX image file"):
        look("mnist")


def test_a_file_that_only_claims_to_be_compressed_is_refused(folder: Path) -> None:
    (folder / (TRAIN + ".gz")).write_bytes(b"<html>404</html>")
    with pytest.raises(DatasetError, match="is not a readable IDX image file"):
        loading.availability("mnist")


@pytest.mark.parametrize("name", [TRAIN, TRAIN + ".gz"])
@pytest.mark.parametrize("damage", ["short", "long", "wrong count"])
def test_file_errors_are_detected_before_a_run_is_queued(
    folder: Path, name: str, damage: str
) -> None:
    count, pixels = {
        "short": (3, 3 * 784 - 1),
        "long": (3, 3 * 784 + 1),
        "wrong count": (4, 3 * 784),
    }[damage]
    content = struct.pack(">HBB3I", 0, 8, 3, count, 28, 28) + bytes(pixels)
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    for look in (loading.availability, loading.load):
        with pytest.raises(
            DatasetError,
            match=rf"its header declares {count * 784} bytes of pixels, but (more|\d+) follow",
        ):
            look("mnist")


def test_a_file_is_read_no_further_than_its_header_declares(
    folder: Path,
) -> None:
    header = struct.pack(">HBB3I", 0, 8, 3, 2, 28, 28)
    (folder / (TRAIN + ".gz")).write_bytes(gzip.compress(header + bytes(300_000_000), 1))
    tracemalloc.start()
    with pytest.raises(
        DatasetError, match="its header declares 1568 bytes of pixels, but more follow"
    ):
        loading.load("mnist")
    with pytest.raises(
        DatasetError, match="its header declares 1568 bytes of pixels, but more follow"
    ):
        loading.availability("mnist")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_a_huge_sparse_file_is_refused_unread(folder: Path) -> None:
    with (folder / TRAIN).open("wb") as file:
        file.write(struct.pack(">HBB3I", 0, 8, 3, 25_000_000, 28, 28))
        file.truncate(16 + 25_000_000 * 784)
    for look in (loading.availability, loading.load):
        with pytest.raises(
            DatasetError, match=r"its header declares 19\.6 GB of pixels, more than memory holds"
        ):
            look("mnist")


def test_a_changed_file_is_read_again(folder: Path, write_idx: WriteIdx) -> None:
    path = write_idx(folder / TRAIN, pictures(3))
    assert loading.availability("mnist").images == 3
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DatasetError, match="but 2351 follow"):
        loading.availability("mnist")


@pytest.mark.parametrize("folder_name", ["~nosuch-user", "/tmp/" + "x" * 300])
def test_an_impossible_data_folder_is_named_in_the_error(
    monkeypatch: pytest.MonkeyPatch, folder_name: str
) -> None:
    monkeypatch.setenv("GAN_DATA_DIR", folder_name)
    with pytest.raises(DatasetError) as refused:
        loading.availability("mnist")
    assert (
        str(refused.value)
        == f"GAN_DATA_DIR is '{folder_name[:80]}', which is not a folder: set it to a folder of IDX"
        " files, or unset it."
    )


def test_images_of_the_wrong_size_are_refused(folder: Path, write_idx: WriteIdx) -> None:
    path = write_idx(folder / TRAIN, pictures(3, side=32))
    with pytest.raises(DatasetError) as refused:
        loading.load("mnist")
    assert (
        str(refused.value)
        == f"{path} has 3 images of 32 × 32 pixels, but 28 × 28 is needed: use the original files."
    )


def test_a_file_without_images_is_refused(folder: Path, write_idx: WriteIdx) -> None:
    write_idx(folder / TRAIN, pictures(0))
    with pytest.raises(DatasetError, match="has 0 images"):
        loading.availability("mnist")


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="No such file or directory"):
        idx_files.read(tmp_path / "none")


def test_a_missing_data_folder_is_named_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path / "none"))
    with pytest.raises(DatasetError) as refused:
        loading.load("mnist")
    assert (
        str(refused.value)
        == f"GAN_DATA_DIR is '{tmp_path / 'none'}', which is not a folder: set it to a folder of"
        " IDX files, or unset it."
    )


def test_an_empty_data_folder_error_names_the_expected_file(folder: Path) -> None:
    with pytest.raises(DatasetError) as refused:
        loading.load("mnist")
    assert (
        str(refused.value)
        == f"GAN_DATA_DIR is '{folder}', but has no mnist images: put train-images-idx3-ubyte (.gz"
        f" or not) into {folder / 'mnist'}, or unset GAN_DATA_DIR to use Keras' cache or"
        " download."
    )
