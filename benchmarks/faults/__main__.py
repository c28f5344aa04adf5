"""python -m benchmarks.faults [--seed N] [--scenarios N] [--only KIND,KIND] [--keep]

Prints a line per scenario, the number of failures, and a command to repeat each. With --keep,
every outcome is stored at once in benchmarks/results/faults.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from benchmarks import conditions
from benchmarks.faults.kinds import KINDS, kind_of
from benchmarks.faults.scenario import Result, play
from gan_runtime.hardware import machine
from gan_runtime.records.home import REPOSITORY

RESULTS = REPOSITORY / "benchmarks" / "results" / "faults.jsonl"


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.faults",
        description="Injects faults into real processes of short runs.",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the first scenario; later scenarios count up"
    )
    parser.add_argument("--scenarios", type=int, default=200)
    parser.add_argument(
        "--only", default="", help=f"kinds, separated by commas: {', '.join(KINDS)}"
    )
    parser.add_argument("--keep", action="store_true", help="store the outcomes")
    return parser.parse_args()


def main() -> int:
    """Plays the scenarios; returns 1 after a failure."""
    options, begin = arguments(), time.monotonic()
    only = [name for name in options.only.split(",") if name]
    results: list[Result] = []
    for seed in range(options.seed, options.seed + options.scenarios):
        results.append(play(seed, kind_of(seed, only)))
        print(results[-1].line, flush=True)
        if options.keep:
            store_outcomes(results, options, time.monotonic() - begin)
    failed = [result for result in results if result.problems]
    skipped = sum(bool(result.skipped) for result in results)
    print(
        f"{len(results)} scenarios, {len(failed)} failed, {skipped} skipped,"
        f" {time.monotonic() - begin:.0f} s"
    )
    for result in failed:
        print(
            f"repeat: python -m benchmarks.faults --seed {result.seed} --scenarios 1 --only"
            f" {result.kind}"
        )
    return 1 if failed else 0


def store_outcomes(results: list[Result], options: argparse.Namespace, seconds: float) -> None:
    """Stores a record of machine and program, then the outcomes so far."""
    facts = machine.facts()
    record: dict[str, Any] = {
        "command": " ".join(["python -m benchmarks.faults", *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "scenarios": len(results),
        "asked_for": options.scenarios,
        "failed": sum(bool(result.problems) for result in results),
        "skipped": sum(bool(result.skipped) for result in results),
        "by_kind": dict(Counter(result.kind for result in results)),
        "seconds": round(seconds),
        "load": round(os.getloadavg()[0], 2),
        **{name: facts[name] for name in ("cpu_model", "cores", "commit")},
        "uncommitted_changes": conditions.changed_since_commit(),
    }
    records = [
        record,
        *({**asdict(result), "seconds": round(result.seconds, 1)} for result in results),
    ]
    RESULTS.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
