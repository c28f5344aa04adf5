"""IDX files, the format of MNIST: a big-endian header, then bytes.

The header: two zero bytes, the type, the number of dimensions, the size of each.

Source: LeCun's MNIST page. Only unsigned bytes (type 8) are read: in three dimensions images, in
one labels; plain or gzip, which the contents say, whatever the name ends in: browsers unpack files
and leave their names.
"""

from __future__ import annotations

import contextlib
import gzip
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import picture_files

UNSIGNED_BYTE = 8
TYPES = {
    0x09: "signed bytes",
    0x0B: "16-bit integers",
    0x0C: "32-bit integers",
    0x0D: "32-bit floats",
    0x0E: "64-bit floats",
}
GZIP = b"\x1f\x8b"
FETCH = "download it again, or point GAN_DATA_DIR elsewhere"
MAX_BYTES = 2_000_000_000  # of values; the images of MNIST have 47 MB
CHUNK_BYTES = 1_000_000


@dataclass(frozen=True)
class Kind:
    """One kind of file: of what, in how many dimensions, and what its bytes are called."""

    of: str
    dimensions: int
    bytes_of: str

    @property
    def header(self) -> struct.Struct:
        """Two zero bytes, the type, the number of dimensions, the size of each."""
        return struct.Struct(f">HBB{self.dimensions}I")


IMAGES = Kind("images", 3, "pixels")
LABELS = Kind("labels", 1, "labels")


def read_shape(path: Path, kind: Kind = IMAGES) -> tuple[int, ...]:
    """(images, height, width), or (labels,), from the header alone.

    Raises DatasetError when it is no such file.
    """
    with _explained(path, kind), _open(path) as file:
        return _shape(path, kind, file)


def read(path: Path, kind: Kind = IMAGES) -> NDArray[np.uint8]:
    """uint8 (images, height, width), or (labels,).

    Raises DatasetError when the file is damaged, cut short or too long.
    """
    with _explained(path, kind), _open(path) as file:
        shape = _shape(path, kind, file)
        expected = int(np.prod(shape))
        data = file.read(expected + 1)  # never more, whatever a compressed file would grow to
    if len(data) != expected:
        raise _not_as_promised(path, kind, expected, len(data))
    return np.frombuffer(data, np.uint8).reshape(shape)


def check(path: Path, kind: Kind = IMAGES) -> None:
    """Proves that as many bytes follow as the header promises; a compressed file is unpacked for
    that.

    What was proven is remembered until the file changes, so that a form that asks at each keystroke
    does not unpack each time.

    Raises:
        DatasetError: they do not, or a compressed file is damaged.
    """
    with _explained(path, kind):
        known = path.stat()
    _checked(path, kind, known.st_mtime_ns, known.st_size)


def counts(path: Path) -> tuple[int, ...]:
    """How many labels there are of each number from 0 to the largest one; remembered until
    the file changes. Raises as `read`.
    """
    with _explained(path, LABELS):
        known = path.stat()
    return _counted(path, known.st_mtime_ns, known.st_size)


@lru_cache(maxsize=16)
def _counted(path: Path, _changed_ns: int, _size: int) -> tuple[int, ...]:
    return tuple(np.bincount(read(path, LABELS)).tolist())


@lru_cache(maxsize=16)
def _checked(path: Path, kind: Kind, _changed_ns: int, size: int) -> None:
    with _explained(path, kind), _open(path) as file:
        expected = int(np.prod(_shape(path, kind, file)))
        if isinstance(file, gzip.GzipFile):
            follow = 0
            while follow <= expected and (chunk := file.read(CHUNK_BYTES)):
                follow += len(chunk)
        else:
            follow = size - kind.header.size
    if follow != expected:
        raise _not_as_promised(path, kind, expected, follow)


@contextlib.contextmanager
def _explained(path: Path, kind: Kind) -> Iterator[None]:
    """Raises DatasetError with the cause of what goes wrong in the block, and what to do."""
    try:
        yield
    except EOFError:
        raise _unreadable(
            path, kind, "it is cut short, as a download or a copy did not finish"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _unreadable(path, kind, f"its packing is damaged: {error}") from None
    except OSError as error:
        advice = (
            "give this user the right to read it" if isinstance(error, PermissionError) else FETCH
        )
        raise _unreadable(path, kind, error.strerror or str(error), advice) from None


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        is_packed = file.read(len(GZIP)) == GZIP
    return cast(BinaryIO, gzip.open(path) if is_packed else path.open("rb"))


def _shape(path: Path, kind: Kind, file: BinaryIO) -> tuple[int, ...]:
    header = file.read(kind.header.size)
    zero, number, dimensions = struct.unpack_from(">HBB", header.ljust(4, b"\xff"))
    if zero:
        file.seek(0)
        its_kind = picture_files.of(file)
        reason = f"it is {its_kind}" if its_kind else "it does not start like an IDX file"
        raise _unreadable(path, kind, reason if header else "it is empty", _advice(its_kind))
    if number in TYPES:
        reason = f"its {kind.bytes_of} are {TYPES[number]}, but unsigned bytes are needed"
        raise _unreadable(
            path, kind, reason, f"write them as bytes from 0 to 255 (type {UNSIGNED_BYTE})"
        )
    if number != UNSIGNED_BYTE:
        raise _unreadable(path, kind, "it does not start like an IDX file")
    if dimensions != kind.dimensions:
        reason = f"it has {dimensions} dimensions, but {kind.of} have {kind.dimensions}"
        raise _unreadable(
            path, kind, reason, "check that images and labels have not changed their names"
        )
    if len(header) < kind.header.size:
        raise _unreadable(path, kind, f"it holds only {len(header)} bytes")
    shape = kind.header.unpack(header)[3:]
    size = int(np.prod(shape, dtype=object))
    if size > MAX_BYTES:
        promise = (
            f"its header promises {size / 1e9:,.0f} GB of {kind.bytes_of}, more than fit into"
            " memory"
        )
        raise _unreadable(path, kind, promise)
    return shape


def _advice(its_kind: str) -> str:
    """What to do about a file of another kind, as `picture_files.of` calls it."""
    if picture_files.holds_files(its_kind):
        return "unpack it, so that the IDX file itself has this name"
    if its_kind == picture_files.WEB_PAGE:
        return "the link led to a page, so download the file itself"
    return FETCH


def _not_as_promised(path: Path, kind: Kind, expected: int, follow: int) -> DatasetError:
    is_long = follow > expected  # by how much is not known: such a file is not read to its end
    reason = (
        f"its header promises {expected} bytes of {kind.bytes_of}, but"
        f" {'more' if is_long else follow} follow"
    )
    return _unreadable(path, kind, reason, "use the original file" if is_long else FETCH)


def _unreadable(path: Path, kind: Kind, reason: str, advice: str = FETCH) -> DatasetError:
    return DatasetError(
        f"{path} is not a readable IDX {kind.of.removesuffix('s')} file ({reason}): {advice}."
    )
