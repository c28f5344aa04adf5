"""docs/mutants.md, made from benchmarks/results/mutants.jsonl: no figure in it is typed by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.mutants import equivalents
from benchmarks.mutants.changes import Change
from benchmarks.mutants.trial import CRASHED, KILLED, SURVIVED
from gan_runtime.home import REPOSITORY

Record = dict[str, Any]
RESULTS = REPOSITORY / "benchmarks" / "results" / "mutants.jsonl"
PAGE = REPOSITORY / "docs" / "mutants.md"
TARGET = 0.85
AT_FIRST = "survived at first"
INTRODUCTION = """# Mutation tests

Made by `make mutants` from `benchmarks/results/mutants.jsonl`; change nothing here by hand.

A mutant is the training core with one small change: another operator, a number one larger or smaller, a condition negated, two
neighbours of a tuple swapped. Operators are those of cosmic-ray, and the swap. Places are drawn at random, with a seed, from all
places in the files of `benchmarks/mutants/subjects.py`; annotations are left alone, and so are operators that the values refuse.
A mutant is killed when one of the unit tests that are about its file fails, or when they do not end.
"""


def write(records: list[Record], page: Path = PAGE) -> None:
    """Writes the page anew."""
    page.write_text(text(records), encoding="utf-8")


def text(records: list[Record]) -> str:
    """The whole page."""
    drawn, named = (
        [one for one in records if one["kind"] == "mutant" and bool(one["name"]) == is_named]
        for is_named in (0, 1)
    )
    parts = [
        INTRODUCTION,
        "## Drawn\n",
        _score(drawn),
        _circumstances(records),
        _by_file(drawn),
        _not_killed(drawn),
    ]
    return "\n".join([*parts, "## Named\n", _named(named)])


def _score(drawn: list[Record]) -> str:
    counts = Counter(_verdict(record) for record in drawn)
    killed, equivalent, tried = (
        counts[KILLED] + counts[CRASHED],
        counts["equivalent"],
        sum(counts.values()) - counts["gone"],
    )
    real = tried - equivalent
    return (
        f"**{killed} of {real} killed ({killed / max(1, real):.0%}; target {TARGET:.0%}).** {tried} were tried, of which "
        f"{equivalent} are equivalent (no test could notice; reasons below), so {killed / max(1, tried):.0%} of all; "
        f"{_later(drawn)} of the killed survived at first, until a test was written; "
        f"{counts[CRASHED]} of the killed without a test that failed: no end, or the end of the process.\n"
    )


def _later(drawn: list[Record]) -> int:
    return sum(record["words"] == AT_FIRST and record["outcome"] == KILLED for record in drawn)


def _circumstances(records: list[Record]) -> str:
    lines = []
    for record in records:
        if record["kind"] == "machine":
            changed = ", with changes that are not committed" if record["changed"] else ""
            lines.append(
                f"- {record['date']}: `{record['command']}`, seed {record['seed']}: {record['mutants']} of {record['of']} mutants tried, files with quick tests first, in "
                f"{record['seconds'] / 60:.0f} min on {record['cpu_model']}, {record['cores']} cores, load {record['load_before']:g} "
                f"at the start; commit {record['commit']}{changed}"
            )
    return "\n".join(lines) + "\n"


def _by_file(drawn: list[Record]) -> str:
    files = sorted({record["path"] for record in drawn})
    rows = ["| File | Tried | Killed | Equivalent | Survived |", "|---|---|---|---|---|"]
    for path in files:
        counts = Counter(_verdict(record) for record in drawn if record["path"] == path)
        cells = (
            sum(counts.values()),
            counts[KILLED] + counts[CRASHED],
            counts["equivalent"],
            counts[SURVIVED],
        )
        rows.append(f"| {path.removeprefix('gan_runtime/')} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(rows) + "\n"


def _not_killed(drawn: list[Record]) -> str:
    left = [record for record in drawn if _verdict(record) not in (KILLED, CRASHED)]
    if not left:
        return "None survived.\n"
    rows = ["| Where | Change | What it means |", "|---|---|---|"]
    for record in left:
        meaning = equivalents.reason(_change(record)) or record["words"] or _verdict(record)
        where = f"{record['path'].removeprefix('gan_runtime/')}:{record['line']}"
        rows.append(f"| {where} | {_code(record['before'])} → {_code(record['after'])} | {meaning} |")
    return "\n".join(rows) + "\n"


def _named(named: list[Record]) -> str:
    rows = ["Tried every time.\n", "| Change | Outcome | Noticed by |", "|---|---|---|"]
    rows += [f"| {record['name']} | {record['outcome']} | {_test(record['killed_by'])} |" for record in named]
    return "\n".join(rows) + "\n"


def _verdict(record: Record) -> str:
    is_equivalent = record["outcome"] == SURVIVED and equivalents.reason(_change(record))
    return "equivalent" if is_equivalent else str(record["outcome"])


def _change(record: Record) -> Change:
    return Change(record["path"], record["line"], record["before"], record["after"], record["operator"])


def _code(lines: str) -> str:
    words = " ".join(lines.split()).replace("|", "\\|")
    return f"`{words}`"


def _test(node: str) -> str:
    return node.rpartition("::")[2] or node


def stored(path: Path = RESULTS) -> list[Record]:
    """What was kept the last time; empty before that."""
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )
