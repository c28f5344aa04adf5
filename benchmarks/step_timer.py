"""What every training loop here has in common: its options, and how its steps are timed.

Loads no framework.

Alone a loop prints one JSON line, `{"precision", "batch", "images_per_s", "step_s"}`, of the median
step after the warm-up. With --serve it is a side of a comparison: it measures a block of steps on
each request (turns.py).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.turns import Turn, serve

PRECISIONS = ("mixed_bfloat16", "float32")
WARM_UP_STEPS = 3  # the first one compiles


def arguments(description: str) -> argparse.ArgumentParser:
    """--precision, --batch, --steps and --serve: the same for all sides of a comparison."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--precision", choices=PRECISIONS, default=PRECISIONS[0])
    parser.add_argument("--batch", type=int, default=256, help="images per step")
    parser.add_argument("--steps", type=int, default=20, help="steps to measure, after the warm-up")
    parser.add_argument(
        "--serve",
        action="store_true",
        help="measure a block of steps for each line on standard input",
    )
    return parser


def run_alone_or_serve(options: argparse.Namespace, step: Callable[[], object]) -> None:
    """Times `step`, a call that trains one step and waits until it is done."""
    if options.serve:
        serve(lambda steps: timed(step, steps))
    else:
        print(json.dumps(alone(options.precision, options.batch, options.steps, step)))


def alone(precision: str, batch: int, steps: int, step: Callable[[], object]) -> dict[str, Any]:
    """Images per second at the median step, after the warm-up."""
    seconds = [timed(step, 1).seconds for _ in range(WARM_UP_STEPS + steps)]
    step_s = statistics.median(seconds[WARM_UP_STEPS:])
    return {
        "precision": precision,
        "batch": batch,
        "images_per_s": round(batch / step_s, 1),
        "step_s": round(step_s, 4),
    }


def timed(step: Callable[[], object], steps: int) -> Turn:
    """The wall time of `steps` steps one after another."""
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    return Turn(steps, time.perf_counter() - begin)
