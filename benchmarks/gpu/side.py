"""The protocol of both sides: requests and answers of one JSON line each.

{"request": "prepare"} → facts of the compiled step, or {"failure": why}.
{"request": "measure", "seconds": 0.5} → {"steps": 120, "seconds": 0.52}.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from benchmarks.gpu.cases import BATCHES, PRECISIONS, Case
from benchmarks.turns import answer_stream

Facts = dict[str, Any]
LONGEST_REASON = 160


class CompiledStep(Protocol):
    """A training step that is ready to be timed."""

    def call(self) -> int:
        """Trains some steps and returns their number; the device can still be busy."""
        ...

    def wait(self) -> None:
        """Waits for the device."""
        ...

    def facts(self) -> Facts:
        """Peak memory and other facts for the result."""
        ...


def serve(build: Callable[[Case], CompiledStep]) -> None:
    """Answers requests about the case of the command line until standard input ends."""
    case, answers = _case(), answer_stream()
    step: CompiledStep | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["request"] == "prepare":
                begin = time.perf_counter()
                step = build(case)
                time_steps(step, 0.0)
                answer = {"prepare_s": round(time.perf_counter() - begin, 1), **step.facts()}
            else:
                assert step is not None
                answer = {**time_steps(step, request["seconds"]), **step.facts()}
        except Exception as error:
            traceback.print_exc()
            answer = {"failure": _reason(error)}
        print(json.dumps(answer), file=answers)


def time_steps(step: CompiledStep, seconds: float) -> Facts:
    """Steps and seconds of calls that last at least `seconds`; at least one call."""
    step.wait()
    begin, steps = time.perf_counter(), 0
    while True:
        steps += step.call()
        if time.perf_counter() - begin >= seconds:
            step.wait()
            return {"steps": steps, "seconds": time.perf_counter() - begin}


def _reason(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}"
    is_out_of_memory = "out of memory" in text.lower() or "RESOURCE_EXHAUSTED" in text
    return "does not fit into memory" if is_out_of_memory else text.splitlines()[0][:LONGEST_REASON]


def _case() -> Case:
    parser = argparse.ArgumentParser(description="Times one side of one case.")
    parser.add_argument("workload", choices=BATCHES)
    parser.add_argument("batch", type=int)
    parser.add_argument("precision", choices=PRECISIONS)
    return Case(**vars(parser.parse_args()))
