"""What a run tells of its owner is left out of a bundle: names of hosts and folders, and the address of a TPU."""

from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gan_runtime.records import lines
from gan_runtime.records.home import REPOSITORY
from gan_runtime.records.run_folder import RunDir

# A path that begins at the root, up to its last "/"; names of folders may hold spaces and brackets.
_FOLDERS = re.compile(r"(?:file://|(?<![\w:/]))/(?=\S)(?:[^/\n:;,]+/)+")
_HOST_OF_URL = re.compile(r"(\w+://)[^/\s:\"']+")
_NUMBERS_ONLY = (
    b'"kind":"scalars"',
    b'"kind":"histogram"',
    b'"kind":"physics"',
    b'"kind":"flow"',
)  # most of the bytes
_PRIVATE_FACTS = ("hostname",)
_WORDS_NOBODY_OWNS = ("", "localhost")


class Privacy:
    """What must not be told of one run, gathered from its journals."""

    def __init__(self, run: RunDir, records: Iterable[dict[str, Any]]) -> None:
        facts = [record["facts"] for record in records if isinstance(record.get("facts"), dict)]
        hosts = {str(fact.get("hostname", "")) for fact in facts} - set(_WORDS_NOBODY_OWNS)
        origins = {str(Path(str(fact.get("data_origin", ""))).parent) for fact in facts} - {".", "/"}
        known = {*origins, str(run.path), str(run.path.parent.parent), str(REPOSITORY), str(Path.home())} - {
            "/"
        }
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
        public: dict[str, Any] = {name: self._without_folders(value) for name, value in record.items()}
        if isinstance(public.get("spec"), dict):
            public["spec"] = self.spec(public["spec"])
        if isinstance(public.get("facts"), dict):
            public["facts"] = {
                name: value for name, value in public["facts"].items() if name not in _PRIVATE_FACTS
            }
        for name in public.keys() & {
            "details",
            "facts",
            "message",
            "reason",
            "remark",
        }:  # not "kind" and the like: a host may be called so
            public[name] = _mapped(self._without_hosts, public[name])
        return public

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


def records_of(path: Path) -> Iterator[bytes | dict[str, Any]]:
    """The lines of a journal: as they are where they hold numbers only, else as objects. What is no object is left out. Raises JournalError."""
    bad = lines.BadLines(path)
    for line in itertools.chain.from_iterable(map(io.BytesIO, lines.pieces(path))):
        record = _object(line)
        if record is None:
            bad.count()
        else:
            yield line.rstrip() if any(kind in line for kind in _NUMBERS_ONLY) else record


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
    return {name: _mapped(change, item) for name, item in value.items()} if isinstance(value, dict) else value
