"""What must hold of a home after everything has recovered.

Each check returns a sentence for each violation; no sentences: all is well.
"""

from __future__ import annotations

import collections
import contextlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from gan_runtime.commands.runtime import Runtime
from gan_runtime.engines.contract import Arrays
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.store.store import Store
from gan_runtime.supervision import store_recovery
from gan_runtime.training import checkpoints

Rows = dict[str, list[tuple[Any, ...]]]
# Names of unfinished files, which a kill can leave.
_HALF_MADE = (
    "*.part",
    ".new-*",
    ".import-*",
    ".deleted-*",
    ".*.json.*",
    "*.duckdb.new-*",
    "*.duckdb.wal",
    "*.tmp",
)


def journalled(run: RunDir) -> dict[tuple[str, int], float]:
    """(metric, step) → value in the trainer's journal, without values that a later
    attempt voids.
    """
    losses: dict[tuple[str, int], float] = {}
    for line in _lines(run.trainer_journal()):
        if line["kind"] == "attempt":
            losses = {key: value for key, value in losses.items() if key[1] <= line["resume_step"]}
        else:
            for metric, values in line["values"].items():
                for offset, value in enumerate(values):
                    losses.setdefault((metric, line["first_step"] + offset), value)
    return losses


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole records of attempts and numbers.

    The product's reader is not used: this detects a good line that it drops.
    """
    data = path.read_bytes() if path.exists() else b""
    for text in data[: data.rfind(b"\n") + 1].splitlines():
        with contextlib.suppress(ValueError):  # torn, or no text
            line = json.loads(text.decode())
            if isinstance(line, dict) and _is_good(line):
                yield line


def _is_good(line: dict[str, Any]) -> bool:
    """Whether it is one of the two kinds with all that these have; raises ValueError for a
    time that is none.
    """
    datetime.fromisoformat(str(line.get("at", "2026-01-01")))
    if not _counts(line.get("attempt", 1)) or line.get("attempt", 1) < 1:
        return False
    if line.get("kind") == "attempt":
        return _counts(line.get("resume_step"))
    values, wall_s = line.get("values"), line.get("wall_s")
    return (
        line.get("kind") == "scalars"
        and _counts(line.get("epoch"), line.get("first_step"))
        and isinstance(values, dict)
        and isinstance(wall_s, list)
        and all(
            isinstance(numbers, list) and len(numbers) == len(wall_s) for numbers in values.values()
        )
    )


def _counts(*numbers: object) -> bool:
    return all(isinstance(number, int) and number >= 0 for number in numbers)


def steps_once(run: RunDir, rows: Rows) -> list[str]:
    """Problems unless `scalars` has exactly the journaled steps, each once, with their values."""
    expected = journalled(run)
    metrics = {metric for metric, _ in expected}
    stored = [
        ((metric, step), value)
        for run_id, metric, step, value in rows["scalar_values"]
        if run_id == run.run_id and metric in metrics
    ]
    counts = collections.Counter(key for key, _ in stored)
    twice = [key for key, count in counts.items() if count > 1]
    lost, made_up = expected.keys() - counts.keys(), counts.keys() - expected.keys()
    other = [key for key, value in stored if key in expected and not _same(value, expected[key])]
    return [
        f"{len(wrong)} numbers {how}, such as {sorted(wrong)[0]}"
        for wrong, how in (
            (twice, "are stored twice"),
            (lost, "are journalled and not stored"),
            (made_up, "are stored and not journalled"),
            (other, "have another value than journalled"),
        )
        if wrong
    ]


def _same(stored: float, written: float) -> bool:
    return bool(np.array_equal(stored, written, equal_nan=True))


def state_problems(run: RunDir, rows: Rows, expected: str) -> list[str]:
    """Problems unless journals and tables agree and describe the events."""
    said = latest_status(run).status
    [stored] = [status for run_id, status in rows["states"] if run_id == run.run_id] or [None]
    return [
        f"the {where} say {state}, but the run is {expected}"
        for where, state in (("journals", said), ("tables", stored))
        if state != expected
    ]


def end_problems(run: RunDir, reference: Arrays) -> list[str]:
    """Problems unless the newest checkpoint equals, bit for bit, the final state of the undisturbed
    run.
    """
    checkpoint = checkpoints.load_newest(run.checkpoints)
    if checkpoint is None:
        return ["the run has no checkpoint"]
    names = sorted(reference.keys() | checkpoint.arrays.keys())
    differ = [
        name for name in names if not _are_equal(reference.get(name), checkpoint.arrays.get(name))
    ]
    return (
        [f"{len(differ)} arrays differ from the undisturbed run, such as {differ[0]}"]
        if differ
        else []
    )


def _are_equal(first: Any, other: Any) -> bool:
    return first is not None and other is not None and np.array_equal(first, other)


def rebuild_problems(home: Home, before: Rows) -> list[str]:
    """A database rebuilt from the journals has the same rows. The home must have no owner."""
    store_recovery.rebuild(home)
    after = stored_rows(home)
    return [
        f"after a rebuild {view} has {len(after[view])} rows instead of {len(before[view])}, or"
        " others"
        for view in before
        if before[view] != after[view]
    ]


def next_owner(home: Home) -> None:
    """The start of the next owner of the home: ingests new records and removes the remains of a
    kill.
    """
    Runtime.open(home).close()


def stored_rows(home: Home) -> Rows:
    """All rows of the public views and of the last numbers, sorted;
    `scalar_values` and `states` for the other checks.
    """
    store = Store(home.database)
    try:
        rows: Rows = {
            view: sorted(store.rows(f"SELECT * FROM {view}"), key=repr)
            for view in store_recovery.VIEWS
            if view != "jobs"
        }
        rows["last_scalars"] = sorted(store.rows("SELECT * FROM ingest.last_scalars"), key=repr)
        rows["scalar_values"] = sorted(
            store.rows("SELECT run_id, metric, step, value FROM scalars"), key=repr
        )
        rows["states"] = sorted(store.rows("SELECT run_id, status FROM runs"))
        return rows
    finally:
        store.close()


def remaining_processes(home: Home) -> list[str]:
    """The processes of the home that still run, as problems."""
    remaining = []
    for process in psutil.process_iter(["cmdline", "status", "pid"]):
        words = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(
            word.startswith(str(home.path)) for word in words
        ):
            remaining.append(f"process {process.info['pid']} is left: {' '.join(words[1:5])}")
    return remaining


def partial_files(home: Home, scratch: Path) -> list[str]:
    """The temporary files in the home and in the system's temporary folder, as problems."""
    remains = [path for pattern in _HALF_MADE for path in home.path.rglob(pattern)]
    return [f"{path.relative_to(home.path)} is left" for path in remains] + [
        f"{path.name} is left in the temporary folder" for path in scratch.iterdir()
    ]
