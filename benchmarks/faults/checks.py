"""What must hold of a home after everything has recovered.

Each check returns a sentence for each violation.
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
# Names of files that a killed process can leave.
_TEMPORARY_FILES = (
    "*.part",
    ".new-*",
    ".import-*",
    ".deleted-*",
    ".*.json.*",
    "*.duckdb.new-*",
    "*.duckdb.wal",
    "*.tmp",
)


def journaled_values(run: RunDir) -> dict[tuple[str, int], float]:
    """(metric, step) → value in the trainer's journal, without values that a later attempt
    discards.
    """
    values_by_step: dict[tuple[str, int], float] = {}
    for line in _lines(run.trainer_journal()):
        if line["kind"] == "attempt":
            resumed = line["resume_step"]
            values_by_step = {
                key: value for key, value in values_by_step.items() if key[1] <= resumed
            }
        else:
            for metric, values in line["values"].items():
                for offset, value in enumerate(values):
                    values_by_step.setdefault((metric, line["first_step"] + offset), value)
    return values_by_step


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The valid records of attempts and numbers.

    Independent of the product's reader, to detect a valid line that it drops.
    """
    data = path.read_bytes() if path.exists() else b""
    for text in data[: data.rfind(b"\n") + 1].splitlines():
        with contextlib.suppress(ValueError):  # torn, or not text
            line = json.loads(text.decode())
            if isinstance(line, dict) and _is_valid(line):
                yield line


def _is_valid(line: dict[str, Any]) -> bool:
    """Whether it is a complete record of an attempt or of numbers. Raises ValueError for an
    invalid time.
    """
    datetime.fromisoformat(str(line.get("at", "2026-01-01")))
    if not _are_counts(line.get("attempt", 1)) or line.get("attempt", 1) < 1:
        return False
    if line.get("kind") == "attempt":
        return _are_counts(line.get("resume_step"))
    values, wall_s = line.get("values"), line.get("wall_s")
    return (
        line.get("kind") == "scalars"
        and _are_counts(line.get("epoch"), line.get("first_step"))
        and isinstance(values, dict)
        and isinstance(wall_s, list)
        and all(
            isinstance(numbers, list) and len(numbers) == len(wall_s) for numbers in values.values()
        )
    )


def _are_counts(*numbers: object) -> bool:
    return all(isinstance(number, int) and number >= 0 for number in numbers)


def step_problems(run: RunDir, rows: Rows) -> list[str]:
    """Problems unless `scalars` has exactly the journaled steps, each once, with their values."""
    expected = journaled_values(run)
    metrics = {metric for metric, _ in expected}
    stored = [
        ((metric, step), value)
        for run_id, metric, step, value in rows["scalar_values"]
        if run_id == run.run_id and metric in metrics
    ]
    counts = collections.Counter(key for key, _ in stored)
    duplicates = [key for key, count in counts.items() if count > 1]
    missing, unexpected = expected.keys() - counts.keys(), counts.keys() - expected.keys()
    changed = [
        key for key, value in stored if key in expected and not _is_same(value, expected[key])
    ]
    return [
        f"{len(keys)} numbers {problem}, such as {sorted(keys)[0]}"
        for keys, problem in (
            (duplicates, "are stored twice"),
            (missing, "are journaled and not stored"),
            (unexpected, "are stored and not journaled"),
            (changed, "have another value than journaled"),
        )
        if keys
    ]


def _is_same(stored: float, written: float) -> bool:
    return bool(np.array_equal(stored, written, equal_nan=True))


def state_problems(run: RunDir, rows: Rows, expected: str) -> list[str]:
    """Problems unless journals and tables have the expected state."""
    journaled = latest_status(run).status
    [stored] = [status for run_id, status in rows["states"] if run_id == run.run_id] or [None]
    return [
        f"the {where} say {state}, but the run is {expected}"
        for where, state in (("journals", journaled), ("tables", stored))
        if state != expected
    ]


def end_problems(run: RunDir, reference: Arrays) -> list[str]:
    """Problems unless the newest checkpoint equals the final one of the undisturbed run, bit for
    bit.
    """
    checkpoint = checkpoints.load_newest(run.checkpoints)
    if checkpoint is None:
        return ["the run has no checkpoint"]
    names = sorted(reference.keys() | checkpoint.arrays.keys())
    different = [
        name for name in names if not _are_equal(reference.get(name), checkpoint.arrays.get(name))
    ]
    return (
        [f"{len(different)} arrays differ from the undisturbed run, such as {different[0]}"]
        if different
        else []
    )


def _are_equal(first: Any, other: Any) -> bool:
    return first is not None and other is not None and np.array_equal(first, other)


def rebuild_problems(home: Home, before: Rows) -> list[str]:
    """Problems unless a rebuilt database has the same rows. The home must have no owner."""
    store_recovery.rebuild(home)
    after = stored_rows(home)
    return [
        f"after a rebuild {view} has {len(after[view])} rows instead of {len(before[view])}, or"
        " different ones"
        for view in before
        if before[view] != after[view]
    ]


def run_next_owner(home: Home) -> None:
    """Opens and closes the home as its next owner, which ingests records and cleans up after a
    crash.
    """
    Runtime.open(home).close()


def stored_rows(home: Home) -> Rows:
    """All rows of the public views, the last numbers and the blocks, sorted, as well as
    `scalar_values` and `states` for the other checks.
    """
    store = Store(home.database)
    try:
        rows: Rows = {
            view: sorted(store.rows(f"SELECT * FROM {view}"), key=repr)
            for view in store_recovery.VIEWS
            if view != "jobs"
        }
        for table in ("last_scalars", "scalar_blocks"):
            rows[table] = sorted(store.rows(f"SELECT * FROM ingest.{table}"), key=repr)
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
        arguments = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(
            argument.startswith(str(home.path)) for argument in arguments
        ):
            remaining.append(f"process {process.info['pid']} is left: {' '.join(arguments[1:5])}")
    return remaining


def partial_files(home: Home, scratch: Path) -> list[str]:
    """The temporary files in the home and in the system's temporary folder, as problems."""
    remains = [path for pattern in _TEMPORARY_FILES for path in home.path.rglob(pattern)]
    return [f"{path.relative_to(home.path)} is left" for path in remains] + [
        f"{path.name} is left in the temporary folder" for path in scratch.iterdir()
    ]
