"""Unpacking: a bundle is looked through before anything of it is written, and comes in whole
or not at all.
"""

from __future__ import annotations

import collections
import contextlib
import json
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gan_runtime import __version__
from gan_runtime.base import disk, zip_directory
from gan_runtime.base.errors import BundleError, HomeError, PictureError, quoted
from gan_runtime.base.zip_directory import CrowdedZipError
from gan_runtime.bundles.packing import (
    FORMAT,
    MANIFEST,
    MAX_BYTES,
    MAX_FILM_BYTES,
    MAX_MEMBERS,
    MAX_RATIO,
    is_bloated,
    is_whole,
    most_bytes,
)
from gan_runtime.records import image_files, journal, run_folder
from gan_runtime.records.home import Home, keep_count
from gan_runtime.records.run_folder import RunDir

CHUNK_BYTES = 1_000_000
_ENCRYPTED = 0x1  # of the flags of a member
_NOT_READABLE = (
    zipfile.BadZipFile,
    NotImplementedError,  # a version of the format that nobody has yet
    RuntimeError,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    OverflowError,
    OSError,
)


def unpack(source: Path, home: Home) -> list[str]:
    """Loads the runs of a bundle into a home; those whose ids are taken there already are left
    alone. Returns the new ids.

    Raises:
        BundleError: no bundle, damaged, of a newer program, or with files that do not belong into
            one; nothing is loaded.
        HomeError: the home cannot be written, or its disk has too little space; nothing is loaded.
    """
    with _opened(source) as bundle:
        members = _checked(bundle, source)
        home.prepare()
        disk.require(home.runs, sum(member.file_size for member in members), f"what {source} holds")
        with tempfile.TemporaryDirectory(dir=home.runs, prefix=".import-") as aside:
            for member in members:
                _extract(bundle, member, source, Path(aside), home)
            folders = sorted(Path(aside).iterdir())
            for run in map(RunDir, folders):
                if not is_whole(run):
                    raise BundleError(_not_whole(run.run_id, bundle, source))
                _check_pictures(run, source)
                _without_pins(run)
            _check_films([RunDir(folder) for folder in folders], source)
            taken = {run.run_id for run in home.run_dirs()}
            return _place([folder for folder in folders if folder.name not in taken], home)


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[zipfile.ZipFile]:
    try:
        if not stat.S_ISREG(source.stat().st_mode):  # opening a pipe would wait for its other end
            raise BundleError(f"{source} is not a plain file: give a file made by `bundle`.")
    except (OSError, ValueError) as error:
        raise _not_opened(source, error) from None
    with contextlib.ExitStack() as stack:
        try:
            bundle = stack.enter_context(zip_directory.opened(source, MAX_MEMBERS))
        except CrowdedZipError:
            raise _too_large(source) from None
        except _NOT_READABLE as error:
            raise _not_opened(source, error) from None
        yield bundle


def _not_opened(source: Path, error: Exception) -> BundleError:
    reason = getattr(error, "strerror", None) or "it is no zip file, or damaged"
    return BundleError(f"{source} cannot be read ({reason}): give a file made by `bundle`.")


def _too_large(source: Path) -> BundleError:
    return BundleError(
        f"{source} holds more than {MAX_BYTES / 1e9:.0f} GB or {MAX_MEMBERS:,} files: give a"
        " smaller bundle."
    )


def _checked(bundle: zipfile.ZipFile, source: Path) -> list[zipfile.ZipInfo]:
    """The files of the runs, every byte of which can be read."""
    members = bundle.infolist()
    if MANIFEST in bundle.namelist():
        _check_format(bundle, source)
    _check_names(members, source)
    for member in members:
        collections.deque(_chunks(bundle, member, source), maxlen=0)
    return [member for member in members if member.filename != MANIFEST]


def _check_names(members: list[zipfile.ZipInfo], source: Path) -> None:
    """Every name is one that `bundle` would give, once, and what it names is neither too
    large nor hidden.
    """
    for member in members:
        most = most_bytes(member.filename)
        if most is None or member.orig_filename != member.filename:  # zipfile cuts a name at a NUL
            name = quoted(member.orig_filename)
            raise BundleError(
                f"{source} holds {name}, which belongs into no bundle: give a file made by"
                " `bundle`."
            )
        if member.file_size > most:
            size = (
                f"{member.file_size / 1e6:,.0f} MB, more than the {most / 1e6:g} MB that a bundle"
                " may have there"
            )
            raise BundleError(
                f"{member.filename} in {source} has {size}: give a file made by `bundle`."
            )
        if is_bloated(member):
            raise BundleError(
                f"{member.filename} in {source} would unpack to"
                f" {member.file_size / max(1, member.compress_size):,.0f} times its size, but a"
                f" bundle may have {MAX_RATIO} there: give a file made by `bundle`."
            )
        if member.flag_bits & _ENCRYPTED or member.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            raise BundleError(
                f"{member.filename} in {source} is encrypted or packed as no bundle is: make the"
                " bundle anew."
            )
    names = [member.filename for member in members]
    twice = [name for name, count in collections.Counter(names).items() if count > 1]
    if twice:
        raise BundleError(f"{source} holds {twice[0]} twice: give a file made by `bundle`.")
    if set(names) <= {MANIFEST}:
        raise BundleError(f"{source} holds no run: give a file made by `bundle`.")
    if len(names) > MAX_MEMBERS or sum(member.file_size for member in members) > MAX_BYTES:
        raise _too_large(source)


