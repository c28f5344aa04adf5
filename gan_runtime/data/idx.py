"""IDX files, the format of MNIST: a big-endian header (two zero bytes, type, number of dimensions, sizes), then bytes.

Source: LeCun's MNIST page. Only unsigned bytes (type 8) in three dimensions are images; plain or gzip.
"""

from __future__ import annotations

import contextlib
import gzip
import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from gan_runtime.errors import DatasetError

UNSIGNED_BYTE = 8
MAX_BYTES = 2_000_000_000  # of pixels; MNIST has 47 MB
CHUNK_BYTES = 1_000_000
HEADER = struct.Struct(">HBB3I")


def read_shape(path: Path) -> tuple[int, int, int]:
    """(images, height, width) from the header alone. Raises DatasetError when it is no IDX image file."""
    with _told(path), _open(path) as file:
        return _shape(path, file)


def read_images(path: Path) -> NDArray[np.uint8]:
    """uint8 (images, height, width). Raises DatasetError when the file is damaged, cut short or too long."""
    with _told(path), _open(path) as file:
        shape = _shape(path, file)
        expected = int(np.prod(shape))
        data = file.read(expected + 1)  # never more, whatever a compressed file would grow to
    if len(data) != expected:
        raise _not_as_promised(path, expected, len(data))
    return np.frombuffer(data, np.uint8).reshape(shape)


def check(path: Path) -> None:
    """Proves that as many bytes follow as the header promises: from the size of a plain file; a compressed one is unpacked.

    What was proven is remembered until the file changes, so that a form that asks at each keystroke does not unpack each time.

    Raises:
        DatasetError: they do not, or a compressed file is damaged.
    """
    with _told(path):
        known = path.stat()
    _checked(path, known.st_mtime_ns, known.st_size)


@lru_cache(maxsize=16)
def _checked(path: Path, _changed_ns: int, size: int) -> None:
    with _told(path), _open(path) as file:
        expected = int(np.prod(_shape(path, file)))
        if path.suffix != ".gz":
            found = size - HEADER.size
        else:
            found = 0
            while found <= expected and (chunk := file.read(CHUNK_BYTES)):
                found += len(chunk)
    if found != expected:
        raise _not_as_promised(path, expected, found)


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, str(error)) from None


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb"))


def _shape(path: Path, file: BinaryIO) -> tuple[int, int, int]:
    header = file.read(HEADER.size)
    if len(header) < HEADER.size:
        raise _unreadable(path, f"it holds only {len(header)} bytes")
    zero, kind, dimensions, count, height, width = HEADER.unpack(header)
    if zero or kind != UNSIGNED_BYTE or dimensions != 3:
        raise _unreadable(path, "it does not start like an IDX file of images")
    if count * height * width > MAX_BYTES:
        raise _unreadable(
            path,
            f"its header promises {count * height * width / 1e9:,.0f} GB of pixels, more than fit into memory",
        )
    return count, height, width


def _not_as_promised(path: Path, expected: int, found: int) -> DatasetError:
    follow = (
        "more" if path.suffix == ".gz" and found > expected else str(found)
    )  # a compressed file is not read to its end
    return _unreadable(path, f"its header promises {expected} bytes of pixels, but {follow} follow")


def _unreadable(path: Path, reason: str) -> DatasetError:
    return DatasetError(
        f"{path} is not a readable IDX image file ({reason}): download it again, or point GAN_DATA_DIR elsewhere."
    )
