"""HDF5 files from strangers: listed, checked by their headers, read in parts, and refused with
cause and advice. Errors name the file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.catalog.preparation import HDF5_SUFFIXES
from gan_runtime.data import image_files
from gan_runtime.data.contract import Progress
from gan_runtime.data.summary import NOT_READABLE, Skip, SkippedFiles, readable

READ_BYTES = 1 << 24  # read at once for the hash
CACHE_BYTES = 1 << 28  # cache of decompressed chunks, so that each is decompressed once
UNREADABLE = (OSError, RuntimeError, ValueError, TypeError)  # h5py, by the damaged part
MOST_KEYS, MOST_LETTERS = 8, 40  # keys in a sentence, and letters of each
MOST_SKIPPED = 20  # files of a folder, by name
DOWNLOAD_AGAIN = "download it again"
DOWNLOAD = "download the file itself"
SERVER_ERROR = f"a server may have answered with an error: {DOWNLOAD}"
WRITE_IT = "write its arrays into an HDF5 file with h5py"
ADVICE = {  # by kind of file
    image_files.WEB_PAGE: f"the link led to a web page: {DOWNLOAD}",
    image_files.XML: SERVER_ERROR,
    image_files.JSON: SERVER_ERROR,
    image_files.LFS_POINTER: "download the file itself with git lfs pull",
    image_files.NUMPY: WRITE_IT,
    image_files.ROOT: WRITE_IT,
    image_files.NETCDF_3: "convert it with nccopy -k nc4",
    image_files.HDF4: "convert it with h4toh5",
    image_files.MACOS_METADATA: "give the file without ._ in its name",
    image_files.ZEROS: f"the download may be incomplete: {DOWNLOAD_AGAIN}",
}
# Filters that h5py does not include, by number in the registry of the HDF Group.
FILTERS = {
    h5py.h5z.FILTER_SZIP: "szip",
    305: "lzo",
    307: "bzip2",
    32001: "blosc",
    32004: "lz4",
    32008: "bitshuffle",
    32013: "zfp",
    32015: "zstd",
    32017: "sz",
    32024: "sz3",
    32026: "blosc2",
    32028: "sperr",
}
_CUT = re.compile(r"truncated file: eof = (\d+),.*stored_eof = (\d+)", re.DOTALL)
_REASON = re.compile(r"\(([^()\n]{1,80})")


@dataclass(frozen=True)
class Hdf5Source:
    """`files`: HDF5 files, by name. `skipped`: other files of a folder."""

    files: list[Path]
    skipped: SkippedFiles


def source_of(source: Path) -> Hdf5Source:
    """The HDF5 file, or the HDF5 files of a folder. Raises DatasetError if there is none."""
    name, advice = quoted(str(source)), "give an HDF5 file (.h5 or .hdf5), or a folder of them"
    try:
        if not source.is_dir():
            source.stat()
        files = _in_folder(source) if source.is_dir() else Hdf5Source([source], SkippedFiles())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have this name"
        raise DatasetError(f"{name} cannot be read ({reason}): {advice}.") from None
    if not files.files:
        kinds = ", ".join(
            f"{kind} {formats.count(count)}" for kind, count in files.skipped.counts.items()
        )
        raise DatasetError(f"{name} has no HDF5 file{f' ({kinds})' if kinds else ''}: {advice}.")
    if not files.files[0].is_file():
        raise DatasetError(f"{name} is neither a file nor a folder: {advice}.")
    return files


def _in_folder(folder: Path) -> Hdf5Source:
    """The HDF5 files and the skipped files of a folder. Hidden files, such as ._NAME, which macOS
    writes next to NAME, are only counted.
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
    return Hdf5Source(
        files, SkippedFiles(counts=counts, first=tuple(skips[:MOST_SKIPPED]), hidden=hidden)
    )


def _skip(path: Path) -> Skip | None:
    """The reason why a file is skipped; None for an HDF5 file, by its contents or its name, to
    which browsers can append ?download=1.
    """
    if not path.is_file():
        return Skip.of(path.name, "no file", "it is not a file, and sub-folders are not read")
    try:
        if path.name.partition("?")[0].lower().endswith(HDF5_SUFFIXES) or begins_as_hdf5(path):
            return None
    except OSError as error:
        return Skip.of(path.name, NOT_READABLE, f"it cannot be read ({error.strerror})")
    return Skip.of(path.name, "no HDF5 file", "it is not an HDF5 file")


