"""Image files that records of a run name: sample grids (PNG), and the frames of rollouts (npz).

A file can come from another user, so its size and content are checked before memory is allocated.
Frames have the networks' values in [-1, 1], stored as float16 or, in small films, as 255 levels.
"""

from __future__ import annotations

import io
import itertools
import math
import os
import re
import struct
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.base import disk
from gan_runtime.base.errors import HomeError, PictureError
from gan_runtime.records import run_files
from gan_runtime.records.record import MOST_STEPS
from gan_runtime.records.run_folder import RunDir

FILM_BYTES = 64_000_000  # of both films, before compression
MAX_FILM_BYTES = 2 * FILM_BYTES  # of a file with its mask, after decompression
Frames16 = NDArray[np.float16]
FILM_NAME = re.compile(r"[a-z0-9_-]{1,120}\.npz", re.ASCII)

LEVELS = 127  # on each side of 0
DIFFERENCES = np.dtype(np.int8)
_AXES = (1, 2, 3)  # of (channels, frames, height, width)
_HALF = np.dtype(np.float16)
_KINDS = {
    "steps": (np.dtype(np.int64),),
    "truth": (_HALF, DIFFERENCES),
    "predicted": (_HALF, DIFFERENCES),
    "mask": (_HALF,),
}


@dataclass(frozen=True)
class Frames:
    """The frames of a rollout. `steps`: int64 (K,), the step of each frame, 0 for the start frame.
    `truth`, `predicted`: (K, height, width, channels). `mask`: (height, width, M), constant input
    channels such as the obstacle; M can be 0.
    """

    steps: NDArray[np.int64]
    truth: Frames16
    predicted: Frames16
    mask: Frames16

    @property
    def nbytes(self) -> int:
        """The bytes of both films without compression."""
        return self.truth.nbytes + self.predicted.nbytes


