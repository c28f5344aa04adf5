"""IDX files, the format of MNIST, and the folder GAN_DATA_DIR that may contain them.

A file is a big-endian header and bytes. The header: two zero bytes, the type, the number of
dimensions, the size of each. Source: LeCun's MNIST page. Only unsigned bytes (type 8) are read: in
three dimensions images, in one labels; plain or gzip, by the contents, since browsers unpack files
without changing their names.

A folder `GAN_DATA_DIR/<data set>` takes precedence over files directly in GAN_DATA_DIR. Several
sets use the same file names, so a set is recognized by the digests of the published files, else by
the names of the folders around them; without either, files directly in GAN_DATA_DIR count as MNIST.
A folder that has only the t10k files gives the 10,000 test images to train on, with a note. Label
files are next to the images; images without them make a set without labels.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base import formats
from gan_runtime.base.errors import QUOTED_CHARACTERS, DatasetError, quoted
from gan_runtime.base.fields import IMAGES, LABELS
from gan_runtime.data import image_files
from gan_runtime.data.contract import Arrays

DATA_VARIABLE = "GAN_DATA_DIR"
TRAINING, HELD_OUT = "train", "t10k"  # prefixes of the file names
ENDINGS = ("-{}-ubyte", "-{}-ubyte.gz", ".{}-ubyte", ".{}-ubyte.gz")
SIDE = 28

UNSIGNED_BYTE = 8
TYPES = {
    0x09: "signed bytes",
    0x0B: "16-bit integers",
    0x0C: "32-bit integers",
    0x0D: "32-bit floats",
    0x0E: "64-bit floats",
}
GZIP = b"\x1f\x8b"
DOWNLOAD_AGAIN = "download it again, or set GAN_DATA_DIR to another folder"
FIRST_COLUMN = (
    "it has several numbers for each image, as in QMNIST: write the first ones alone, as bytes"
    f" (type {UNSIGNED_BYTE})"
)
# MD5 of the published image files → the set. Source: torchvision/datasets/mnist.py
PUBLISHED = {
    "f68b3c2dcbeaaa9fbdd348bbdeb94873": "mnist",  # train
    "9fb629c4189551a2d022fa330f9573f3": "mnist",  # t10k
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d": "fashion_mnist",
    "bef4ecab320f06d8554ea6380940ec79": "fashion_mnist",
    "bdb82020997e1d708af4cf47b453dcf7": "KMNIST",
    "5c965bf0a639b31b8f53240b1b52f4d7": "KMNIST",
    "ed72d4157d28c017586c42bc6afe6370": "QMNIST",
    "1394631089c404de565df7b7aeaf9412": "QMNIST",
}
FOLDER_NAMES = (  # of a set; the first that is found in the name of a folder
    (re.compile(r"fashion[ _-]?mnist"), "fashion_mnist"),
    (re.compile(r"(?<![a-z])k[ _-]?mnist|kuzushiji"), "KMNIST"),
    (re.compile(r"(?<![a-z])e[ _-]?mnist"), "EMNIST"),
    (re.compile(r"(?<![a-z])q[ _-]?mnist"), "QMNIST"),
    (re.compile(r"(?<![a-z])not[ _-]?mnist"), "notMNIST"),
    (re.compile(r"(?<![a-z])mnist"), "mnist"),
)
MAX_BYTES = 2_000_000_000  # of values; MNIST has 47 MB
CHUNK_BYTES = 1_000_000


@dataclass(frozen=True)
class Kind:
    """Images or labels: `of`, their dimensions, and the name of their bytes."""

    of: str
    dimensions: int
    bytes_of: str

    @property
    def header(self) -> struct.Struct:
        """Two zero bytes, the type, the number of dimensions, the size of each."""
        return struct.Struct(f">HBB{self.dimensions}I")


IMAGE_KIND = Kind("images", 3, "pixels")
LABEL_KIND = Kind("labels", 1, "labels")


def read_shape(path: Path, kind: Kind = IMAGE_KIND) -> tuple[int, ...]:
    """(images, height, width), or (labels,), from the header. Raises DatasetError for any other
    file.
    """
    with _readable_errors(path, kind), _open_idx(path) as file:
        return _shape(path, kind, file)


def read(path: Path, kind: Kind = IMAGE_KIND) -> NDArray[np.uint8]:
    """uint8 (images, height, width), or (labels,).

    Raises DatasetError when the file is damaged, incomplete or too long.
    """
    with _readable_errors(path, kind), _open_idx(path) as file:
        shape = _shape(path, kind, file)
        expected = int(np.prod(shape))
        data = file.read(expected + 1)  # a compressed file can expand to more
    if len(data) != expected:
        raise _wrong_length(path, kind, expected, len(data))
    return np.frombuffer(data, np.uint8).reshape(shape)


def check(path: Path, kind: Kind = IMAGE_KIND) -> None:
    """Checks that the header declares the number of bytes, and unpacks a compressed file to count.

    Caches the result until the file changes, since a form asks at each key press.

    Raises:
        DatasetError: the number differs, or a compressed file is damaged.
    """
    with _readable_errors(path, kind):
        status = path.stat()
    _checked(path, kind, status.st_mtime_ns, status.st_size)


def counts(path: Path) -> tuple[int, ...]:
    """The count of each label from 0 to the largest one, cached until the file changes. Raises as
    `read`.
    """
    with _readable_errors(path, LABEL_KIND):
        status = path.stat()
    return _counted(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _counted(path: Path, _changed_ns: int, _size: int) -> tuple[int, ...]:
    return tuple(np.bincount(read(path, LABEL_KIND)).tolist())


@lru_cache(maxsize=16)
def _checked(path: Path, kind: Kind, _changed_ns: int, size: int) -> None:
    with _readable_errors(path, kind), _open_idx(path) as file:
        expected = int(np.prod(_shape(path, kind, file)))
        if isinstance(file, gzip.GzipFile):
            follow = 0
            while follow <= expected and (chunk := file.read(CHUNK_BYTES)):
                follow += len(chunk)
        else:
            follow = size - kind.header.size
    if follow != expected:
        raise _wrong_length(path, kind, expected, follow)


@contextlib.contextmanager
def _readable_errors(path: Path, kind: Kind) -> Iterator[None]:
    """Raises DatasetError, with cause and advice, for an error of the file in the block."""
    try:
        yield
    except EOFError:
        raise _unreadable(path, kind, "it is incomplete, as after a broken download") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _unreadable(path, kind, f"its compression is damaged: {error}") from None
    except OSError as error:
        advice = (
            "give this user read permission"
            if isinstance(error, PermissionError)
            else DOWNLOAD_AGAIN
        )
        raise _unreadable(path, kind, error.strerror or str(error), advice) from None


def _open_idx(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        is_packed = file.read(len(GZIP)) == GZIP
    return cast(BinaryIO, gzip.open(path) if is_packed else path.open("rb"))


def _shape(path: Path, kind: Kind, file: BinaryIO) -> tuple[int, ...]:
    header = file.read(kind.header.size)
    zero, number, dimensions = struct.unpack_from(">HBB", header.ljust(4, b"\xff"))
    if zero:
        file.seek(0)
        its_kind = image_files.kind_of(file)
        reason = f"it is {its_kind}" if its_kind else "it has no IDX header"
        raise _unreadable(path, kind, reason if header else "it is empty", _kind_advice(its_kind))
    has_columns = kind == LABEL_KIND and dimensions == 2  # as in QMNIST
    if number in TYPES:
        reason = f"its {kind.bytes_of} are {TYPES[number]}, but unsigned bytes are needed"
        advice = f"write them as bytes from 0 to 255 (type {UNSIGNED_BYTE})"
        raise _unreadable(path, kind, reason, FIRST_COLUMN if has_columns else advice)
    if number != UNSIGNED_BYTE:
        raise _unreadable(path, kind, "it has no IDX header")
    if dimensions != kind.dimensions:
        reason = f"it has {dimensions} dimensions, but {kind.of} have {kind.dimensions}"
        other = IMAGE_KIND if kind == LABEL_KIND else LABEL_KIND
        swapped = "check that the names of images and labels are not swapped"
        advice = swapped if dimensions == other.dimensions else DOWNLOAD_AGAIN
        raise _unreadable(path, kind, reason, FIRST_COLUMN if has_columns else advice)
    if len(header) < kind.header.size:
        raise _unreadable(path, kind, f"it has only {len(header)} bytes")
    shape = kind.header.unpack(header)[3:]
    size = int(np.prod(shape, dtype=object))
    if size > MAX_BYTES:
        problem = (
            f"its header declares {formats.size(size)} of {kind.bytes_of}, more than memory holds"
        )
        raise _unreadable(path, kind, problem)
    return shape


def _kind_advice(its_kind: str) -> str:
    """The advice about a file of another kind."""
    if image_files.holds_files(its_kind):
        return "unpack it, so that the IDX file has this name"
    if its_kind == image_files.WEB_PAGE:
        return "the link led to a web page, so download the file itself"
    return DOWNLOAD_AGAIN


def _wrong_length(path: Path, kind: Kind, expected: int, follow: int) -> DatasetError:
    is_long = follow > expected  # a longer file is not read to its end
    reason = (
        f"its header declares {expected} bytes of {kind.bytes_of}, but"
        f" {'more' if is_long else follow} follow"
    )
    return _unreadable(path, kind, reason, "use the original file" if is_long else DOWNLOAD_AGAIN)


def _unreadable(path: Path, kind: Kind, reason: str, advice: str = DOWNLOAD_AGAIN) -> DatasetError:
    return DatasetError(
        f"{path} is not a readable IDX {kind.of.removesuffix('s')} file ({reason}): {advice}."
    )


@dataclass(frozen=True)
class ImagePart:
    """The files of the training or the test images; `labels`: None without a label file."""

    images: Path
    labels: Path | None

    @classmethod
    def of(cls, folder: Path, part: str) -> ImagePart | None:
        """`part`: TRAINING or HELD_OUT. None without images."""
        images = _first_file(folder, f"{part}-images", "idx3")
        return cls(images, _first_file(folder, f"{part}-labels", "idx1")) if images else None

    def check(self, classes: int) -> int:
        """The number of images.

        Raises DatasetError: a file is damaged, labels and images differ in number, or a label is no
        class.
        """
        count, height, width = read_shape(self.images)
        if (height, width) != (SIDE, SIDE) or count == 0:
            raise DatasetError(
                f"{self.images} has {count} images of {height} × {width} pixels, but {SIDE} ×"
                f" {SIDE} is needed: use the original files."
            )
        check(self.images)
        if self.labels:
            check(self.labels, LABEL_KIND)
            (labels,) = read_shape(self.labels, LABEL_KIND)
            if labels != count:
                raise DatasetError(
                    f"{self.labels} has {labels} labels, but {self.images.name} next to it has"
                    f" {count} images: use the original files."
                )
            _check_labels(self.labels, classes)
        return count

    def read(self, classes: int) -> Arrays:
        """The rows by field. Raises DatasetError as `check`."""
        self.check(classes)
        images = {IMAGES: read(self.images)[..., None]}
        if self.labels is None:
            return images
        return {**images, LABELS: read(self.labels, LABEL_KIND).astype(np.int32)}


@dataclass(frozen=True)
class FolderFiles:
    """The files of a set in GAN_DATA_DIR."""

    training: ImagePart
    held_out: ImagePart | None
    note: str = ""

    @property
    def origin(self) -> str:
        """The file of the images."""
        return str(self.training.images)


def _check_labels(path: Path, classes: int) -> None:
    """Raises DatasetError if a label is no class, as for sets of letters."""
    largest = len(counts(path)) - 1
    if largest >= classes:
        raise DatasetError(
            f"{path} has the label {largest}, but allowed are 0 to {classes - 1}: use the original"
            " files. For other characters, such as those of EMNIST, put images into a folder for"
            " each class and run `data prepare pictures`."
        )


def find(name: str) -> FolderFiles | None:
    """The files of data set `name`; None where GAN_DATA_DIR is not set.

    Raises DatasetError: the folder cannot be read, or has no such images, or those of another set.
    """
    setting = os.environ.get(DATA_VARIABLE)
    if not setting:
        return None
    root = data_folder(setting)
    for folder in (root / name, root / name.replace("_", "-"), root):
        files = _files_in(folder, setting)
        if files is None:
            continue
        other, reason = _set_of(files.training.images, folder)
        if other == name or (not other and (folder != root or name == "mnist")):
            return files
        if name == "mnist" or folder != root:
            raise _other_set(name, folder, other, reason)
    raise DatasetError(
        f"{DATA_VARIABLE} is {setting!r}, but has no {name} images: put train-images-idx3-ubyte"
        f" (.gz or not) into {root / name}, or unset {DATA_VARIABLE} to use Keras' cache or"
        " download."
    )


def _files_in(folder: Path, setting: str) -> FolderFiles | None:
    """The files of any set; None without images. Raises DatasetError as `find`."""
    try:
        training, held_out = ImagePart.of(folder, TRAINING), ImagePart.of(folder, HELD_OUT)
    except OSError as error:
        raise DatasetError(
            f"{DATA_VARIABLE} is {setting!r}, but {folder} cannot be read ({error.strerror}):"
            f" give this user read permission, or unset {DATA_VARIABLE}."
        ) from None
    if training:
        return FolderFiles(training, held_out)
    if held_out:
        note = f"{folder} has only the test files: runs train on these 10,000 images."
        return FolderFiles(held_out, None, note)
    return None


def _set_of(images: Path, folder: Path) -> tuple[str, str]:
    """The set of a file of images, and how it is recognized; empty for an unknown one."""
    with _readable_errors(images, IMAGE_KIND):
        status = images.stat()
        published = PUBLISHED.get(_md5(images, status.st_mtime_ns, status.st_size))
    if published:
        return published, f"{images.name} is the published file of it"
    if "fashion" in folder.name.lower():
        return "fashion_mnist", f"its folder is {quoted(folder.name)}"
    for part in reversed(folder.resolve().parts):
        for pattern, name in FOLDER_NAMES:
            if pattern.search(part.lower()):
                return name, f"it is in a folder {quoted(part)}"
    return "", ""


@lru_cache(maxsize=16)
def _md5(path: Path, _changed_ns: int, _size: int) -> str:
    """In hexadecimal; empty for a file that is not compressed, as all published ones are."""
    with path.open("rb") as file:
        if file.read(len(GZIP)) != GZIP:
            return ""
        file.seek(0)
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _other_set(name: str, folder: Path, other: str, reason: str) -> DatasetError:
    """The error for files of another set."""
    advice = (
        f"use dataset={other}"
        if other in ("mnist", "fashion_mnist")
        else "put its images into a folder for each class and run `data prepare pictures`"
    )
    place = folder if folder.name == name else folder / name
    return DatasetError(
        f"{folder} has images of {other}, not of {name}, since {reason}: {advice}, or put the files"
        f" of {name} into {place}."
    )


def _first_file(folder: Path, stem: str, kind: str) -> Path | None:
    """Finds a file by its stem. Kaggle puts each file into a folder of that name, and some programs
    append ?download=1.
    """
    names = [f"{stem}{ending.format(kind)}" for ending in ENDINGS]
    paths = (
        folder / place for name in names for place in (name, f"{name}/{name}", f"{name}?download=1")
    )
    return next((path for path in paths if path.is_file()), None)


def data_folder(setting: str) -> Path:
    """The folder that GAN_DATA_DIR names.

    Raises DatasetError: it is no folder, or cannot be read.
    """
    try:
        root = Path(setting).expanduser()
        if root.is_dir():
            return root
    except PermissionError as error:
        raise DatasetError(
            f"{DATA_VARIABLE} is {quoted(setting)}, which cannot be read ({error.strerror}): give"
            f" this user read permission, or unset {DATA_VARIABLE}."
        ) from None
    except (OSError, RuntimeError, ValueError):  # a name too long, or an unknown ~user
        setting = setting[:QUOTED_CHARACTERS]
    raise DatasetError(
        f"{DATA_VARIABLE} is {setting!r}, which is not a folder: set it to a folder of IDX files,"
        " or unset it."
    )
