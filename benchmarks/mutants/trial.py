"""Tries a change: in a copy of the files, the tests that are about the changed one run until the first that fails."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutants.changes import Change

KILLED, SURVIVED, CRASHED, GONE, UNJUDGED = "killed", "survived", "no end", "gone", "not judged"
FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """`outcome`: killed, survived, no end (the tests used up their time or died of it: noticed as well), gone (the file no longer holds the lines to change) or not judged
    (the tests fail without the change too).

    `killed_by`: the first test that failed; empty unless killed.
    """

    change: Change
    outcome: str
    killed_by: str
    seconds: float
    name: str = ""  # of a change that is tried every time

    def record(self) -> dict[str, Any]:
        """For a line of JSON."""
        values = asdict(self)
        place = {name: value for name, value in values.pop("change").items() if name != "kind"}
        return {"kind": "mutant", **place, "operator": self.change.kind, **values}


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """The files that git knows or would take, in a folder that goes away: a trial never touches the real ones."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for name in listing.stdout.decode().split("\0"):
            if name and (root / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, Path(folder) / name)
        yield Path(folder)


class Bench:
    """Tries changes on a copy of the repository, which is as before after each."""

    def __init__(self, copy: Path) -> None:
        self._copy = copy
        self._sound: dict[str, bool] = {}  # of each test that was asked without a change
        quiet = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, "-m", "benchmarks.mutants.warm"]
        self._warm = subprocess.Popen(
            command, cwd=copy, env=quiet, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tried(self, change: Change, tests: tuple[str, ...], name: str = "") -> Outcome:
        """What the tests say to a change; before their first use, what they say without it."""
        path = self._copy / change.path
        source = path.read_text(encoding="utf-8")
        changed = change.made(source)
        if changed is None:
            return Outcome(change, GONE, "", 0.0, name)
        if not self._are_sound(tests):
            return Outcome(change, UNJUDGED, "", 0.0, name)
        begin = time.monotonic()
        path.write_text(changed, encoding="utf-8")
        try:
            outcome, killed_by = self._asked(tests)
        finally:
            path.write_text(source, encoding="utf-8")
        return Outcome(change, outcome, killed_by, round(time.monotonic() - begin, 1), name)

    def _are_sound(self, tests: tuple[str, ...]) -> bool:
        unknown = tuple(test for test in tests if test not in self._sound)
        if unknown:
            self._sound |= dict.fromkeys(unknown, self._asked(unknown)[0] == SURVIVED)
        return all(self._sound[test] for test in tests)

    def _asked(self, tests: tuple[str, ...]) -> tuple[str, str]:
        """What these tests say to the copy as it is, and the first that failed."""
        assert self._warm.stdin is not None
        assert self._warm.stdout is not None
        self._warm.stdin.write(json.dumps(tests) + "\n")
        self._warm.stdin.flush()
        answer = json.loads(self._warm.stdout.readline())
        failure = FIRST_FAILURE.search(answer["output"])
        if answer["code"] == 0:
            return SURVIVED, ""
        return (KILLED, failure.group(1).removeprefix("tests/")) if failure else (CRASHED, "")

    def close(self) -> None:
        """Ends the process that runs the tests."""
        self._warm.kill()
        self._warm.communicate()
