"""python -m benchmarks.mutants [--seed N] [--count N] [--only drawn | named | survivors]

Each outcome is printed and kept at once (benchmarks/results/mutants.jsonl), so a run that is ended early is not lost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.mutants import equivalents, page
from benchmarks.mutants.changes import Change, drawn
from benchmarks.mutants.named import NAMED
from benchmarks.mutants.page import Record
from benchmarks.mutants.subjects import TESTS, tests_of
from benchmarks.mutants.trial import SURVIVED, UNJUDGED, Bench, copied
from gan_runtime import hosts
from gan_runtime.home import REPOSITORY

Trial = tuple[Change, tuple[str, ...], str]  # change, tests, name


def arguments() -> argparse.Namespace:
    """What to try."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutants", description="Changes the core and asks its tests."
    )
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=60, help="changes to draw")
    parser.add_argument(
        "--only",
        choices=("drawn", "named", "survivors"),
        help="survivors: what no test noticed the last time",
    )
    return parser.parse_args()


def main() -> None:
    """Tries the changes, keeps the outcomes, writes the page."""
    given, begin, load = arguments(), datetime.now(UTC), os.getloadavg()[0]
    kept = page.stored()
    with copied(REPOSITORY) as copy:
        trials = _trials(copy, kept, given)
        bench, fresh = Bench(copy), list[Record]()
        for number, (change, tests, name) in enumerate(trials, 1):
            outcome = bench.tried(change, tests, name).record()
            fresh.append(
                {**outcome, "words": page.AT_FIRST if given.only == "survivors" else _words(kept, change)}
            )
            _say(number, len(trials), fresh[-1])
            records = _kept(
                kept,
                [*fresh, _machine(begin, load, given, (number, len(trials)))],
                is_part=given.only is not None,
            )
            page.RESULTS.write_text(
                "".join(json.dumps(record) + "\n" for record in records), encoding="utf-8"
            )
            page.write(records)
        bench.close()


def _trials(copy: Path, kept: list[Record], given: argparse.Namespace) -> list[Trial]:
    if given.only == "survivors":
        return [*_again(kept)]
    wanted = {"drawn": _drawn(copy, given), "named": _named(copy)}
    return [*wanted[given.only]] if given.only else [*wanted["drawn"], *wanted["named"]]


def _drawn(copy: Path, given: argparse.Namespace) -> Iterator[Trial]:
    """In the order of the table, so that files with quick tests come first."""
    paths = [f"gan_runtime/{path}" for path in TESTS]
    for change in sorted(
        drawn(copy, paths, given.count, given.seed), key=lambda change: paths.index(change.path)
    ):
        yield change, tests_of(change.path), ""


def _named(copy: Path) -> Iterator[Trial]:
    for one in NAMED:
        source = (copy / "gan_runtime" / one.path).read_text(encoding="utf-8")
        yield one.change(source), tuple(f"tests/{test}" for test in one.tests), one.name


def _again(kept: list[Record]) -> Iterator[Trial]:
    for record in kept:
        is_open = (
            record["kind"] == "mutant" and record["outcome"] in (SURVIVED, UNJUDGED) and not record["name"]
        )
        if is_open and not equivalents.reason(_change(record)):
            yield _change(record), tests_of(record["path"]), ""


def _kept(kept: list[Record], fresh: list[Record], is_part: bool) -> list[Record]:
    """All outcomes: `fresh` ones in the place of those of the same change; of the `kept` ones only if `fresh` is a part."""
    records = {_key(record): record for record in (kept if is_part else [])} | {
        _key(record): record for record in fresh
    }
    return list(records.values())


def _key(record: Record) -> tuple[str, ...]:
    if record["kind"] == "machine":
        return ("machine", record["date"])
    return (record["name"],) if record["name"] else (record["path"], record["before"], record["after"])


def _words(kept: list[Record], change: Change) -> str:
    """What was written by hand about a survivor."""
    return next(
        (record["words"] for record in kept if record["kind"] == "mutant" and _change(record) == change), ""
    )


def _change(record: Record) -> Change:
    return Change(record["path"], record["line"], record["before"], record["after"], record["operator"])


def _machine(begin: datetime, load: float, given: argparse.Namespace, tried_of: tuple[int, int]) -> Record:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=True
        ).stdout.strip()

    facts = hosts.facts()
    return {
        "kind": "machine",
        "command": " ".join(["python -m benchmarks.mutants", *sys.argv[1:]]),
        "date": begin.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - begin).total_seconds()),
        "load_before": round(load, 2),
        "seed": given.seed,
        "mutants": tried_of[0],
        "of": tried_of[1],
        "commit": git("rev-parse", "--short", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--", "gan_runtime", "tests")),
        **{name: facts[name] for name in ("cpu_model", "cores")},
    }


def _say(number: int, count: int, record: Record) -> None:
    what = record["name"] or f"{record['path']}:{record['line']} {record['operator']}"
    print(
        f"{number}/{count} {record['outcome']} {record['seconds']:.0f} s  {what}  {record['killed_by']}",
        flush=True,
    )


if __name__ == "__main__":
    main()
