"""Packs the numbers and images of ended runs into one file.

bundle.json                            {"format": 4, "program": "0.3.0"}; not in the oldest
quick-0007/spec.json                   the options
quick-0007/journal-supervisor.jsonl    the journals, without names of hosts and folders
quick-0007/samples/samples-00001.png   sample images by kind and epoch
quick-0007/…/rollout-0001-naive.npz    films of rollouts, unless left out

A bundle has no checkpoints, no log, and no names of hosts and folders. Without checkpoints, an
imported run cannot be resumed.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import io
import itertools
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gan_runtime import __version__
from gan_runtime.base import disk
from gan_runtime.base.errors import (
    BundleError,
    JournalError,
    PictureError,
    RunStateError,
    SpecError,
    quoted,
)
from gan_runtime.catalog.domain import DOMAINS
from gan_runtime.records import image_files, journal, run_files
from gan_runtime.records.home import REPOSITORY, SHARE, SUBMITTED_NAME
from gan_runtime.records.journal import ENDED
from gan_runtime.records.kinds import RECORDS
from gan_runtime.records.record import Private, Record, Sharing
from gan_runtime.records.run_files import FILMS_FOLDER
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.spec.run_options import PRIVATE

MANIFEST = "bundle.json"
FORMAT = 4  # raised when older programs cannot read new bundles
MAX_BYTES = 2_000_000_000  # unpacked, so that a wrong file cannot fill the disk
MAX_FILM_BYTES = 2_000_000_000  # of all films after unpacking; checking them takes about 10 s
MAX_MEMBERS = 100_000
# Compression ratio of a file above RATIO_BYTES. Journals have about 6.
MAX_RATIO, RATIO_BYTES = 100, 1_000_000
_FILES = re.compile(
    r"(?P<spec>spec\.json)|(?P<decisions>journal-(?:supervisor|launcher)\.jsonl)|(?P<journal>journal-[a-z0-9]{1,20}\.jsonl)|samples/(?P<picture>[a-z][a-z0-9_]{0,39}-[0-9]{5,9}\.png)"
    rf"|{FILMS_FOLDER}/(?P<film>{image_files.FILM_NAME.pattern})"
)
_MAX_BYTES_OF = {
    "manifest": 10_000,
    "spec": 100_000,
    "decisions": 20_000_000,  # of owner and launcher, a few kB per hour
    "journal": 1_000_000_000,
    "picture": image_files.MAX_GRID_BYTES,
    "film": image_files.MAX_FILM_BYTES,
}


def examples() -> list[Path]:
    """The example bundles of the project; empty in a copy without them."""
    names = ("paper", *(name for domain in DOMAINS.values() for name in domain.examples))
    return [file for file in map(example, names) if file.exists()]


def example(name: str) -> Path:
    """The file of an example."""
    return SHARE / "examples" / f"{name}.zip"


def most_bytes(name: str) -> int | None:
    """The most unpacked bytes of a member; None if no bundle can contain it."""
    if name == MANIFEST:
        return _MAX_BYTES_OF["manifest"]
    run_id, _, file = name.partition("/")
    match = _FILES.fullmatch(file) if SUBMITTED_NAME.fullmatch(run_id) else None
    return _MAX_BYTES_OF[str(match.lastgroup)] if match else None


def is_bloated(member: zipfile.ZipInfo) -> bool:
    """Whether a small member would unpack to a large, repetitive file."""
    return member.file_size > max(RATIO_BYTES, MAX_RATIO * member.compress_size)


def is_whole(run: RunDir) -> bool:
    """Whether the run has readable options, and journals from its submission to an end."""
    try:
        run.spec()
        for path in run.journals():
            collections.deque(journal.chunks(path), maxlen=0)
        first = journal.first(run.supervisor_journal)
        return isinstance(first, journal.Created) and latest_status(run).status in ENDED
    except (SpecError, RunStateError, JournalError, OSError, ValueError):
        return False


def pack(
    runs: list[RunDir], target: Path, prefix: str = "", overwrite: bool = False, films: bool = True
) -> int:
    """Writes a bundle of ended runs; returns its bytes.

    `prefix`: of the ids of runs and studies. `films`: includes rollouts, some MB each.

    Raises:
        RunStateError: a run waits or trains.
        BundleError: a run has an invalid name or is not whole, they exceed a limit, or the file
            cannot be written.
        TargetError: the file exists and `overwrite` is False, or it is not regular.
    """
    for run in runs:
        _check(run, prefix)
    try:
        with disk.whole_target(target, overwrite) as temporary:
            with zipfile.ZipFile(temporary, "x", zipfile.ZIP_DEFLATED, compresslevel=9) as bundle:
                bundle.writestr(MANIFEST, json.dumps({"format": FORMAT, "program": __version__}))
                film_bytes = 0
                for run in runs:
                    _pack_run(bundle, run, prefix)
                    film_bytes += _pack_films(bundle, run, prefix) if films else 0
                _check_size(bundle, film_bytes)
            size = temporary.stat().st_size
    except OSError as error:
        raise BundleError(
            f"{target} cannot be written ({error.strerror}): choose another file with --to."
        ) from None
    return size


def _check(run: RunDir, prefix: str) -> None:
    if not SUBMITTED_NAME.fullmatch(f"{prefix}{run.run_id}"):
        raise BundleError(
            f"no home can import a run called {quoted(prefix + run.run_id)}: use lowercase letters,"
            " digits and single '-', and a number of 4 to 8 digits last, such as"
            " example-quick-0007."
        )
    status = latest_status(run).status
    if status not in ENDED:
        raise RunStateError(f"run {run.run_id} is {status}: stop it first, then bundle it.")
    for path in run.journals():
        size, most = path.stat().st_size, most_bytes(f"{prefix}{run.run_id}/{path.name}") or 0
        if size > most:
            raise BundleError(
                f"run {run.run_id} cannot be bundled, as {path.name} has {size / 1e6:,.0f} MB, and"
                f" at most {most / 1e6:,.0f} MB are allowed: leave that run out."
            )
    if not is_whole(run):
        raise BundleError(
            f"run {run.run_id} cannot be bundled, as its options or journals cannot be read: leave"
            " it out."
        )


def _pack_run(bundle: zipfile.ZipFile, run: RunDir, prefix: str) -> None:
    folder = f"{prefix}{run.run_id}"
    journals = run.journals()
    records = (record for path in journals for record in records_of(path))
    privacy = Privacy(run, (record for record in records if isinstance(record, dict)))
    bundle.writestr(
        f"{folder}/spec.json", json.dumps(privacy.spec(run.spec().model_dump()), indent=2)
    )
    for path in journals:
        with bundle.open(f"{folder}/{path.name}", "w") as member:
            for record in records_of(path):
                member.write(_line(privacy, record, prefix) + b"\n")
    for path in sorted(run.samples.glob("*.png")):
        if most_bytes(f"{folder}/samples/{path.name}"):
            with contextlib.suppress(PictureError):  # a damaged grid, which no home could import
                bundle.writestr(
                    f"{folder}/samples/{path.name}",
                    image_files.read_grid(run, f"{run.samples.name}/{path.name}"),
                )


def _pack_films(bundle: zipfile.ZipFile, run: RunDir, prefix: str) -> int:
    """Packs undamaged films that a record names; returns their bytes, unpacked."""
    film_bytes = 0
    for path in image_files.referenced_films(run):
        file = f"{run.films.name}/{path.name}"
        with contextlib.suppress(PictureError):
            film_bytes += image_files.read_film(run, file).nbytes
            # An npz file is already compressed.
            bundle.writestr(f"{prefix}{run.run_id}/{file}", path.read_bytes(), zipfile.ZIP_STORED)
    return film_bytes


def _check_size(bundle: zipfile.ZipFile, film_bytes: int) -> None:
    """Raises BundleError where no home could import the bundle."""
    members = bundle.infolist()
    if bloated := next(filter(is_bloated, members), None):
        raise BundleError(
            f"{bloated.filename} is too repetitive for measurements"
            f" ({bloated.file_size / 1e6:,.0f} MB in {bloated.compress_size / 1e3:,.0f} kB), so no"
            " home could import it: leave that run out."
        )
    size = sum(member.file_size for member in members)
    if size > MAX_BYTES or film_bytes > MAX_FILM_BYTES or len(members) > MAX_MEMBERS:
        raise BundleError(
            f"these runs hold {size / 1e9:.1f} GB in {len(members):,} files and"
            f" {film_bytes / 1e9:.1f} GB of films. A bundle has at most {MAX_BYTES / 1e9:.0f}"
            f" GB, {MAX_MEMBERS:,} files and {MAX_FILM_BYTES / 1e9:.0f} GB of films: bundle fewer"
            " runs, or give --no-films."
        )


def _line(privacy: Privacy, record: bytes | dict[str, Any], prefix: str) -> bytes:
    """A line without private parts, and with the prefix of the study's id."""
    if isinstance(record, bytes):
        return record
    public = privacy.record(record)
    if isinstance(public.get("study"), dict):
        public["study"]["study_id"] = f"{prefix}{public['study']['study_id']}"
    return json.dumps(public, separators=(",", ":")).encode()


