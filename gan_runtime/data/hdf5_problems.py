"""Why an HDF5 file cannot be opened or read, and what to do about it."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import h5py

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import picture_files
from gan_runtime.data.picture_files import readable

FETCH = "fetch it again"
DOWNLOAD = "download the file itself"
SERVER_ERROR = f"a server may have answered with an error: {DOWNLOAD}"
WRITE_IT = "write its arrays into an HDF5 file with h5py"
ADVICE = {  # by the kind of a file
    picture_files.WEB_PAGE: f"the link led to a page instead of the file: {DOWNLOAD}",
    picture_files.XML: SERVER_ERROR,
    picture_files.JSON: SERVER_ERROR,
    picture_files.LFS_POINTER: "fetch the file itself with git lfs pull",
    picture_files.NUMPY: WRITE_IT,
    picture_files.ROOT: WRITE_IT,
    picture_files.NETCDF_3: "convert it with nccopy -k nc4",
    picture_files.HDF4: "convert it with h4toh5",
    picture_files.MACOS_METADATA: "give the file without ._ in its name",
    picture_files.ZEROS: f"an unfinished download looks so: {FETCH}",
}
# Filters that h5py does not include, by their number in the registry of the HDF Group.
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


def begins_as_hdf5(path: Path) -> bool:
    """By its first bytes. Raises OSError when it cannot be read."""
    with path.open("rb") as file:
        return picture_files.of(file) == picture_files.HDF5


def not_opened(path: Path, error: OSError) -> DatasetError:
    """The sentence for a file that h5py has refused to open."""
    said = str(error)
    if "unable to lock" in said:
        why = _not_locked(error)
    elif "already open for write" in said:
        why = (
            "is marked as open for writing, so a program writes it or ended without closing it:"
            " close it there, or run h5clear -s on it when no program has it open"
        )
    elif error.errno:
        why = f"cannot be read ({os.strerror(error.errno)})"
    elif cut := _CUT.search(said):
        there, whole = (int(size) for size in cut.groups())
        why = (
            f"is cut short, as a download or a copy did not finish: it has {there:,} of {whole:,}"
            f" bytes, so {FETCH}"
        )
    else:
        why = _other_kind(path) or f"is damaged ({_reason(error)}): {FETCH}"
    return DatasetError(f"{readable(path.name)} {why}.")


def not_read(name: str, key: str, begin: int, error: Exception) -> DatasetError:
    """The sentence for rows that h5py cannot read."""
    if isinstance(error, OSError) and error.errno:
        return DatasetError(
            f"{name} cannot be read from row {begin:,} on ({os.strerror(error.errno)})."
        )
    return DatasetError(
        f"{name} is damaged: its {key} cannot be read from row {begin:,} on ({_reason(error)}):"
        f" {FETCH}."
    )


def missing_filter(numbers: h5py.Dataset) -> str:
    """The filter that an array is packed with and that cannot be had here, by its name; empty
    when all are there.
    """
    packed = numbers.id.get_create_plist()
    codes = [packed.get_filter(place)[0] for place in range(packed.get_nfilters())]
    missing = [code for code in codes if not h5py.h5z.filter_avail(code)]
    return ", ".join(
        f"{FILTERS[code]} ({code})" if code in FILTERS else str(code) for code in missing
    )


def _not_locked(error: OSError) -> str:
    if error.errno in (errno.EAGAIN, errno.EACCES):
        return "is open for writing in another program: close it there, or wait until it is written"
    why = os.strerror(error.errno) if error.errno else _reason(error)
    return f"cannot be locked ({why}): copy it to a local disk, or set HDF5_USE_FILE_LOCKING=FALSE"


def _other_kind(path: Path) -> str:
    """What a file is that does not begin as an HDF5 file, and what to do; empty where it does."""
    try:
        is_empty = not path.stat().st_size
        with path.open("rb") as file:
            kind = picture_files.of(file)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if kind == picture_files.HDF5:
        return ""
    if is_empty:
        return f"is empty: {FETCH}"
    if kind:
        advice = (
            "unpack it first"
            if picture_files.holds_files(kind)
            else ADVICE.get(kind, "give the right one")
        )
        return f"is no HDF5 file but {kind}: {advice}"
    return f"is no HDF5 file, whatever its name ends in: {FETCH}, or give the right one"


def _reason(error: Exception) -> str:
    """What HDF5 says in brackets, at the end of h5py's message."""
    match = _REASON.search(str(error))
    return match[1].strip() if match else type(error).__name__
