"""The options and the timing of all training loops. Loads no framework.

A loop prints one JSON line, `{"precision", "batch", "images_per_s", "step_s"}`, for the median step
after the warm-up. With --serve it is a side of a comparison: it times a block of steps on each
request (turns.py).
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
    """A parser with the options of all sides: --precision, --batch, --steps and --serve."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--precision", choices=PRECISIONS, default=PRECISIONS[0])
    parser.add_argument("--batch", type=int, default=256, help="images per step")
    parser.add_argument("--steps", type=int, default=20, help="steps to measure, after the warm-up")
    parser.add_argument(
        "--serve",
        action="store_true",
        help="time a block of steps for each line on standard input",
    )
    return parser


def serve_or_print(options: argparse.Namespace, step: Callable[[], object]) -> None:
    """Serves turns of `step`, a call that trains and completes one step, or prints its median."""
    if options.serve:
        serve(lambda steps: time_steps(step, steps))
    else:
        print(json.dumps(median_rate(options.precision, options.batch, options.steps, step)))


def median_rate(
    precision: str, batch: int, steps: int, step: Callable[[], object]
) -> dict[str, Any]:
    """Images per second at the median step, after the warm-up."""
    seconds = [time_steps(step, 1).seconds for _ in range(WARM_UP_STEPS + steps)]
    step_s = statistics.median(seconds[WARM_UP_STEPS:])
    return {
        "precision": precision,
        "batch": batch,
        "images_per_s": round(batch / step_s, 1),
        "step_s": round(step_s, 4),
    }


def time_steps(step: Callable[[], object], steps: int) -> Turn:
    """The wall time of `steps` steps."""
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    return Turn(steps, time.perf_counter() - begin)