# A path that begins at the root, up to its last "/"; names of folders may hold spaces and brackets.
_FOLDERS = re.compile(r"(?:file://|(?<![\w:/]))/(?=\S)(?:[^/\n:;,]+/)+")
_HOST_OF_URL = re.compile(r"(\w+://)[^/\s:\"']+")
_PUBLIC_HOSTS = ("", "localhost")


class Privacy:
    """Removes names of hosts and folders, and the address of a TPU, from the records of a run.

    Field types declare what is private (`Sharing` and `Private`).
    """

    def __init__(
        self,
        run: RunDir,
        records: Iterable[dict[str, Any]],
        kinds: tuple[type[Record], ...] = RECORDS,
    ) -> None:
        self._kinds = kinds
        facts = [record["facts"] for record in records if isinstance(record.get("facts"), dict)]
        hosts = {str(fact.get("hostname", "")) for fact in facts} - set(_PUBLIC_HOSTS)
        origins = {str(Path(str(fact.get("data_origin", ""))).parent) for fact in facts} - {
            ".",
            "/",
        }
        folders = {
            *origins,
            str(run.path),
            str(run.path.parent.parent),
            str(REPOSITORY),
            str(Path.home()),
        } - {"/"}
        self._folders = sorted(folders, key=len, reverse=True)
        self._hosts = [
            re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-])")
            for host in sorted(hosts, key=len, reverse=True)
        ]

    def spec(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options without the address of a TPU or the name of a cluster."""
        return {**options, **{name: PRIVATE[name] for name in PRIVATE if name in options}}

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record without its private parts."""
        marks = _marks(self._kinds).get(str(record.get("kind")))
        public = {name: self._without_folders(value) for name, value in record.items()}
        for name in public.keys() - {"kind", "attempt", "at"}:
            # In a record of another version, every field can be private.
            for mark in (Sharing.PROSE,) if marks is None else marks.get(name, ()):
                public[name] = self._shared(public[name], mark)
        return public

    def _shared(self, value: Any, mark: Sharing | Private) -> Any:
        """The public part of a marked field."""
        match mark:
            case Sharing.HOME:
                return None
            case Sharing.PROSE:
                return _mapped(self._without_hosts, value)
            case Sharing.OPTIONS if isinstance(value, dict):
                return self.spec(value)
            case Private() if isinstance(value, dict):
                return {name: entry for name, entry in value.items() if name != mark.name}
        return value

    def _without_folders(self, value: Any) -> Any:
        return _mapped(self._cut, value)

    def _cut(self, text: str) -> str:
        for folder in self._folders:
            text = text.replace(f"{folder}/", "").replace(folder, Path(folder).name)
        return _FOLDERS.sub("", text)

    def _without_hosts(self, text: str) -> str:
        for host in self._hosts:
            text = host.sub("host", text)
        return _HOST_OF_URL.sub(r"\1host", text)


def records_of(
    path: Path, kinds: tuple[type[Record], ...] = RECORDS
) -> Iterator[bytes | dict[str, Any]]:
    """The records of a journal: unchanged lines where they contain numbers only, else objects.

    Skips invalid lines. Raises JournalError.
    """
    bad, numbers_only = run_files.BadLines(path), _numbers_only(kinds)
    for line in itertools.chain.from_iterable(map(io.BytesIO, run_files.pieces(path))):
        record = _object(line)
        if record is None:
            bad.count()
        else:
            yield line.rstrip() if any(kind in line for kind in numbers_only) else record


@functools.cache
def _marks(kinds: tuple[type[Record], ...]) -> dict[str, dict[str, tuple[Sharing | Private, ...]]]:
    """Kind → field → its marks."""
    return {
        _name(kind): {
            name: tuple(mark for mark in field.metadata if isinstance(mark, Sharing | Private))
            for name, field in kind.model_fields.items()
        }
        for kind in kinds
    }


@functools.cache
def _numbers_only(kinds: tuple[type[Record], ...]) -> tuple[bytes, ...]:
    """The text in lines of kinds that contain numbers only."""
    return tuple(f'"kind":"{_name(kind)}"'.encode() for kind in kinds if kind.is_numbers_only)


def _name(kind: type[Record]) -> str:
    return str(kind.model_fields["kind"].default)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # torn by a crash
        return None
    return record if isinstance(record, dict) else None


def _mapped(change: Any, value: Any) -> Any:
    """`change` applied to every text in `value`."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(change, element) for element in value]
    return (
        {name: _mapped(change, entry) for name, entry in value.items()}
        if isinstance(value, dict)
        else value
    )