def _without_pins(run: RunDir) -> None:
    """Tags and notes come along; which runs are pinned or hidden is each home's own matter."""
    marked = run_folder.marks_of(run)
    if marked.pinned or marked.hidden:
        journal.append(
            run.supervisor_journal, 1, journal.Marked(pinned=False, hidden=False, asker="import")
        )


def _check_pictures(run: RunDir, source: Path) -> None:
    for path in sorted(run.samples.glob("*")):
        try:
            image_files.read_grid(run, f"{run.samples.name}/{path.name}")
        except PictureError as error:
            raise BundleError(
                f"{run.run_id}/samples/{path.name} in {source} is no sample grid ({error}): make"
                " the bundle anew."
            ) from None


def _check_films(runs: list[RunDir], source: Path) -> None:
    """One at a time, so that no more than one is in memory."""
    film_bytes = 0
    for run in runs:
        for path in sorted(run.films.glob("*")):
            try:
                film_bytes += image_files.read_film(run, f"{run.films.name}/{path.name}").nbytes
            except PictureError as error:
                raise BundleError(
                    f"{run.run_id}/{run.films.name}/{path.name} in {source} is no film ({error}):"
                    " make the bundle anew."
                ) from None
            if film_bytes > MAX_FILM_BYTES:
                raise BundleError(
                    f"{source} holds more than {MAX_FILM_BYTES / 1e9:.0f} GB of films: give a"
                    " smaller bundle."
                )


def _check_format(bundle: zipfile.ZipFile, source: Path) -> None:
    manifest = _manifest(bundle, source)
    if manifest["format"] > FORMAT:
        raise BundleError(_newer(manifest, source))


def _manifest(bundle: zipfile.ZipFile, source: Path) -> dict[str, Any]:
    """`format` and `program`; those of the first bundles, which have no manifest, when there
    is none.
    """
    if MANIFEST not in bundle.namelist():
        return {"format": 0, "program": "0.1.0"}
    try:
        member = bundle.getinfo(MANIFEST)
        text = (
            b"".join(_chunks(bundle, member, source))
            if member.file_size <= (most_bytes(MANIFEST) or 0)
            else b""
        )
        said = json.loads(text)
        return {"format": int(said["format"]), "program": str(said["program"])}
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise BundleError(
            f"{MANIFEST} in {source} says of no format that it has: make the bundle anew."
        ) from None


def _not_whole(run_id: str, bundle: zipfile.ZipFile, source: Path) -> str:
    manifest = _manifest(bundle, source)
    if _version(manifest["program"]) > _version(__version__):
        return _newer(manifest, source)
    return f"run {run_id} in {source} is not whole: make the bundle anew."


def _newer(manifest: dict[str, Any], source: Path) -> str:
    made_by = quoted(manifest["program"])
    return (
        f"{source} was made by a newer version of this program ({made_by}, this is {__version__}):"
        " update this one first."
    )


def _version(text: str) -> list[int]:
    return [int(part) for part in text.split(".") if part.isascii() and part.isdecimal()]


def _chunks(bundle: zipfile.ZipFile, member: zipfile.ZipInfo, source: Path) -> Iterator[bytes]:
    """The bytes of a member, never more than its header promises.

    Raises BundleError when they cannot be read.
    """
    try:
        with bundle.open(member) as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except _NOT_READABLE:
        raise BundleError(
            f"{member.filename} in {source} is damaged: get the file again, or make the bundle"
            " anew."
        ) from None


def _extract(
    bundle: zipfile.ZipFile, member: zipfile.ZipInfo, source: Path, aside: Path, home: Home
) -> None:
    chunks = _chunks(bundle, member, source)
    target = aside / member.filename
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
    except OSError as error:
        raise HomeError.not_written(home.runs, error) from None


def _place(folders: list[Path], home: Home) -> list[str]:
    """Moves whole runs to their places; when one cannot be moved, none is."""
    placed: list[Path] = []
    try:
        keep_count(home.runs)
        for folder in folders:
            placed.append(folder.rename(home.runs / folder.name))
    except OSError as error:
        for path in placed:
            shutil.rmtree(path, ignore_errors=True)
        raise HomeError.not_written(home.runs, error) from None
    return [path.name for path in placed]