def content(source: Path, progress: Progress) -> str:
    """A hash of the names and bytes of all files, in hexadecimal.

    Raises DatasetError when one cannot be read.
    """
    files = source_of(source).files
    size, done, digest = sum(path.stat().st_size for path in files), 0, hashlib.sha256()
    for path in files:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode(errors="surrogateescape"))
        try:
            with path.open("rb") as file:
                while part := file.read(READ_BYTES):
                    digest.update(part)
                    done += len(part)
                    progress(done, size, f"Reading {readable(path.name)}")
        except OSError as error:
            raise DatasetError(
                f"{readable(path.name)} cannot be read ({error.strerror})."
            ) from None
    return digest.hexdigest()


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[h5py.File]:
    """A file, to read. Raises DatasetError with cause and advice."""
    try:
        file = h5py.File(path, "r", rdcc_nbytes=CACHE_BYTES)
    except OSError as error:
        raise open_error(path, error) from None
    with file:
        yield file


def column(file: h5py.File, key: str, *shapes: tuple[int, ...]) -> h5py.Dataset:
    """The numbers under a key, N rows of one of the shapes; (N, 1) is accepted as (N,).

    Raises DatasetError: the key is missing, or its data is not numeric, has another shape, cannot
    be decompressed, or is in another file. An uploaded file must not give access to others of the
    host.
    """
    name, keys = name_of(file), _keys(file)
    if key not in keys:
        raise DatasetError(
            f"{name} has no {key}, only {_key_list(keys)}: check that it is the right file."
        )
    numbers = _opened_column(file, key)
    if not isinstance(numbers, h5py.Dataset) or numbers.dtype.kind not in "fiu":
        raise DatasetError(f"{name}: its {key} is not numeric: check that it is the right file.")
    rows_shape = numbers.shape or ()
    if not rows_shape or rows_shape[1:] not in {*shapes, *(shape or (1,) for shape in shapes)}:
        needed = " or ".join(shape_text(("N", *shape)) for shape in shapes)
        raise DatasetError(
            f"{name}: its {key} is {shape_text(rows_shape)}, but {needed} is needed."
        )
    if missing := missing_filter(numbers):
        raise DatasetError(
            f"{name}: its {key} needs the filter {missing}, which is not installed here. Repack the"
            " file on its machine with h5repack -f GZIP=4, or set HDF5_PLUGIN_PATH to the"
            " filter's folder, such as hdf5plugin.PLUGIN_PATH."
        )
    block = math.prod(numbers.chunks or ()) * numbers.dtype.itemsize
    if block > CACHE_BYTES:  # each read would decompress all of it into memory
        raise DatasetError(
            f"{name}: its {key} has chunks of {formats.size(block)}, but at most"
            f" {formats.size(CACHE_BYTES)} are allowed: repack it with smaller ones, such as with"
            " h5repack."
        )
    return numbers


def _opened_column(file: h5py.File, key: str) -> Any:
    """The object under a key in this file; links to other files are refused."""
    try:
        is_here = isinstance(file.get(key, getlink=True), h5py.HardLink)
        data = file[key] if is_here else None
        is_elsewhere = isinstance(data, h5py.Dataset) and (data.external or data.is_virtual)
        if is_here and not is_elsewhere:
            return data
    except (KeyError, *UNREADABLE):
        raise _damaged(file) from None
    raise DatasetError(
        f"{name_of(file)}: its {key} is a link, or is in another file, which is not opened: copy"
        " the numbers into this file."
    )


def read(file: h5py.File, numbers: h5py.Dataset, begin: int, end: int) -> NDArray[np.float32]:
    """Rows `begin` to `end`. Raises DatasetError: they are damaged, or contain NaN or infinity."""
    key = numbers.name.lstrip("/")
    try:
        with np.errstate(over="ignore"):
            rows: NDArray[np.float32] = np.asarray(numbers[begin:end], np.float32)
    except UNREADABLE as error:  # a damaged chunk, or a chunk beyond the end of the file
        raise read_error(name_of(file), key, begin, error) from None
    if not np.isfinite(rows).all():
        raise DatasetError(
            f"{name_of(file)}: its {key} contains NaN, or a number above 3e38, in rows"
            f" {formats.count(begin)} to {formats.count(end - 1)}: correct the file, or leave it"
            " out."
        )
    return rows


def same_rows(file: h5py.File, columns: dict[str, h5py.Dataset]) -> int:
    """The number of rows of all columns. Raises DatasetError: they differ, or there are none."""
    counts = {key: len(numbers) for key, numbers in columns.items()}
    if len(set(counts.values())) > 1 or not min(counts.values()):
        rows = ", ".join(f"{formats.count(count)} of {key}" for key, count in counts.items())
        raise DatasetError(
            f"{name_of(file)} has different numbers of rows, or none ({rows}): correct the file, or"
            " leave it out."
        )
    return min(counts.values())


