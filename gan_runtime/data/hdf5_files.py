"""HDF5 files of other people: found, checked by their headers, and read part by part.

Errors name the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.catalog.domain import HDF5_SUFFIXES
from gan_runtime.data import hdf5_problems
from gan_runtime.data.contract import Progress
from gan_runtime.data.picture_files import readable
from gan_runtime.data.summary import Skip, Skipped

READ_BYTES = 1 << 24  # at once, for the hash
CACHE_BYTES = (
    1 << 28
)  # of unpacked blocks: a block that a file has packed as a whole is unpacked once
UNREADABLE = (
    OSError,
    RuntimeError,
    ValueError,
    TypeError,
)  # what h5py raises, depending on the part that is damaged
MOST_KEYS, MOST_LETTERS = 8, 40  # of a file and of a key, named in a sentence
MOST_SKIPPED = 20  # files of a folder, by name


@dataclass(frozen=True)
class Source:
    """`files`: those that are read, by name. `skipped`: what else a folder holds."""

    files: list[Path]
    skipped: Skipped


def source_of(source: Path) -> Source:
    """The one file, or those of a folder. Raises DatasetError when there is none."""
    name, advice = quoted(str(source)), "give an HDF5 file (.h5 or .hdf5), or a folder of them"
    try:
        if not source.is_dir():
            source.stat()
        found = _in_folder(source) if source.is_dir() else Source([source], Skipped())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have that name"
        raise DatasetError(f"{name} cannot be read ({reason}): {advice}.") from None
    if not found.files:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in found.skipped.counts.items())
        raise DatasetError(f"{name} holds no HDF5 file{f' ({kinds})' if kinds else ''}: {advice}.")
    if not found.files[0].is_file():
        raise DatasetError(f"{name} is neither a file nor a folder: {advice}.")
    return found


def _in_folder(folder: Path) -> Source:
    """HDF5 files, and what is passed over: hidden files, such as ._NAME, which macOS writes
    next to NAME, are only counted.
    """
    files, skips, hidden = [], [], 0
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            hidden += 1
        elif skip := _skip(path):
            skips.append(skip)
        else:
            files.append(path)
    counts = dict(Counter(skip.kind for skip in skips))
    return Source(files, Skipped(counts=counts, first=tuple(skips[:MOST_SKIPPED]), hidden=hidden))


def _skip(path: Path) -> Skip | None:
    """Why a file is passed over; None for an HDF5 file, by its name, which ?download=1 may
    follow, or by its contents.
    """
    name = readable(path.name)
    if not path.is_file():
        return Skip(
            name=name,
            kind="no file",
            reason="it is no file, and folders within a folder are not read",
        )
    try:
        if path.name.partition("?")[0].lower().endswith(
            HDF5_SUFFIXES
        ) or hdf5_problems.begins_as_hdf5(path):
            return None
    except OSError as error:
        return Skip(name=name, kind="not readable", reason=f"it cannot be read ({error.strerror})")
    return Skip(name=name, kind="no HDF5 file", reason="it is no HDF5 file")


def content(source: Path, progress: Progress) -> str:
    """A hash of the names and bytes of all files, in hexadecimal.

    Raises DatasetError when one cannot be read.
    """
    files = source_of(source).files
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
            raise DatasetError(
                f"{readable(path.name)} cannot be read ({error.strerror})."
            ) from None
    return known.hexdigest()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """A file, to read. Raises DatasetError with the cause, see `hdf5_problems`."""
    try:
        file = h5py.File(path, "r", rdcc_nbytes=CACHE_BYTES)
    except OSError as error:
        raise hdf5_problems.not_opened(path, error) from None
    with file:
        yield file


def column(file: h5py.File, key: str, *shapes: tuple[int, ...]) -> h5py.Dataset:
    """The numbers under a key, N rows of one of the shapes; (N, 1) passes for (N,).

    Raises DatasetError: there is no such key, it holds no numbers, they have another shape, cannot
    be unpacked, or lie in another file (whoever dropped a file into a browser must not get at
    others of this host).
    """
    name, known = name_of(file), _keys(file)
    if key not in known:
        raise DatasetError(
            f"{name} has no {key}, only {_in_words(known)}: is it a file of another kind?"
        )
    numbers = _opened_column(file, key)
    if not isinstance(numbers, h5py.Dataset) or numbers.dtype.kind not in "fiu":
        raise DatasetError(f"{name}: its {key} holds no numbers: is it a file of another kind?")
    given = numbers.shape or ()
    if not given or given[1:] not in {*shapes, *(shape or (1,) for shape in shapes)}:
        needed = " or ".join(sizes(("N", *shape)) for shape in shapes)
        raise DatasetError(f"{name}: its {key} is {sizes(given)}, but {needed} is needed.")
    if missing := hdf5_problems.missing_filter(numbers):
        raise DatasetError(
            f"{name}: its {key} is packed with the filter {missing}, which is not installed here:"
            " repack the file where it is, with h5repack -f GZIP=4, or set HDF5_PLUGIN_PATH to a"
            " folder that holds it, such as hdf5plugin.PLUGIN_PATH."
        )
    block = math.prod(numbers.chunks or ()) * numbers.dtype.itemsize
    if block > CACHE_BYTES:  # each part that is read would unpack all of it, into memory
        raise DatasetError(
            f"{name}: its {key} is packed in blocks of {block / 1e6:,.0f} MB, but"
            f" {CACHE_BYTES / 1e6:.0f} MB are allowed: pack it anew in smaller ones, such as with"
            " h5repack."
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
        f"{name_of(file)}: its {key} is a link or lies in another file, which is not followed: copy"
        " the numbers into this one."
    )


def read(file: h5py.File, numbers: h5py.Dataset, begin: int, end: int) -> NDArray[np.float32]:
    """Some rows. Raises DatasetError: they are damaged, or hold what is no number."""
    key = numbers.name.lstrip("/")
    try:
        with np.errstate(over="ignore"):
            rows: NDArray[np.float32] = np.asarray(numbers[begin:end], np.float32)
    except UNREADABLE as error:  # a block that cannot be unpacked, or lies behind the end
        raise hdf5_problems.not_read(name_of(file), key, begin, error) from None
    if not np.isfinite(rows).all():
        raise DatasetError(
            f"{name_of(file)}: its {key} holds what is no number, or one above 3e38, in rows"
            f" {begin:,} to {end - 1:,}."
        )
    return rows


def same_rows(file: h5py.File, columns: dict[str, h5py.Dataset]) -> int:
    """How many rows all columns have. Raises DatasetError: they differ, or there are none."""
    counts = {key: len(numbers) for key, numbers in columns.items()}
    if len(set(counts.values())) > 1 or not min(counts.values()):
        rows = ", ".join(f"{count:,} of {key}" for key, count in counts.items())
        raise DatasetError(
            f"{name_of(file)} needs as many rows of each, and at least one, but holds {rows}."
        )
    return min(counts.values())


def parts(columns: dict[str, h5py.Dataset], rows: int, usual: int) -> Iterator[tuple[int, int]]:
    """Begin and end of what is read at once: `usual` rows, or as many as the file has packed
    together, up to eight times that.
    """
    packed = max((numbers.chunks[0] for numbers in columns.values() if numbers.chunks), default=1)
    step = max(usual, min(packed, 8 * usual))
    for begin in range(0, rows, step):
        yield begin, min(begin + step, rows)


def name_of(file: h5py.File) -> str:
    """As messages call it."""
    return readable(Path(file.filename).name)


def sizes(shape: tuple[Any, ...]) -> str:
    """5,000 × 51 × 51 × 25."""
    return (
        " × ".join(f"{length:,}" if isinstance(length, int) else str(length) for length in shape)
        or "1"
    )


def _keys(file: h5py.File) -> list[str]:
    try:
        return sorted(file)
    except UNREADABLE:
        raise _damaged(file) from None


def _damaged(file: h5py.File) -> DatasetError:
    return DatasetError(f"{name_of(file)} is damaged: fetch it again.")


def _in_words(keys: list[str]) -> str:
    """The first keys of a file, none longer than a few words: anybody may have named them."""
    short = (readable(key) for key in keys[:MOST_KEYS])
    named = [key if len(key) <= MOST_LETTERS else f"{key[: MOST_LETTERS - 1]}…" for key in short]
    more = [f"{len(keys) - MOST_KEYS:,} more"] if len(keys) > MOST_KEYS else []
    return ", ".join([*named, *more]) or "nothing"
