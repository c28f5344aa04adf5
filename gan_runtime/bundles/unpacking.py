"""Unpacking: a bundle is checked before anything is written, and imported whole or not at all."""

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
from gan_runtime.base import disk
from gan_runtime.base.errors import BundleError, HomeError, PictureError, quoted
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
from gan_runtime.records import image_files, journal, run_files, run_folder
from gan_runtime.records.home import Home, keep_count
from gan_runtime.records.run_folder import RunDir

CHUNK_BYTES = 1_000_000
_USE_A_BUNDLE = "use a file made by `bundle`."
_AGAIN = "make the bundle again."
_ENCRYPTED = 0x1  # of the flags of a member
_NOT_READABLE = (
    zipfile.BadZipFile,
    NotImplementedError,  # an unknown version of the format
    RuntimeError,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    OverflowError,
    OSError,
)


def unpack(source: Path, home: Home) -> list[str]:
    """Imports the runs of a bundle, except those whose ids exist; returns the new ids.

    Raises:
        BundleError: the file is no bundle, damaged, of a newer program, or has other files; nothing
            is imported.
        HomeError: the home cannot be written, or its disk has too little space; nothing is
            imported.
    """
    with _opened(source) as bundle:
        members = _checked(bundle, source)
        home.prepare()
        disk.require(
            home.runs, sum(member.file_size for member in members), f"the import of {source}"
        )
        with tempfile.TemporaryDirectory(dir=home.runs, prefix=".import-") as temporary:
            for member in members:
                _extract(bundle, member, source, Path(temporary), home)
            folders = sorted(Path(temporary).iterdir())
            for run in map(RunDir, folders):
                if not is_whole(run):
                    raise BundleError(_not_whole(run.run_id, bundle, source))
                _check_pictures(run, source)
                _without_pins(run)
            _check_films([RunDir(folder) for folder in folders], source)
            existing = {run.run_id for run in home.run_dirs()}
            return place([folder for folder in folders if folder.name not in existing], home)


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[zipfile.ZipFile]:
    try:
        if not stat.S_ISREG(source.stat().st_mode):  # opening a pipe would block
            raise BundleError(f"{source} is not a regular file: {_USE_A_BUNDLE}")
    except (OSError, ValueError) as error:
        raise _not_opened(source, error) from None
    with contextlib.ExitStack() as stack:
        try:
            bundle = stack.enter_context(run_files.open_zip(source, MAX_MEMBERS))
        except run_files.CrowdedZipError:
            raise _too_large(source) from None
        except _NOT_READABLE as error:
            raise _not_opened(source, error) from None
        yield bundle


def _not_opened(source: Path, error: Exception) -> BundleError:
    reason = getattr(error, "strerror", None) or "it is not a zip file, or damaged"
    return BundleError(f"{source} cannot be read ({reason}): {_USE_A_BUNDLE}")


def _too_large(source: Path) -> BundleError:
    return BundleError(
        f"{source} contains more than {MAX_BYTES / 1e9:.0f} GB or {MAX_MEMBERS:,} files: use a"
        " smaller bundle."
    )


def _checked(bundle: zipfile.ZipFile, source: Path) -> list[zipfile.ZipInfo]:
    """The files of the runs, all of them readable."""
    members = bundle.infolist()
    if MANIFEST in bundle.namelist():
        _check_format(bundle, source)
    _check_names(members, source)
    for member in members:
        collections.deque(_chunks(bundle, member, source), maxlen=0)
    return [member for member in members if member.filename != MANIFEST]