def thinned(frames: Frames, most_bytes: int = FILM_BYTES) -> Frames:
    """Every k-th frame from the first on, with the smallest k that fits both films into
    `most_bytes`.
    """
    every = max(1, -(-frames.nbytes // most_bytes))
    return Frames(
        frames.steps[::every], frames.truth[::every], frames.predicted[::every], frames.mask
    )


def write_film(run: RunDir, name: str, frames: Frames, is_small: bool = False) -> str:
    """Writes a film atomically; returns its path within the run's folder.

    `is_small`: stores rounded levels, in about a sixth of the bytes.

    Raises:
        HomeError: the disk is full; the file is deleted.
        ValueError: a small film has values outside [-1, 1].
    """
    target = run.films / f"{name}.npz"
    thin = thinned(frames)
    truth, predicted = (
        differences_of(film) if is_small else film for film in (thin.truth, thin.predicted)
    )
    try:
        run.films.mkdir(exist_ok=True)
        with disk.whole_file(target, durable=True) as temporary, temporary.open("wb") as file:
            np.savez_compressed(
                file, steps=thin.steps, truth=truth, predicted=predicted, mask=thin.mask
            )
    except OSError as error:
        raise HomeError.not_written(target, error) from None
    return f"{run.films.name}/{target.name}"


def read_film(run: RunDir, file: str) -> Frames:
    """Reads and checks the frames of a file that a record names.

    Raises PictureError; its message is the end of a sentence.
    """
    folder, _, name = file.partition("/")
    if folder != run.films.name or not FILM_NAME.fullmatch(name):
        raise PictureError("its name is not that of a film in the run's folder")
    stored = _npz_arrays(run_files.opened(run.films, name), _KINDS, MAX_FILM_BYTES)
    _check_shapes(stored["truth"], stored["predicted"])
    truth, predicted = _unpacked(stored["truth"]), _unpacked(stored["predicted"])
    frames = Frames(stored["steps"], truth, predicted, stored["mask"])
    _check_fit(frames)
    return frames


def referenced_films(run: RunDir) -> list[Path]:
    """The films that some record names. Records are searched as text, so records of newer versions
    count too.
    """
    texts = {
        f'"{run.films.name}/{path.name}"'.encode(): path for path in sorted(run.films.glob("*.npz"))
    }
    if not texts:
        return []
    journals = [path for path in run.journals() if run_files.is_of_evaluations(path.name)]
    pieces = itertools.chain.from_iterable(map(run_files.pieces, journals))
    matches = {text for piece in pieces for text in texts if text in piece}
    return [path for text, path in texts.items() if text in matches]


def _unpacked(film: NDArray[Any]) -> Frames16:
    return _of_differences(film) if film.dtype == DIFFERENCES else film


def _check_shapes(truth: NDArray[Any], predicted: NDArray[Any]) -> None:
    if truth.ndim != 4 or (truth.shape, truth.dtype) != (predicted.shape, predicted.dtype):
        raise PictureError("its two films differ in shape or type")
    if min(truth.shape) < 1:
        raise PictureError("its films are empty")


def _check_fit(frames: Frames) -> None:
    count, height, width, _ = frames.truth.shape
    if max(height, width) > MAX_SIDE:
        raise PictureError(
            f"a frame has {width} × {height} pixels, but at most {MAX_SIDE:,} a side are allowed"
        )
    if frames.mask.ndim != 3 or frames.mask.shape[:2] != (height, width):
        raise PictureError("its mask does not fit its films")
    steps = frames.steps
    if (
        steps.shape != (count,)
        or steps[0] != 0
        or steps[-1] > MOST_STEPS
        or (steps[1:] <= steps[:-1]).any()
    ):
        raise PictureError("its steps are not those of a rollout")


def differences_of(frames: NDArray[np.floating]) -> NDArray[np.int8]:
    """(frames, height, width, channels) → (channels, frames, height, width), a sixth of the bytes.

        k = round(127 v)         v in [-1, 1]; a level is 0.008, which is 0.04 of ω D / U
        d = Δx Δy Δt k mod 256   each from the pixel before, which is 0 at the edges

    Neighbors in space and time are alike, so most of d is near 0 and deflate compresses it well.

    Raises ValueError for a value outside [-1, 1], such as the NaN of a diverged model.
    """
    if not (np.abs(frames) <= 1.0).all():
        raise ValueError("a frame has values outside -1 to 1")
    levels = np.rint(frames.astype(np.float32) * LEVELS).astype(np.int8)
    differences: NDArray[Any] = np.moveaxis(levels, -1, 0)
    for axis in _AXES:
        differences = np.diff(differences, axis=axis, prepend=np.int8(0))
    return np.ascontiguousarray(differences)


def _of_differences(differences: NDArray[np.int8]) -> NDArray[np.float16]:
    """The inverse of `differences_of`, up to half a level and float16 rounding."""
    levels: NDArray[Any] = differences
    for axis in _AXES:
        levels = np.cumsum(levels, axis=axis, dtype=np.int8)
    return np.moveaxis(np.divide(levels, LEVELS, dtype=np.float16), 0, -1)


_ENCRYPTED = 0x1  # bit in the flags of a member
_HEADER_CHARACTERS = 1_000  # header of a member, with type and shape; NumPy writes about 120
Kinds = Mapping[str, Collection[np.dtype[Any]]]


def _npz_arrays(file: int, kinds: Kinds, most_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays of an open file, read-only; closes the file.

    Sizes are checked before memory is allocated, and nothing is unpickled. NumPy's own reader
    allocates what a header of 100 bytes claims.

    `kinds`: the exact names, each with its allowed types. `most_bytes`: limit for all arrays after
    decompression.

    Raises PictureError; its message is the end of a sentence.
    """
    try:
        with run_files.open_zip(file, len(kinds)) as members:
            _check_members(members, kinds, most_bytes)
            return {name: _array(members.read(f"{name}.npy"), name, kinds[name]) for name in kinds}
    except PictureError:
        raise
    except Exception:  # zipfile, zlib and NumPy raise many types for a broken file
        raise PictureError("it is damaged") from None


def _check_members(members: zipfile.ZipFile, kinds: Kinds, most_bytes: int) -> None:
    entries = members.infolist()
    if sorted(member.filename for member in entries) != sorted(f"{name}.npy" for name in kinds):
        raise PictureError(f"it does not contain exactly {', '.join(kinds)}")
    if sum(member.file_size for member in entries) > most_bytes:
        raise PictureError(f"it has more than {most_bytes:,} bytes, unpacked")
    packed = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if any(
        member.flag_bits & _ENCRYPTED or member.compress_type not in packed for member in entries
    ):
        raise PictureError("it is encrypted, or compressed in a way that NumPy does not use")


def _array(content: bytes, name: str, kinds: Collection[np.dtype[Any]]) -> NDArray[Any]:
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise PictureError(f"its array {name} has another format")
    shape, is_fortran, kind = np.lib.format.read_array_header_1_0(
        file, max_header_size=_HEADER_CHARACTERS
    )
    if kind not in kinds:  # excludes objects, which would be unpickled
        raise PictureError(f"its array {name} has the type {str(kind)[:20]}")
    begin = file.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != len(content) - begin:
        raise PictureError(f"the size of its array {name} differs from its header")
    return np.frombuffer(content, kind, offset=begin).reshape(
        shape, order="F" if is_fortran else "C"
    )


# A grid of 64 color images of 256 × 256 has 2,062 × 2,062 pixels and at most 13 MB.
MAX_GRID_BYTES = 20_000_000
MAX_SIDE = 4_096
_FILE = re.compile(r"samples/([A-Za-z0-9][A-Za-z0-9_.-]{0,99}\.png)", re.ASCII)
_BEGIN = re.compile(
    rb"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR(.{8})", re.DOTALL
)  # width and height follow


def read_grid(run: RunDir, file: str) -> bytes:
    """The bytes of a sample grid that a record names, such as samples/epoch-00001.png.

    A record can come from another user, so only a valid PNG in the run's samples folder is read.

    Raises PictureError; its message is the end of a sentence.
    """
    name = _FILE.fullmatch(file)
    if name is None:
        raise PictureError("its name is not that of a PNG file in the run's samples folder")
    content = _bytes(run, name[1])
    check_grid(content)
    return content


def check_grid(content: bytes) -> None:
    """Decodes a PNG to check that it is whole and within the limits.

    Raises PictureError; its message is the end of a sentence.
    """
    if len(content) > MAX_GRID_BYTES:
        raise PictureError(f"it has more than {MAX_GRID_BYTES:,} bytes")
    begin = _BEGIN.match(content)
    if begin is None:
        raise PictureError("it is not a PNG image")
    width, height = struct.unpack(">II", begin[1])
    if max(width, height) > MAX_SIDE:  # before Pillow allocates the pixels
        raise PictureError(
            f"it has {width} × {height} pixels, but at most {MAX_SIDE:,} a side are allowed"
        )
    try:
        _decode(content)
    except Exception:
        # A broken file makes Pillow raise OSError, SyntaxError, zlib.error, …
        raise PictureError("it is a damaged PNG image") from None


def _decode(content: bytes) -> None:
    with Image.open(io.BytesIO(content), formats=("PNG",)) as picture:
        picture.verify()  # checksums of all parts
    with Image.open(io.BytesIO(content), formats=("PNG",)) as picture:
        picture.load()  # decodes the pixels; an object cannot be used after `verify`


def _bytes(run: RunDir, name: str) -> bytes:
    with os.fdopen(run_files.opened(run.samples, name), "rb") as file:
        return run_files.read(file, MAX_GRID_BYTES + 1)
