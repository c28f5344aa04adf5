"""All benchmarks. `make bench` runs them, `make bench ONLY=training` one row.

Each row waits for an idle machine (conditions.py). Prints JSON lines, and stores them in
benchmarks/results/latest.jsonl and the tables of docs/benchmarks.md (report.py). All rows run on
the CPU; `cycles` and `pair_cycles` are a compiler's estimates for a TPU.

python -m benchmarks.bench [--only ROW …] [--rounds N] [--steps N] [--batch N] [--images N]
[--referee SCRIPT] [--try]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import conditions, results
from benchmarks import report as page
from benchmarks.effort import Effort
from benchmarks.results import Report
from benchmarks.rows import (
    conditional,
    cycles,
    dashboard,
    engines,
    growth,
    input,
    iterate,
    matrix,
    overhead,
    pages,
    pair_cycles,
    pix2pix,
    preprocessing,
    referee,
    replicas,
    showers,
    streaming,
    training,
    workers,
)
from benchmarks.trial import MNIST_IMAGES
from benchmarks.turns import NotMeasuredError

BATCH = 256


@dataclass(frozen=True)
class Row:
    """A measurement and its default size. `rounds`: turns of each side; `steps`: per turn.

    `batch`: images per step; `images`: in the data set; `minutes`: duration on 2 cores.
    """

    measure: Callable[[Report, Effort], None]
    rounds: int
    steps: int
    minutes: int
    batch: int = BATCH
    images: int = MNIST_IMAGES


ROWS = {
    # 24 · 10 steps are one epoch.
    "training": Row(training.measure, rounds=24, steps=10, minutes=11),
    "conditional": Row(
        conditional.measure, rounds=24, steps=10, minutes=11, batch=64, images=15_360
    ),
    "referee": Row(referee.measure, rounds=6, steps=20, minutes=8),
    "engines": Row(engines.measure, rounds=12, steps=10, minutes=4, batch=64),
    "replicas": Row(replicas.measure, rounds=24, steps=10, minutes=4),
    "workers": Row(workers.measure, rounds=4, steps=20, minutes=5),
    "overhead": Row(overhead.measure, rounds=3, steps=20, minutes=9),  # rounds: epochs
    "input": Row(input.measure, rounds=1, steps=10, minutes=1),
    "streaming": Row(streaming.measure, rounds=24, steps=10, minutes=4, batch=64, images=20_480),
    "preprocessing": Row(
        preprocessing.measure, rounds=12, steps=4, minutes=6, batch=64, images=1_024
    ),
    "showers": Row(showers.measure, rounds=6, steps=4, minutes=8, batch=32, images=1_280),
    # 72 · 10 steps are three epochs.
    "pix2pix": Row(pix2pix.measure, rounds=72, steps=10, minutes=5, batch=16, images=3_840),
    "iterate": Row(iterate.measure, rounds=24, steps=40, minutes=2),  # steps: frames
    "growth": Row(growth.measure, rounds=1, steps=8, minutes=11),
    "matrix": Row(matrix.measure, rounds=24, steps=10, minutes=6),
    "dashboard": Row(dashboard.measure, rounds=5, steps=1, minutes=3),  # rounds: visits
    "pages": Row(pages.measure, rounds=1, steps=1, minutes=3),
    "cycles": Row(cycles.measure, rounds=1, steps=1, minutes=40),
    "pair_cycles": Row(pair_cycles.measure, rounds=1, steps=1, minutes=10),
}


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench", description="Measures training and dashboard."
    )
    parser.add_argument("--only", nargs="+", choices=tuple(ROWS), help="measure these rows only")
    parser.add_argument("--rounds", type=int, help="turns of each side; of overhead: epochs")
    parser.add_argument("--steps", type=int, help="steps per turn")
    parser.add_argument("--batch", type=int, help="images per step")
    parser.add_argument("--images", type=int, help="images in the data set, that is, in an epoch")
    parser.add_argument(
        "--try",
        action="store_true",
        dest="trial",
        help="print without storing",
    )
    parser.add_argument(
        "--referee",
        type=Path,
        help=(
            "peer of the row `referee`, called with --engine tf|torch --precision float32|bf16"
            " --batch N --steps N"
        ),
    )
    options = parser.parse_args()
    options.only = options.only or [name for name in ROWS if name != "referee" or options.referee]
    if "referee" in options.only and not (options.referee and options.referee.is_file()):
        parser.error("the row `referee` needs a script: --referee SCRIPT")
    return options


def measure_row(name: str, options: argparse.Namespace) -> bool:
    """Measures a row and stores its records, also of a failure; returns whether it succeeded."""
    load_before = conditions.load() if options.trial else conditions.wait_until_idle()
    row, begin, report = ROWS[name], datetime.now(UTC), Report(name)
    referee = options.referee and options.referee.resolve()
    effort = Effort(
        options.rounds or row.rounds,
        options.steps or row.steps,
        options.batch or row.batch,
        options.images or row.images,
        referee,
    )
    print(f"{name}: about {row.minutes} minutes", file=sys.stderr)
    failed = False
    try:
        row.measure(report, effort)
    except NotMeasuredError as error:
        report.not_measured(name, f"{error}.")
        failed = True
    report.add("machine", **results.machine(begin, load_before))
    if not options.trial:
        print(results.store(report.records, name), file=sys.stderr)
    return not failed


def main() -> int:
    """Measures the rows; returns 1 if a row failed. Figures that this machine or version cannot
    measure do not count as failures.
    """
    options = arguments()
    succeeded = [measure_row(name, options) for name in options.only]
    if not options.trial:
        page.write()
    return 0 if all(succeeded) else 1


if __name__ == "__main__":
    sys.exit(main())
