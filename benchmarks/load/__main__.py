"""python -m benchmarks.load [--only QUESTION,QUESTION] [--small] [--keep] [--home DIR]

One JSON line a figure: its target, and whether it is met. `--keep` writes them to
benchmarks/results/load.jsonl, replaces the older answers of the measured questions, with the
machine, and rebuilds docs/benchmarks.md. `--home`: a folder that retains the home of many runs for
the next time; building it takes minutes.
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
STORED: dict[str, Callable[[Home, Scale], Iterator[Figure]]] = {  # on the home with many runs
    "views": views.measure,
    "queries": ingest.queries,
    "memory": memory.measure,
    "pixels": pixels.measure,
    "training": training.measure,
}
ALONE: dict[str, Callable[[Scale], Iterator[Figure]]] = {"ingest": ingest.measure}


def main() -> int:
    """Measures; returns 1 when a target is missed."""
    options = _arguments()
    scale, met = SMALL if options.small else FULL, True
    with tempfile.TemporaryDirectory(prefix="gan-load-") as place:
        home = Home(options.home or Path(place) / "home")
        for question in options.only.split(",") if options.only else [*ALONE, *STORED]:
            begin, load, records = time.monotonic(), os.getloadavg()[0], []
            for figure in ask(question, home, scale):
                records.append({"question": question, **figure.record()})
                print(json.dumps(records[-1]), flush=True)
                met &= records[-1]["met"] is not False
            if options.keep:
                keep(question, records, load, time.monotonic() - begin)
    return 0 if met else 1


def ask(question: str, home: Home, scale: Scale) -> Iterator[Figure]:
    """The figures of one question; the first question that needs the home of many runs builds
    it.
    """
    if question in ALONE:
        yield from ALONE[question](scale)
        return
    make(home, scale)
    yield from STORED[question](home, scale)


def make(home: Home, scale: Scale) -> None:
    """Builds the home of many runs unless it exists. Some runs have showers and flows, so that no
    page is empty.
    """
    if home.database.exists():
        return
    large_home.folder(home.path, scale.runs, scale.rows, scale.epochs)
    some = pages.compared(scale.runs)
    measured_showers.write(home, some)
    measured_flows.write(home, some[:1])
    store = Store(home.database)
    Ingestor(home, store).catch_up()
    store.close()


def keep(
    question: str,
    records: list[dict[str, object]],
    load: float,
    seconds: float,
    path: Path = RESULTS,
) -> None:
    """Replaces the older answers, with the circumstances, and rebuilds the page."""
    circumstances = results.machine(datetime.now(UTC), load)
    machine = {
        "question": question,
        "kind": "machine",
        **circumstances,
        "command": " ".join(["python -m benchmarks.load", *sys.argv[1:]]),
        "seconds": round(seconds),
    }
    older = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    further = [line for line in older if json.loads(line)["question"] != question]
    lines = [*further, *(json.dumps(record) for record in (machine, *records))]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    report.write()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load", description="The dashboard under load."
    )
    parser.add_argument(
        "--only", default="", help=f"questions, separated by commas: {', '.join([*ALONE, *STORED])}"
    )
    parser.add_argument("--small", action="store_true", help="as small as a test")
    parser.add_argument("--keep", action="store_true", help="store the answers")
    parser.add_argument("--home", type=Path, help="retains the home of many runs for the next time")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
