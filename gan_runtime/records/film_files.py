"""The frames of an iteration, true and predicted, in one file of the run's folder:
<rollout>-<way>.npz.

Values as networks see them, in [-1, 1], as float16: 3 digits, enough for pictures. Long iterations
leave out frames evenly. Films that travel may be small ones (`differences_of`). A file may come
from someone else, so it is looked through before it is taken: what it holds is known before room is
made for it, and nothing in it is run. NumPy's own reader makes an array as large as a header of 100
bytes tells, and takes whatever else lies in the file.
"""

from __future__ import annotations

import io
import itertools
import math
import re
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base import disk, zip_directory
from gan_runtime.base.errors import HomeError, PictureError
from gan_runtime.records import run_files, states
from gan_runtime.records.record import MOST_STEPS
from gan_runtime.records.run_folder import RunDir

MOST_BYTES = 64_000_000  # of both films, before they are packed
MAX_BYTES = (
    2 * MOST_BYTES
)  # of a file that is taken in, unpacked: its first frame always stays, and it has a mask
MAX_SIDE = 4_096  # pixels; that of a grid of samples
Frames16 = NDArray[np.float16]
FILE_NAME = re.compile(r"[a-z0-9_-]{1,120}\.npz", re.ASCII)

LEVELS = 127  # on either side of 0
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
    """`steps` int64 (K,): of each frame, 0 is the given one; `truth`, `predicted` (K, height,
    width, channels). `mask` (height, width, more): channels of the source that no step changes,
    such as the obstacle; perhaps none.
    """

    steps: NDArray[np.int64]
    truth: Frames16
    predicted: Frames16
    mask: Frames16

    @property
    def nbytes(self) -> int:
        """Of both films, unpacked."""
        return self.truth.nbytes + self.predicted.nbytes


