"""Everything that is measured here, in one run. `make bench` runs it: about ten minutes, on an otherwise idle machine.

training    seconds per step of our trainer and of a plain Keras loop, turn by turn, since the speed of a machine drifts
dashboard   start, memory, imports, and the way to the first point of a curve

Prints JSON lines and writes them to benchmarks/results/<date>.jsonl and benchmarks/results/latest.jsonl. All on the CPU.

python -m benchmarks.bench [--rounds 3] [--steps 20] [--only training|dashboard] [--referee SCRIPT]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.keras_loop import PRECISIONS
from gan_runtime import hosts
from gan_runtime.home import REPOSITORY

RESULTS = Path(__file__).parent / "results"
BATCH = 256
PEER = "keras_loop"  # everybody else is compared with it
QUIET_CPU = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}

Record = dict[str, Any]


class Report:
    """Every record is printed at once and kept for the files."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, measure: str, **values: Any) -> None:
        """One JSON line."""
        self.records.append({"measure": measure, **values})
        print(json.dumps(self.records[-1]), flush=True)

    def write(self, day: str) -> None:
        """The lines of this day, which are the latest too."""
        text = "".join(json.dumps(record) + "\n" for record in self.records)
        RESULTS.mkdir(exist_ok=True)
        for name in (day, "latest"):
            (RESULTS / f"{name}.jsonl").write_text(text, encoding="utf-8")


def answer_of(arguments: list[str]) -> Record:
    """The JSON object that a Python child prints last. Exits with its messages and one sentence when it fails."""
    command = [sys.executable, *arguments]
    child = subprocess.run(command, cwd=REPOSITORY, env={**os.environ, **QUIET_CPU}, capture_output=True, text=True, check=False)
    try:
        if child.returncode == 0:
            return dict(json.loads(child.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        print(child.stdout, file=sys.stderr)
    print(child.stderr, file=sys.stderr)
    sys.exit(f"`python {' '.join(arguments)}` gave no measurement (exit code {child.returncode}): its messages are above.")


def training(report: Report, rounds: int, steps: int, referee: Path | None) -> None:
    """Each round asks everybody once per precision."""
    scripts = {PEER: ["-m", "benchmarks.keras_loop"], "ours": ["-m", "benchmarks.ours"]}
    if referee:
        scripts["referee"] = [str(referee), "--engine", "tf"]
    for number in range(1, rounds + 1):
        for precision in PRECISIONS:
            for who, script in scripts.items():
                spoken = "bf16" if who == "referee" and precision == "mixed_bfloat16" else precision
                options = ["--precision", spoken, "--batch", str(BATCH), "--steps", str(steps)]
                report.add(who, round=number, **{**answer_of([*script, *options]), "precision": precision})
    for precision in PRECISIONS:
        for who in scripts:
            compare(report, who, precision)


def compare(report: Report, who: str, precision: str) -> None:
    """The median rate over the rounds; for all but the peer also how many times the peer's rate of the same round it is."""
    rates, peer_rates = (
        [record["images_per_s"] for record in report.records if (record["measure"], record.get("precision")) == (name, precision)]
        for name in (who, PEER)
    )
    values: Record = {"images_per_s": round(statistics.median(rates), 1)}
    if who != PEER:
        ratios = [rate / peer for rate, peer in zip(rates, peer_rates, strict=True)]
        values |= {
            f"over_{PEER}": round(statistics.median(ratios), 3),
            "lowest": round(min(ratios), 3),
            "highest": round(max(ratios), 3),
        }
    report.add("median", who=who, precision=precision, **values)


def arguments() -> argparse.Namespace:
    """What to run, and how often."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description="Measures training and dashboard.")
    parser.add_argument("--rounds", type=int, default=3, help="turns of the training comparison")
    parser.add_argument("--steps", type=int, default=20, help="measured steps per turn")
    parser.add_argument("--only", choices=("training", "dashboard"), help="leave the other part out")
    parser.add_argument(
        "--referee", type=Path, help="another baseline: called with --engine tf --precision float32|bf16 --batch N --steps N"
    )
    return parser.parse_args()


def main() -> None:
    """Measures, then says on what machine."""
    given, begin, report = arguments(), datetime.now(UTC), Report()
    load = os.getloadavg()[0]  # of the minute before: much above 0 means that others were at work
    if given.only != "dashboard":
        training(report, given.rounds, given.steps, given.referee and given.referee.resolve())
    if given.only != "training":
        report.add("dashboard", **answer_of(["-m", "benchmarks.dashboard"]))
    machine = {name: value for name, value in hosts.facts().items() if name != "hostname"}
    command = " ".join(["python -m benchmarks.bench", *sys.argv[1:]])
    seconds = round((datetime.now(UTC) - begin).total_seconds())
    report.add("machine", **machine, date=begin.isoformat(timespec="seconds"), command=command, seconds=seconds, load_before=load)
    report.write(f"{begin:%Y-%m-%d}")


if __name__ == "__main__":
    main()
