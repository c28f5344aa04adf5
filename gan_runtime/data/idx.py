"""IDX files, the format of MNIST: a big-endian header (two zero bytes, type, number of dimensions, sizes), then bytes.

Source: LeCun's MNIST page. Only unsigned bytes (type 8) in three dimensions are images; plain or gzip.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from gan_runtime.errors import DatasetError

UNSIGNED_BYTE = 8
HEADER = struct.Struct(">HBB3I")


def read_shape(path: Path) -> tuple[int, int, int]:
    """(images, height, width) from the header alone. Raises DatasetError when it is no IDX image file."""
    try:
        with _open(path) as file:
            return _shape(path, file)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, str(error)) from None


def read_images(path: Path) -> NDArray[np.uint8]:
    """uint8 (images, height, width). Raises DatasetError when the file is damaged or cut short."""
    try:
        with _open(path) as file:
            shape = _shape(path, file)
            data = file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, str(error)) from None
    expected = int(np.prod(shape))
    if len(data) != expected:
        raise _unreadable(path, f"its header promises {expected} bytes of pixels, but {len(data)} follow")
    return np.frombuffer(data, np.uint8).reshape(shape)


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb"))


def _shape(path: Path, file: BinaryIO) -> tuple[int, int, int]:
    header = file.read(HEADER.size)
    if len(header) < HEADER.size:
        raise _unreadable(path, f"it holds only {len(header)} bytes")
    zero, kind, dimensions, count, height, width = HEADER.unpack(header)
    if zero or kind != UNSIGNED_BYTE or dimensions != 3:
        raise _unreadable(path, "it does not start like an IDX file of images")
    return count, height, width


def _unreadable(path: Path, reason: str) -> DatasetError:
    return DatasetError(
        f"{path} is not a readable IDX image file ({reason}): download it again, or point GAN_DATA_DIR elsewhere."
    )
