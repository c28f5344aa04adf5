"""Why an HDF5 file cannot be opened or read, and what to do about it."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import h5py

from gan_runtime.data.picture_files import readable
from gan_runtime.errors import DatasetError

SIGNATURE = b"\x89HDF\r\n\x1a\n"
FETCH = "fetch it again"
UNPACK = "unpack it first"
WRITE_IT = "write its arrays into an HDF5 file with h5py"
HEAD_BYTES = 512
# How files of other kinds begin, in small letters, what they are, and what to do.
BEGINNINGS = (
    (b"<!doctype", "a web page", "the link led to a page instead of the file: download the file itself"),
    (b"<html", "a web page", "the link led to a page instead of the file: download the file itself"),
    (b"<?xml", "XML text", "a server may have answered with an error: download the file itself"),
    (b"{", "JSON text", "a server may have answered with an error: download the file itself"),
    (b"version https://git-lfs", "a pointer of Git LFS", "fetch the file itself with git lfs pull"),
    (b"\x1f\x8b", "packed with gzip", UNPACK),
    (b"pk\x03\x04", "a zip", UNPACK),
    (b"bzh", "packed with bzip2", UNPACK),
    (b"\xfd7zxz", "packed with xz", UNPACK),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", UNPACK),
    (b"7z\xbc\xaf", "a 7z archive", UNPACK),
    (b"\x93numpy", "a NumPy array", WRITE_IT),
    (b"root", "a ROOT file", WRITE_IT),
    (b"cdf", "a NetCDF 3 file", "convert it with nccopy -k nc4"),
    (b"\x0e\x03\x13\x01", "an HDF4 file", "convert it with h4toh5"),
    (b"\0\x05\x16\x07", "what macOS stores about another file", "give the file without ._ in its name"),
    (bytes(16), "only zeros at its beginning, as an unfinished download is", FETCH),
)
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
        return file.read(len(SIGNATURE)) == SIGNATURE


def not_opened(path: Path, error: OSError) -> DatasetError:
    """The sentence for a file that h5py has refused to open."""
    said = str(error)
    if "unable to lock" in said:
        why = _not_locked(error)
    elif "already open for write" in said:
        why = (
            "is marked as open for writing, so a program writes it or ended without closing it: close it there, "
            "or run h5clear -s on it when no program has it open"
        )
    elif error.errno:
        why = f"cannot be read ({os.strerror(error.errno)})"
    elif cut := _CUT.search(said):
        there, whole = (int(size) for size in cut.groups())
        why = f"is cut short, as a download or a copy did not finish: it has {there:,} of {whole:,} bytes, so {FETCH}"
    else:
        why = _other_kind(path) or f"is damaged ({_reason(error)}): {FETCH}"
    return DatasetError(f"{readable(path.name)} {why}.")


def not_read(name: str, key: str, begin: int, error: Exception) -> DatasetError:
    """The sentence for rows that h5py cannot read."""
    if isinstance(error, OSError) and error.errno:
        return DatasetError(f"{name} cannot be read from row {begin:,} on ({os.strerror(error.errno)}).")
    return DatasetError(
        f"{name} is damaged: its {key} cannot be read from row {begin:,} on ({_reason(error)}): {FETCH}."
    )


def missing_filter(numbers: h5py.Dataset) -> str:
    """The filter that an array is packed with and that cannot be had here, by its name; empty when all are there."""
    packed = numbers.id.get_create_plist()
    codes = [packed.get_filter(place)[0] for place in range(packed.get_nfilters())]
    missing = [code for code in codes if not h5py.h5z.filter_avail(code)]
    return ", ".join(f"{FILTERS[code]} ({code})" if code in FILTERS else str(code) for code in missing)


def _not_locked(error: OSError) -> str:
    if error.errno in (errno.EAGAIN, errno.EACCES):
        return "is open for writing in another program: close it there, or wait until it is written"
    why = os.strerror(error.errno) if error.errno else _reason(error)
    return f"cannot be locked ({why}): copy it to a local disk, or set HDF5_USE_FILE_LOCKING=FALSE"


def _other_kind(path: Path) -> str:
    """What a file is that does not begin as an HDF5 file, and what to do; empty where it does."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if head.startswith(SIGNATURE):
        return ""
    if not head:
        return f"is empty: {FETCH}"
    first = head.lstrip(b" \t\r\n\xef\xbb\xbf").lower()
    for beginning, kind, advice in BEGINNINGS:
        if first.startswith(beginning):
            return f"is no HDF5 file but {kind}: {advice}"
    return f"is no HDF5 file, whatever its name ends in: {FETCH}, or give the right one"


def _reason(error: Exception) -> str:
    """What HDF5 says in brackets, at the end of h5py's message."""
    match = _REASON.search(str(error))
    return match[1].strip() if match else type(error).__name__
