"""IDX files, the format of MNIST: a big-endian header, then bytes.

The header: two zero bytes, the type, the number of dimensions, the size of each.

Source: LeCun's MNIST page. Only unsigned bytes (type 8) are read: in three dimensions images, in one labels;
plain or gzip.
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

from gan_runtime.errors import DatasetError

UNSIGNED_BYTE = 8
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
    with _told(path, kind), _open(path) as file:
        return _shape(path, kind, file)


def read(path: Path, kind: Kind = IMAGES) -> NDArray[np.uint8]:
    """uint8 (images, height, width), or (labels,).

    Raises DatasetError when the file is damaged, cut short or too long.
    """
    with _told(path, kind), _open(path) as file:
        shape = _shape(path, kind, file)
        expected = int(np.prod(shape))
        data = file.read(expected + 1)  # never more, whatever a compressed file would grow to
    if len(data) != expected:
        raise _not_as_promised(path, kind, expected, len(data))
    return np.frombuffer(data, np.uint8).reshape(shape)


def check(path: Path, kind: Kind = IMAGES) -> None:
    """Proves that as many bytes follow as the header promises; a compressed file is unpacked for that.

    What was proven is remembered until the file changes, so that a form that asks at each keystroke does not
    unpack each time.

    Raises:
        DatasetError: they do not, or a compressed file is damaged.
    """
    with _told(path, kind):
        known = path.stat()
    _checked(path, kind, known.st_mtime_ns, known.st_size)


@lru_cache(maxsize=16)
def _checked(path: Path, kind: Kind, _changed_ns: int, size: int) -> None:
    with _told(path, kind), _open(path) as file:
        expected = int(np.prod(_shape(path, kind, file)))
        if path.suffix != ".gz":
            follow = size - kind.header.size
        else:
            follow = 0
            while follow <= expected and (chunk := file.read(CHUNK_BYTES)):
                follow += len(chunk)
    if follow != expected:
        raise _not_as_promised(path, kind, expected, follow)


@contextlib.contextmanager
def _told(path: Path, kind: Kind) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, kind, str(error)) from None


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb"))


def _shape(path: Path, kind: Kind, file: BinaryIO) -> tuple[int, ...]:
    header = file.read(kind.header.size)
    if len(header) < kind.header.size:
        raise _unreadable(path, kind, f"it holds only {len(header)} bytes")
    zero, number, dimensions, *shape = kind.header.unpack(header)
    if zero or number != UNSIGNED_BYTE or dimensions != kind.dimensions:
        raise _unreadable(path, kind, f"it does not start like an IDX file of {kind.of}")
    size = int(np.prod(shape, dtype=object))
    if size > MAX_BYTES:
        promise = f"its header promises {size / 1e9:,.0f} GB of {kind.bytes_of}, more than fit into memory"
        raise _unreadable(path, kind, promise)
    return tuple(shape)


def _not_as_promised(path: Path, kind: Kind, expected: int, follow: int) -> DatasetError:
    # A compressed file is not read to its end.
    more = "more" if path.suffix == ".gz" and follow > expected else str(follow)
    return _unreadable(
        path, kind, f"its header promises {expected} bytes of {kind.bytes_of}, but {more} follow"
    )


def _unreadable(path: Path, kind: Kind, reason: str) -> DatasetError:
    return DatasetError(
        f"{path} is not a readable IDX {kind.of.removesuffix('s')} file ({reason}): "
        "download it again, or point GAN_DATA_DIR elsewhere."
    )
