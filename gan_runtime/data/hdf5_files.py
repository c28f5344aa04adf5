"""HDF5 files of other people: found, checked by their headers, and read part by part. What is wrong is told with the file's name."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from gan_runtime.data.contract import Progress
from gan_runtime.data.picture_files import readable
from gan_runtime.data.preparations import HDF5_SUFFIXES
from gan_runtime.errors import DatasetError, quoted

READ_BYTES = 1 << 24  # at once, for the hash
CACHE_BYTES = 1 << 28  # of unpacked blocks: a block that a file has packed as a whole is unpacked once
UNREADABLE = (
    OSError,
    RuntimeError,
    ValueError,
    TypeError,
)  # what h5py raises, depending on the part that is damaged
MOST_KEYS = 8  # of a file, named in a sentence


def files_of(source: Path) -> list[Path]:
    """The one file, or those of a folder by name. Raises DatasetError when there is none."""
    advice = "give an HDF5 file (.h5 or .hdf5), or a folder of them"
    try:
        files = sorted(source.iterdir()) if source.is_dir() else [source]
        files = [path for path in files if path.suffix.lower() in HDF5_SUFFIXES and path.is_file()]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have that name"
        raise DatasetError(f"{quoted(str(source))} cannot be read ({reason}): {advice}.") from None
    if not files:
        raise DatasetError(f"{quoted(str(source))} is, or holds, no HDF5 file: {advice}.")
    return files


def content(source: Path, progress: Progress) -> str:
    """A hash of the names and bytes of all files, in hexadecimal. Raises DatasetError when one cannot be read."""
    files = files_of(source)
    size, done, known = sum(path.stat().st_size for path in files), 0, hashlib.sha256()
    for path in files:
        known.update(f"{path.name}\0{path.stat().st_size}\0".encode(errors="surrogateescape"))
        try:
            with path.open("rb") as file:
                while part := file.read(READ_BYTES):
                    known.update(part)
                    done += len(part)
                    progress(done, size, f"Reading {readable(path.name)}")
        except OSError as error:
            raise DatasetError(f"{readable(path.name)} cannot be read ({error.strerror}).") from None
    return known.hexdigest()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """A file, to read. Raises DatasetError: it is no HDF5 file, or cut short."""
    try:
        file = h5py.File(path, "r", rdcc_nbytes=CACHE_BYTES)
    except OSError as error:
        why = "it is cut short" if "truncated" in str(error) else "it is no HDF5 file, or damaged"
        raise DatasetError(f"{readable(path.name)} cannot be opened, {why}: fetch it again.") from None
    with file:
        yield file


def column(file: h5py.File, key: str, *shapes: tuple[int, ...]) -> h5py.Dataset:
    """The numbers under a key, N rows of one of the shapes; (N, 1) passes for (N,).

    Raises DatasetError: there is no such key, it holds no numbers, they have another shape, or lie in another file (whoever
    dropped a file into a browser must not get at others of this host).
    """
    name, known = name_of(file), _keys(file)
    if key not in known:
        held = ", ".join(known[:MOST_KEYS]) or "nothing"
        raise DatasetError(f"{name} has no {key}, only {held}: is it a file of another kind?")
    numbers = _opened_column(file, key)
    if not isinstance(numbers, h5py.Dataset) or numbers.dtype.kind not in "fiu":
        raise DatasetError(f"{name}: its {key} holds no numbers: is it a file of another kind?")
    given = numbers.shape or ()
    if not given or given[1:] not in {*shapes, *(shape or (1,) for shape in shapes)}:
        needed = " or ".join(sizes(("N", *shape)) for shape in shapes)
        raise DatasetError(f"{name}: its {key} is {sizes(given)}, but {needed} is needed.")
    block = math.prod(numbers.chunks or ()) * numbers.dtype.itemsize
    if block > CACHE_BYTES:  # each part that is read would unpack all of it, into memory
        raise DatasetError(
            f"{name}: its {key} is packed in blocks of {block / 1e6:,.0f} MB, but {CACHE_BYTES / 1e6:.0f} MB are allowed: "
            "pack it anew in smaller ones, such as with h5repack."
        )
    return numbers


def _opened_column(file: h5py.File, key: str) -> Any:
    """Whatever is under a key, in this very file."""
    try:
        here = isinstance(file.get(key, getlink=True), h5py.HardLink)
        held = file[key] if here else None
        if here and not (isinstance(held, h5py.Dataset) and (held.external or held.is_virtual)):
            return held
    except (KeyError, *UNREADABLE):
        raise _damaged(file) from None
    raise DatasetError(
        f"{name_of(file)}: its {key} lies in another file, which is not followed: copy it into this one."
    )


def read(file: h5py.File, numbers: h5py.Dataset, begin: int, end: int) -> NDArray[np.float32]:
    """Some rows. Raises DatasetError: they are damaged, or hold what is no number."""
    key = numbers.name.lstrip("/")
    try:
        rows: NDArray[np.float32] = np.asarray(numbers[begin:end], np.float32)
    except UNREADABLE:  # a block that cannot be unpacked, or lies behind the end
        raise DatasetError(
            f"{name_of(file)} is damaged: its {key} cannot be read from row {begin:,} on: fetch it again."
        ) from None
    if not np.isfinite(rows).all():
        raise DatasetError(
            f"{name_of(file)}: its {key} holds what is no number, in rows {begin:,} to {end - 1:,}."
        )
    return rows


def same_rows(file: h5py.File, columns: dict[str, h5py.Dataset]) -> int:
    """How many rows all columns have. Raises DatasetError: they differ, or there are none."""
    counts = {key: len(numbers) for key, numbers in columns.items()}
    if len(set(counts.values())) > 1 or not min(counts.values()):
        told = ", ".join(f"{count:,} of {key}" for key, count in counts.items())
        raise DatasetError(f"{name_of(file)} needs as many rows of each, and at least one, but holds {told}.")
    return min(counts.values())


def parts(columns: dict[str, h5py.Dataset], rows: int, usual: int) -> Iterator[tuple[int, int]]:
    """Begin and end of what is read at once: `usual` rows, or as many as the file has packed together, up to eight times that."""
    packed = max((numbers.chunks[0] for numbers in columns.values() if numbers.chunks), default=1)
    step = max(usual, min(packed, 8 * usual))
    for begin in range(0, rows, step):
        yield begin, min(begin + step, rows)


def name_of(file: h5py.File) -> str:
    """As messages call it."""
    return readable(Path(file.filename).name)


def sizes(shape: tuple[Any, ...]) -> str:
    """5,000 × 51 × 51 × 25."""
    return " × ".join(f"{length:,}" if isinstance(length, int) else str(length) for length in shape) or "1"


def _keys(file: h5py.File) -> list[str]:
    try:
        return sorted(file)
    except UNREADABLE:
        raise _damaged(file) from None


def _damaged(file: h5py.File) -> DatasetError:
    return DatasetError(f"{name_of(file)} is damaged: fetch it again.")
