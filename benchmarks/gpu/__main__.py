"""Measures this host's NVIDIA GPU; benchmarks/gpu.sh calls it.

First the GPU's matrix rate, then each workload at each batch size and precision, with the JAX
engine and compiled PyTorch in turns. Also one epoch of CERN's 3DGAN.

python -m benchmarks.gpu [--seconds 420] [--accelerator cpu] [--only WORKLOAD …] [--batches N …]
                         [--precisions NAME …] [--output FILE]
                          writes benchmarks/results/gpu.jsonl, or FILE
python -m benchmarks.gpu --table [--output FILE]        prints the table of docs/gpu.md
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any

from benchmarks.gpu.cases import BATCHES, PRECISIONS, Case
from benchmarks.gpu.table import epoch, markdown
from benchmarks.results import FOLDER
from gan_runtime.records.home import REPOSITORY

RESULTS = FOLDER / "gpu.jsonl"
SIDES = {"jax": ("benchmarks.gpu.jax_side",), "torch": ("benchmarks.gpu.torch_side",)}
ROUNDS, TURN_SECONDS = 3, 0.5
EPOCH_SECONDS = 90.0
EXIT_SECONDS = 20.0
NO_ANSWER = "exited without an answer"
# The sides of a wave compile at the same time and share the GPU's memory, so large
# cases are alone in a wave. The epoch is measured after the wave EPOCH_AFTER.
WAVES = (
    ("dcgan_mnist", (64, 256, 1_024, 4_096)),
    ("pix2pix", (64, 1_024)),
    ("shower_3dgan", (64,)),
    ("shower_3dgan", (256,)),
    ("pix2pix", (256, 4_096)),
    ("shower_3dgan", (1_024,)),
    ("shower_3dgan", (4_096,)),
)
EPOCH_AFTER = ("shower_3dgan", (64,))
Answer = dict[str, Any]


@dataclass
class Side:
    """A child process that serves one case. `failure`: why it cannot; empty if it can."""

    name: str
    case: Case
    process: subprocess.Popen[str]
    failure: str = ""
    turns: list[Answer] = field(default_factory=list)
    facts: Answer = field(default_factory=dict)

    @classmethod
    def start(cls, name: str, case: Case, command: Sequence[str] = ()) -> Side:
        """Starts a side without preparing it. `command`: its module and first arguments, by default
        those of SIDES.
        """
        command = [*(command or SIDES[name]), *case.words]
        return cls(name, case, _child(command, stdin=subprocess.PIPE))

    def prepare(self) -> None:
        """Compiles and runs the first call."""
        self.facts |= self._ask({"request": "prepare"})

    def measure(self) -> None:
        """Measures one more turn."""
        answer = self._ask({"request": "measure", "seconds": TURN_SECONDS})
        if not self.failure:
            self.turns.append(answer)

    def close(self) -> None:
        """Ends the process, which frees the GPU's memory."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
            self.process.wait(EXIT_SECONDS)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()

    def _ask(self, request: Answer) -> Answer:
        streams = self.process.stdin, self.process.stdout
        assert all(streams)
        try:
            answer = _answer(*streams, request)  # type: ignore[arg-type]
        except (BrokenPipeError, json.JSONDecodeError):
            answer = {"failure": NO_ANSWER}
        self.failure = answer.get("failure", "")
        return answer


def _answer(requests: IO[str], answers: IO[str], request: Answer) -> Answer:
    print(json.dumps(request), file=requests, flush=True)
    while (line := answers.readline()) and not line.startswith("{"):
        pass
    answer: Answer = json.loads(line)
    return answer


def _child(arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        **options,
    )


def child_answer(arguments: Sequence[str]) -> Answer:
    """The JSON object on the last line that a child prints."""
    child = _child(arguments)
    lines = child.communicate()[0].splitlines()
    return json.loads(lines[-1]) if lines and not child.returncode else {"failure": NO_ANSWER}


@contextmanager
def prepared(sides: Sequence[Side], at_a_time: int) -> Iterator[None]:
    """Prepares the sides, so many at a time; closes them at the end."""
    try:
        with ThreadPoolExecutor(at_a_time) as pool:
            list(pool.map(Side.prepare, sides))
        yield
    finally:
        for side in sides:
            side.close()