def parts(columns: dict[str, h5py.Dataset], rows: int, usual: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each part: `usual` rows, or the rows of a chunk, up to eight times that."""
    chunk_rows = max(
        (numbers.chunks[0] for numbers in columns.values() if numbers.chunks), default=1
    )
    step = max(usual, min(chunk_rows, 8 * usual))
    for begin in range(0, rows, step):
        yield begin, min(begin + step, rows)


def name_of(file: h5py.File) -> str:
    """The name in messages."""
    return readable(Path(file.filename).name)


def shape_text(shape: tuple[Any, ...]) -> str:
    """5,000 × 51 × 51 × 25."""
    return (
        " × ".join(
            formats.count(length) if isinstance(length, int) else str(length) for length in shape
        )
        or "1"
    )


def _keys(file: h5py.File) -> list[str]:
    try:
        return sorted(file)
    except UNREADABLE:
        raise _damaged(file) from None


def _damaged(file: h5py.File) -> DatasetError:
    return DatasetError(f"{name_of(file)} is damaged: {DOWNLOAD_AGAIN}.")


def _key_list(keys: list[str]) -> str:
    """The first keys of a file, shortened, since a stranger chose them."""
    short = (readable(key) for key in keys[:MOST_KEYS])
    names = [key if len(key) <= MOST_LETTERS else f"{key[: MOST_LETTERS - 1]}…" for key in short]
    more = [f"{formats.count(len(keys) - MOST_KEYS)} more"] if len(keys) > MOST_KEYS else []
    return ", ".join([*names, *more]) or "nothing"


def begins_as_hdf5(path: Path) -> bool:
    """Whether the first bytes are those of HDF5. Raises OSError."""
    with path.open("rb") as file:
        return image_files.kind_of(file) == image_files.HDF5


def open_error(path: Path, error: OSError) -> DatasetError:
    """The error for a file that h5py refuses to open."""
    message = str(error)
    if "unable to lock" in message:
        why = _lock_problem(error)
    elif "already open for write" in message:
        why = (
            "is marked as open for writing: close it in the program that writes it. If no program"
            " has it open, run h5clear -s on it"
        )
    elif error.errno:
        why = f"cannot be read ({os.strerror(error.errno)})"
    elif cut := _CUT.search(message):
        present, whole = (formats.count(int(size)) for size in cut.groups())
        why = f"is incomplete, {present} of {whole} bytes: {DOWNLOAD_AGAIN}"
    else:
        why = _wrong_kind(path) or f"is damaged ({_hdf5_reason(error)}): {DOWNLOAD_AGAIN}"
    return DatasetError(f"{readable(path.name)} {why}.")


def read_error(name: str, key: str, begin: int, error: Exception) -> DatasetError:
    """The error for rows that h5py cannot read."""
    if isinstance(error, OSError) and error.errno:
        return DatasetError(
            f"{name} cannot be read from row {formats.count(begin)} on"
            f" ({os.strerror(error.errno)}): check the disk."
        )
    return DatasetError(
        f"{name} is damaged: its {key} cannot be read from row {begin:,} on"
        f" ({_hdf5_reason(error)}): {DOWNLOAD_AGAIN}."
    )


def missing_filter(numbers: h5py.Dataset) -> str:
    """The filters of an array that are not installed, by name; empty when all are."""
    properties = numbers.id.get_create_plist()
    codes = [properties.get_filter(place)[0] for place in range(properties.get_nfilters())]
    missing = [code for code in codes if not h5py.h5z.filter_avail(code)]
    return ", ".join(
        f"{FILTERS[code]} ({code})" if code in FILTERS else str(code) for code in missing
    )


def _lock_problem(error: OSError) -> str:
    if error.errno in (errno.EAGAIN, errno.EACCES):
        return "is open for writing in another program: close it there, or wait"
    why = os.strerror(error.errno) if error.errno else _hdf5_reason(error)
    return f"cannot be locked ({why}): copy it to a local disk, or set HDF5_USE_FILE_LOCKING=FALSE"


def _wrong_kind(path: Path) -> str:
    """The kind of a file that is not HDF5, and what to do; "" for an HDF5 file."""
    try:
        is_empty = not path.stat().st_size
        with path.open("rb") as file:
            kind = image_files.kind_of(file)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if kind == image_files.HDF5:
        return ""
    if is_empty:
        return f"is empty: {DOWNLOAD_AGAIN}"
    if kind:
        advice = (
            "unpack it first"
            if image_files.holds_files(kind)
            else ADVICE.get(kind, "give the right one")
        )
        return f"is not an HDF5 file but {kind}: {advice}"
    return f"is not an HDF5 file: {DOWNLOAD_AGAIN}, or give the right one"


def _hdf5_reason(error: Exception) -> str:
    """The reason that HDF5 gives in brackets, at the end of h5py's message."""
    match = _REASON.search(str(error))
    return match[1].strip() if match else type(error).__name__