def thinned(frames: Frames, most_bytes: int = MOST_BYTES) -> Frames:
    """Every k-th frame, with the smallest k that keeps both films within `most_bytes`; the
    first always stays.
    """
    every = max(1, -(-frames.nbytes // most_bytes))
    return Frames(
        frames.steps[::every], frames.truth[::every], frames.predicted[::every], frames.mask
    )


def write(run: RunDir, name: str, frames: Frames, is_small: bool = False) -> str:
    """Writes the file aside and renames it; returns its path within the run's folder.

    `is_small`: in about a sixth of the room, with 256 levels of each value.

    Raises:
        HomeError: the disk is full; no file is left.
        ValueError: a small film has values beyond [-1, 1].
    """
    target = run.films / f"{name}.npz"
    kept = thinned(frames)
    truth, predicted = (
        differences_of(film) if is_small else film for film in (kept.truth, kept.predicted)
    )
    try:
        run.films.mkdir(exist_ok=True)
        with disk.whole_file(target, durable=True) as aside, aside.open("wb") as file:
            np.savez_compressed(
                file, steps=kept.steps, truth=truth, predicted=predicted, mask=kept.mask
            )
    except OSError as error:
        raise HomeError.not_written(target, error) from None
    return f"{run.films.name}/{target.name}"


def read(run: RunDir, file: str) -> Frames:
    """The frames of a file that a record of the run names, looked through.

    Raises:
        PictureError: another place than the run's folder of films, a link, missing, damaged, or no
            films; the message says what, as the
            end of a sentence.
    """
    folder, _, name = file.partition("/")
    if folder != run.films.name or not FILE_NAME.fullmatch(name):
        raise PictureError("its name is not that of a film in the folder of the run")
    stored = _npz_arrays(run_files.opened(run.films, name), _KINDS, MAX_BYTES)
    _check_shapes(stored["truth"], stored["predicted"])
    truth, predicted = _unpacked(stored["truth"]), _unpacked(stored["predicted"])
    frames = Frames(stored["steps"], truth, predicted, stored["mask"])
    _check_fit(frames)
    return frames


def named(run: RunDir) -> list[Path]:
    """The files of films that a record names.

    Records are read as text: those of a newer version have files too.
    """
    texts = {
        f'"{run.films.name}/{path.name}"'.encode(): path for path in sorted(run.films.glob("*.npz"))
    }
    if not texts:
        return []
    journals = [path for path in run.journals() if states.is_of_evaluations(path.name)]
    pieces = itertools.chain.from_iterable(map(run_files.pieces, journals))
    known = {text for piece in pieces for text in texts if text in piece}
    return [path for text, path in texts.items() if text in known]


def _unpacked(film: NDArray[Any]) -> Frames16:
    return _of_differences(film) if film.dtype == DIFFERENCES else film


def _check_shapes(truth: NDArray[Any], predicted: NDArray[Any]) -> None:
    """Before anything is made of them."""
    if truth.ndim != 4 or (truth.shape, truth.dtype) != (predicted.shape, predicted.dtype):
        raise PictureError("it is not two films of one shape")
    if min(truth.shape) < 1:
        raise PictureError("its films are empty")


def _check_fit(frames: Frames) -> None:
    count, height, width, _ = frames.truth.shape
    if max(height, width) > MAX_SIDE:
        raise PictureError(
            f"a frame has {width} × {height} pixels, but a side may have {MAX_SIDE:,} at most"
        )
    if frames.mask.ndim != 3 or frames.mask.shape[:2] != (height, width):
        raise PictureError("its mask is that of other films")
    steps = frames.steps
    if (
        steps.shape != (count,)
        or steps[0] != 0
        or steps[-1] > MOST_STEPS
        or (steps[1:] <= steps[:-1]).any()
    ):
        raise PictureError("its steps are not those of an iteration")


def differences_of(frames: NDArray[np.floating]) -> NDArray[np.int8]:
    """Frames in about a sixth of their room: (frames, height, width, channels) → (channels, frames,
    height, width).

        k = round(127 v)         v in [-1, 1]; a level is 0.008, which is 0.04 of ω D / U
        d = Δx Δy Δt k mod 256   each from the pixel before, which is 0 at the edges

    Neighbors are alike, in space and in time, so most of d is near 0 and deflate packs it well;
    16-bit values it hardly packs.

    Raises:
        ValueError: a value is not in [-1, 1], such as the NaN of a model that has run away.
    """
    if not (np.abs(frames) <= 1.0).all():
        raise ValueError("a frame has values beyond -1 to 1")
    levels = np.rint(frames.astype(np.float32) * LEVELS).astype(np.int8)
    differences: NDArray[Any] = np.moveaxis(levels, -1, 0)
    for axis in _AXES:
        differences = np.diff(differences, axis=axis, prepend=np.int8(0))
    return np.ascontiguousarray(differences)


def _of_differences(differences: NDArray[np.int8]) -> NDArray[np.float16]:
    """The way back: each value off by half a level at most, and by what float16 rounds."""
    levels: NDArray[Any] = differences
    for axis in _AXES:
        levels = np.cumsum(levels, axis=axis, dtype=np.int8)
    return np.moveaxis(np.divide(levels, LEVELS, dtype=np.float16), 0, -1)


_ENCRYPTED = 0x1  # of the flags of a member
_HEADER_CHARACTERS = 1_000  # of a member: its type and shape; NumPy writes about 120
Kinds = Mapping[str, Collection[np.dtype[Any]]]


def _npz_arrays(file: int, kinds: Kinds, most_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays of an open file, which is closed. They cannot be written to.

    `kinds`: the names that it must hold, no more and no less, and which types each may have.
    `most_bytes`: of all arrays, unpacked.

    Raises:
        PictureError: it holds something else; the message says what, as the end of a sentence.
    """
    try:
        with zip_directory.opened(file, len(kinds)) as members:
            _check_members(members, kinds, most_bytes)
            return {name: _array(members.read(f"{name}.npy"), name, kinds[name]) for name in kinds}
    except PictureError:
        raise
    except (
        Exception
    ):  # zipfile, zlib and NumPy raise what the broken part of a file makes them raise
        raise PictureError("it is damaged") from None


def _check_members(members: zipfile.ZipFile, kinds: Kinds, most_bytes: int) -> None:
    listed = members.infolist()
    if sorted(member.filename for member in listed) != sorted(f"{name}.npy" for name in kinds):
        raise PictureError(f"it does not hold {', '.join(kinds)} alone")
    if sum(member.file_size for member in listed) > most_bytes:
        raise PictureError(f"it has more than {most_bytes:,} bytes, unpacked")
    packed = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if any(
        member.flag_bits & _ENCRYPTED or member.compress_type not in packed for member in listed
    ):
        raise PictureError("it is encrypted or packed as NumPy packs nothing")


def _array(content: bytes, name: str, kinds: Collection[np.dtype[Any]]) -> NDArray[Any]:
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise PictureError(f"its {name} are of another format")
    shape, is_fortran, kind = np.lib.format.read_array_header_1_0(
        file, max_header_size=_HEADER_CHARACTERS
    )
    if kind not in kinds:  # so no objects, which would be unpickled
        raise PictureError(f"its {name} are of the type {str(kind)[:20]}")
    begin = file.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != len(content) - begin:
        raise PictureError(f"its {name} are not as many as it tells")
    return np.frombuffer(content, kind, offset=begin).reshape(
        shape, order="F" if is_fortran else "C"
    )
