"""What a run tells of its owner is left out of a bundle: names of hosts and folders, and the
address of a TPU.

Which fields that concerns is declared with them (records/record.py, `Sharing` and `Private`).
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gan_runtime.records import run_files
from gan_runtime.records.home import REPOSITORY
from gan_runtime.records.kinds import RECORDS
from gan_runtime.records.record import Private, Record, Sharing
from gan_runtime.records.run_folder import RunDir

# A path that begins at the root, up to its last "/"; names of folders may hold spaces and brackets.
_FOLDERS = re.compile(r"(?:file://|(?<![\w:/]))/(?=\S)(?:[^/\n:;,]+/)+")
_HOST_OF_URL = re.compile(r"(\w+://)[^/\s:\"']+")
_WORDS_NOBODY_OWNS = ("", "localhost")


class Privacy:
    """What must not be told of one run, gathered from its journals."""

    def __init__(
        self,
        run: RunDir,
        records: Iterable[dict[str, Any]],
        kinds: tuple[type[Record], ...] = RECORDS,
    ) -> None:
        self._kinds = kinds
        facts = [record["facts"] for record in records if isinstance(record.get("facts"), dict)]
        hosts = {str(fact.get("hostname", "")) for fact in facts} - set(_WORDS_NOBODY_OWNS)
        origins = {str(Path(str(fact.get("data_origin", ""))).parent) for fact in facts} - {
            ".",
            "/",
        }
        known = {
            *origins,
            str(run.path),
            str(run.path.parent.parent),
            str(REPOSITORY),
            str(Path.home()),
        } - {"/"}
        self._folders = sorted(known, key=len, reverse=True)
        self._hosts = [
            re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-])")
            for host in sorted(hosts, key=len, reverse=True)
        ]

    def spec(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options without the address of a TPU."""
        return {**options, "tpu_address": "local"} if "tpu_address" in options else options

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """A journal's record as others may read it."""
        marks = _marks(self._kinds).get(str(record.get("kind")))
        public = {name: self._without_folders(value) for name, value in record.items()}
        for name in public.keys() - {"kind", "attempt", "at"}:
            # Nothing is known of the fields of another version's record.
            for mark in (Sharing.PROSE,) if marks is None else marks.get(name, ()):
                public[name] = self._shared(public[name], mark)
        return public

    def _shared(self, value: Any, mark: Sharing | Private) -> Any:
        """What may go to others of a marked field."""
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
    """The lines of a journal: as they are where they hold numbers only, else as objects.

    What is no object is left out. Raises JournalError.
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
    """Kind → field → what its declaration says of bundles."""
    return {
        _name(kind): {
            name: tuple(mark for mark in field.metadata if isinstance(mark, Sharing | Private))
            for name, field in kind.model_fields.items()
        }
        for kind in kinds
    }


@functools.cache
def _numbers_only(kinds: tuple[type[Record], ...]) -> tuple[bytes, ...]:
    """How lines of kinds begin that tell of no host and no person."""
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
        return [_mapped(change, item) for item in value]
    return (
        {name: _mapped(change, item) for name, item in value.items()}
        if isinstance(value, dict)
        else value
    )