def _check_names(members: list[zipfile.ZipInfo], source: Path) -> None:
    """Checks that every name is unique and one that `bundle` writes, and that no member is too
    large or encrypted.
    """
    for member in members:
        most = most_bytes(member.filename)
        if most is None or member.orig_filename != member.filename:  # zipfile cuts a name at a NUL
            name = quoted(member.orig_filename)
            raise BundleError(
                f"{source} contains {name}, which a bundle must not contain: {_USE_A_BUNDLE}"
            )
        if member.file_size > most:
            raise BundleError(
                f"{member.filename} in {source} has {member.file_size / 1e6:,.0f} MB, more than the"
                f" {most / 1e6:g} MB allowed: {_USE_A_BUNDLE}"
            )
        if is_bloated(member):
            raise BundleError(
                f"{member.filename} in {source} would unpack to"
                f" {member.file_size / max(1, member.compress_size):,.0f} times its size, more than"
                f" the {MAX_RATIO} allowed: {_USE_A_BUNDLE}"
            )
        if member.flag_bits & _ENCRYPTED or member.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            raise BundleError(
                f"{member.filename} in {source} is encrypted, or uses another compression: {_AGAIN}"
            )
    names = [member.filename for member in members]
    twice = [name for name, count in collections.Counter(names).items() if count > 1]
    if twice:
        raise BundleError(f"{source} contains {twice[0]} twice: {_USE_A_BUNDLE}")
    if set(names) <= {MANIFEST}:
        raise BundleError(f"{source} contains no run: {_USE_A_BUNDLE}")
    if len(names) > MAX_MEMBERS or sum(member.file_size for member in members) > MAX_BYTES:
        raise _too_large(source)


def _without_pins(run: RunDir) -> None:
    """Imports tags and notes, but not which runs are pinned or hidden."""
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
                f"{run.run_id}/samples/{path.name} in {source} is not a sample grid ({error}):"
                f" {_AGAIN}"
            ) from None


def _check_films(runs: list[RunDir], source: Path) -> None:
    """Checks films one at a time, so that at most one is in memory."""
    film_bytes = 0
    for run in runs:
        for path in sorted(run.films.glob("*")):
            try:
                film_bytes += image_files.read_film(run, f"{run.films.name}/{path.name}").nbytes
            except PictureError as error:
                raise BundleError(
                    f"{run.run_id}/{run.films.name}/{path.name} in {source} is not a film"
                    f" ({error}): {_AGAIN}"
                ) from None
            if film_bytes > MAX_FILM_BYTES:
                raise BundleError(
                    f"{source} contains more than {MAX_FILM_BYTES / 1e9:.0f} GB of films: use a"
                    " smaller bundle."
                )


def _check_format(bundle: zipfile.ZipFile, source: Path) -> None:
    manifest = _manifest(bundle, source)
    if manifest["format"] > FORMAT:
        raise BundleError(_newer(manifest, source))


def _manifest(bundle: zipfile.ZipFile, source: Path) -> dict[str, Any]:
    """`format` and `program`; of the oldest bundles, which have no manifest, 0 and 0.1.0."""
    if MANIFEST not in bundle.namelist():
        return {"format": 0, "program": "0.1.0"}
    try:
        member = bundle.getinfo(MANIFEST)
        text = (
            b"".join(_chunks(bundle, member, source))
            if member.file_size <= (most_bytes(MANIFEST) or 0)
            else b""
        )
        manifest = json.loads(text)
        return {"format": int(manifest["format"]), "program": str(manifest["program"])}
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise BundleError(f"{MANIFEST} in {source} has no format: {_AGAIN}") from None


def _not_whole(run_id: str, bundle: zipfile.ZipFile, source: Path) -> str:
    manifest = _manifest(bundle, source)
    if _version(manifest["program"]) > _version(__version__):
        return _newer(manifest, source)
    return f"run {run_id} in {source} is not whole: {_AGAIN}"


def _newer(manifest: dict[str, Any], source: Path) -> str:
    made_by = quoted(manifest["program"])
    return (
        f"{source} was made by a newer version of this program ({made_by}, this is {__version__}):"
        " update this program first."
    )


def _version(text: str) -> list[int]:
    return [int(part) for part in text.split(".") if part.isascii() and part.isdecimal()]


def _chunks(bundle: zipfile.ZipFile, member: zipfile.ZipInfo, source: Path) -> Iterator[bytes]:
    """The bytes of a member, up to the size in its header. Raises BundleError."""
    try:
        with bundle.open(member) as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except _NOT_READABLE:
        raise BundleError(
            f"{member.filename} in {source} is damaged: copy the file again, or {_AGAIN}"
        ) from None


def _extract(
    bundle: zipfile.ZipFile, member: zipfile.ZipInfo, source: Path, folder: Path, home: Home
) -> None:
    chunks = _chunks(bundle, member, source)
    target = folder / member.filename
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
    except OSError as error:
        raise HomeError.not_written(home.runs, error) from None


def place(folders: list[Path], home: Home) -> list[str]:
    """Moves all runs into the home, or none; returns their ids."""
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
