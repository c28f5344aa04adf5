"""python -m benchmarks.load [--only QUESTION,QUESTION] [--small] [--keep] [--home DIR]

Prints a JSON line per figure, with its target and whether that is met. `--keep` replaces the
records of the measured questions in benchmarks/results/load.jsonl and rebuilds docs/benchmarks.md.
`--home`: a folder that retains the large home, which takes minutes to build.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import large_home, measured_flows, measured_showers, pages, report, results
from benchmarks.load import ingest, memory, pixels, training, views
from benchmarks.load.figures import Figure
from benchmarks.load.scale import FULL, SMALL, Scale
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store

RESULTS = REPOSITORY / "benchmarks" / "results" / "load.jsonl"
ON_LARGE_HOME: dict[str, Callable[[Home, Scale], Iterator[Figure]]] = {
    "views": views.measure,
    "queries": ingest.queries,
    "memory": memory.measure,
    "pixels": pixels.measure,
    "training": training.measure,
}
WITHOUT_HOME: dict[str, Callable[[Scale], Iterator[Figure]]] = {"ingest": ingest.measure}


def main() -> int:
    """Measures; returns 1 if a target is missed."""
    options = _arguments()
    scale, met = SMALL if options.small else FULL, True
    with tempfile.TemporaryDirectory(prefix="gan-load-") as folder:
        home = Home(options.home or Path(folder) / "home")
        for question in (
            options.only.split(",") if options.only else [*WITHOUT_HOME, *ON_LARGE_HOME]
        ):
            begin, load, records = time.monotonic(), os.getloadavg()[0], []
            for figure in figures_of(question, home, scale):
                records.append({"question": question, **figure.record()})
                print(json.dumps(records[-1]), flush=True)
                met &= records[-1]["met"] is not False
            if options.keep:
                store(question, records, load, time.monotonic() - begin)
    return 0 if met else 1


def figures_of(question: str, home: Home, scale: Scale) -> Iterator[Figure]:
    """The figures of one question. Builds the large home when a question first needs it."""
    if question in WITHOUT_HOME:
        yield from WITHOUT_HOME[question](scale)
        return
    build_home(home, scale)
    yield from ON_LARGE_HOME[question](home, scale)


def build_home(home: Home, scale: Scale) -> None:
    """Builds the large home unless it exists. Some runs have showers and flows, so that no page is
    empty.
    """
    if home.database.exists():
        return
    large_home.create(home.path, scale.runs, scale.rows, scale.epochs)
    run_ids = pages.newest_runs(scale.runs)
    measured_showers.write(home, run_ids, epochs=scale.measurements)
    measured_flows.write(home, run_ids[:1], spin_up_steps=scale.spin_up_steps)
    database = Store(home.database)
    Ingestor(home, database).catch_up()
    database.close()


def store(
    question: str,
    records: list[dict[str, object]],
    load: float,
    seconds: float,
    path: Path = RESULTS,
) -> None:
    """Replaces the stored records of a question, adds one of the machine, and rebuilds the page."""
    machine = {
        "question": question,
        "kind": "machine",
        **results.machine(datetime.now(UTC), load),
        "command": " ".join(["python -m benchmarks.load", *sys.argv[1:]]),
        "seconds": round(seconds),
    }
    older = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    others = [line for line in older if json.loads(line)["question"] != question]
    lines = [*others, *(json.dumps(record) for record in (machine, *records))]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    report.write()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load", description="The dashboard under load."
    )
    parser.add_argument(
        "--only",
        default="",
        help=f"questions, separated by commas: {', '.join([*WITHOUT_HOME, *ON_LARGE_HOME])}",
    )
    parser.add_argument("--small", action="store_true", help="the size of a test")
    parser.add_argument("--keep", action="store_true", help="store the figures")
    parser.add_argument("--home", type=Path, help="retains the large home for the next time")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
