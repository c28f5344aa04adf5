"""Writes benchmarks/results/mutants.jsonl from a cosmic-ray session, and docs/mutants.md from it.

python -m benchmarks.mutants.page    rewrites the page, after a survivor got its meaning in
                                     cosmic-ray.toml
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.mutants.trial import FULL, NOTICED, PACKAGE, table
from gan_runtime.records.home import REPOSITORY

Record = dict[str, Any]
RESULTS = REPOSITORY / "benchmarks" / "results" / "mutants.jsonl"
PAGE = REPOSITORY / "docs" / "mutants.md"
SURVIVED, HUNG = "survived", "no end"
COUNTS = ("Tried", "Noticed by `make test-all`", "of these by `make test`")
INTRODUCTION = """# Mutation tests

Written by `make mutants` from `benchmarks/results/mutants.jsonl`; do not edit.

A mutant is the training core with one small change by cosmic-ray: another operator, a number one larger or smaller, a negated condition. A seed draws the places from the files
of `benchmarks/mutants/cosmic-ray.toml`. A mutant is noticed if a test of its file fails, or if the tests do not end (only in `make test-all`). Only the tests of that file run, so
each share is a lower bound.
"""  # noqa: E501


def outcomes(session: Path) -> list[Record]:
    """The outcome of each tried mutant of the session, ordered by file and line."""
    from cosmic_ray.work_db import use_db  # needs cosmic-ray, which only `make mutants` installs
    from cosmic_ray.work_item import WorkerOutcome

    with use_db(session) as work:
        tried = [
            pair
            for pair in work.completed_work_items
            if pair[1].worker_outcome == WorkerOutcome.NORMAL
        ]
    records = [outcome(change.mutations[0], result) for change, result in tried]
    return sorted(records, key=lambda record: (record["path"], record["line"], record["after"]))


def outcome(change: Any, result: Any) -> Record:
    """The record of one mutant. `by`: the first test that failed, or SURVIVED, or HUNG."""
    lines = result.diff.splitlines()[3:]  # after the names of the files
    before, after = (
        "\n".join(line[1:] for line in lines if line.startswith(sign)) for sign in "-+"
    )
    test = result.output.rpartition(NOTICED)[2].strip()
    by = (
        SURVIVED if result.test_outcome == SURVIVED else test if test.startswith("tests/") else HUNG
    )
    location = {
        "path": str(change.module_path),
        "line": change.start_pos[0],
        "before": before,
        "after": after,
    }
    return {"kind": "mutant", **location, "operator": change.operator_name, "by": by}


def store(mutants: list[Record], run: Record) -> None:
    """Replaces the outcomes of the last run but not its counts, and writes the page."""
    runs = [
        record
        for record in stored()
        if record["kind"] == "run" and record["commit"] != run["commit"]
    ]
    records = [*mutants, *runs, {"kind": "run", **run, "counts": counts(mutants)}]
    RESULTS.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    PAGE.write_text(text(records), encoding="utf-8")


def stored() -> list[Record]:
    """The records of the last run."""
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def counts(mutants: list[Record]) -> list[int]:
    """The numbers of COUNTS. `make test-all` includes the tests of `make test`."""
    noticed = [mutant["by"] for mutant in mutants if mutant["by"] != SURVIVED]
    return [
        len(mutants),
        len(noticed),
        sum(by != HUNG and not by.startswith(FULL) for by in noticed),
    ]


def text(records: list[Record]) -> str:
    """The text of the page."""
    mutants = [record for record in records if record["kind"] == "mutant"]
    files = {mutant["path"] for mutant in mutants}
    surviving = [mutant for mutant in mutants if mutant["by"] == SURVIVED]
    complete = len(files - {mutant["path"] for mutant in surviving})
    newest = [record for record in records if record["kind"] == "run"][-1]
    return "\n".join(
        (
            INTRODUCTION,
            _table(("Run", *COUNTS, "Machine"), [_run(newest)]),
            f"Every mutant was noticed in {complete} of {len(files)} files.\n",
            "## Surviving mutants\n",
            _table(("Where", "Change", "What it means"), map(_survivor, surviving)),
            "Next: [testing](testing.md) · [benchmarks](benchmarks.md).\n",
        )
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    first, *lines = ["| " + " | ".join(map(str, cells)) + " |\n" for cells in (head, *rows)]
    return "".join([first, f"|{'---|' * len(head)}\n", *lines])


def _run(run: Record) -> tuple[str, ...]:
    tried, *noticed = run["counts"]
    shares = [f"{number} ({number / max(1, tried):.0%})" for number in noticed]
    title = f"{run['date']}, commit {run['commit']}: {run['command']}"
    return (title, f"{tried} of {run['drawn']}", *shares, f"{run['machine']}, {run['minutes']} min")


def _survivor(mutant: Record) -> tuple[str, ...]:
    file, after = _file(mutant["path"]), mutant["after"]
    meaning = table("meanings").get(f"{file}: {after.strip()}", "")
    return f"{file}:{mutant['line']}", f"{_code(mutant['before'])} → {_code(after)}", meaning


def _file(path: str) -> str:
    return path.removeprefix(PACKAGE)


def _code(lines: str) -> str:
    code = " ".join(lines.split()).replace("|", "\\|")
    return f"`{code}`"


if __name__ == "__main__":
    PAGE.write_text(text(stored()), encoding="utf-8")