def take_turns(sides: Sequence[Side]) -> None:
    """Measures ROUNDS turns of each side that has not failed."""
    for _ in range(ROUNDS):
        for side in sides:
            if not side.failure:
                side.measure()


def measure_cases(cases: Sequence[Case]) -> Iterator[Answer]:
    """A record for each side of each case."""
    sides = [Side.start(name, case) for case in cases for name in SIDES]
    with prepared(sides, len(sides)):
        for case in cases:
            pair = [side for side in sides if side.case == case]
            take_turns(pair)
            for side in pair:
                side.close()
                yield record(side)


def record(side: Side) -> Answer:
    """The stored record of a side: images per second of each turn, and its facts."""
    images_per_s = [
        round(turn["steps"] * side.case.batch / turn["seconds"], 1) for turn in side.turns
    ]
    facts = {**side.facts, **(side.turns[-1] if side.turns else {})}
    further = {name: facts.get(name) for name in ("prepare_s", "peak_bytes", "mode")}
    return {
        "kind": "case",
        "side": side.name,
        **asdict(side.case),
        "images_per_s": images_per_s,
        "failure": side.failure,
        **further,
    }


def records(options: argparse.Namespace) -> Iterator[Answer]:
    """All records; after the deadline no further wave starts."""
    deadline = time.monotonic() + options.seconds
    yield {"kind": "card", **child_answer([*SIDES["jax"], "rate"]), **_host()}
    for workload, wave in waves(options.only, options.batches):
        batches = [batch for batch in wave if batch in options.batches]
        if time.monotonic() > deadline:
            yield {"kind": "left_out", "workload": workload, "batches": batches}
            continue
        cases = [
            Case(workload, batch, precision)
            for batch in batches
            for precision in options.precisions
        ]
        yield from measure_cases(cases) if cases else ()
        if (workload, wave) == EPOCH_AFTER:
            max_seconds = str(min(EPOCH_SECONDS, max(1.0, deadline - time.monotonic())))
            yield {"kind": "epoch", **child_answer([*SIDES["jax"], "epoch", max_seconds])}


def waves(workloads: Sequence[str], batches: Iterable[int]) -> Iterator[tuple[str, Sequence[int]]]:
    """The planned waves of these workloads, and one of the batch sizes that no wave has."""
    for workload, wave in WAVES:
        if workload in workloads:
            yield workload, wave
    for workload in workloads:
        if others := tuple(batch for batch in batches if batch not in BATCHES[workload]):
            yield workload, others


def operations(workloads: Sequence[str]) -> Iterator[Answer]:
    """The operations of each workload, counted without a GPU."""
    os.environ["GPU_BENCH_ACCELERATOR"] = "cpu"
    for workload in workloads:
        yield {"kind": "operations", **child_answer([*SIDES["jax"], "operations", workload])}


def _host() -> Answer:
    commit = subprocess.run(
        ["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit.stdout.strip(),
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
    }


def main() -> None:
    """Measures, or prints the table."""
    parser = argparse.ArgumentParser(description="Measures training on this host's GPU.")
    parser.add_argument(
        "--seconds", type=float, default=420.0, help="start nothing after this many seconds"
    )
    parser.add_argument("--accelerator", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--only", nargs="*", choices=tuple(BATCHES), default=list(BATCHES))
    parser.add_argument("--batches", nargs="*", type=int, default=list(BATCHES["dcgan_mnist"]))
    parser.add_argument("--precisions", nargs="*", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--output", type=Path, default=RESULTS, help="file of the results")
    parser.add_argument("--table", action="store_true", help="print the table of the last results")
    options = parser.parse_args()
    if options.table:
        lines = options.output.read_text(encoding="utf-8").splitlines()
        stored = [json.loads(line) for line in lines]
        print(markdown(stored), epoch(stored), sep="\n\n")
        return
    os.environ["GPU_BENCH_ACCELERATOR"] = options.accelerator
    failures = []
    with options.output.open("w", encoding="utf-8") as file:
        for result in chain(records(options), operations(options.only)):
            line = json.dumps(result)
            print(line, flush=True)
            print(line, file=file, flush=True)
            if result.get("side") == "jax":
                failures.append(result.get("failure"))
    if all(failures):  # the largest batches can be too large
        sys.exit("No case of the JAX engine was measured.")


if __name__ == "__main__":
    main()
