"""The cost of a home with many ended runs: opening it, owning it while idle, and listing it.

    python -m benchmarks.ended_runs [RUNS]

The runs are synthetic, two epochs of fifty steps each; nothing is trained. Seconds are processor
time (user and system), so that other processes on the machine do not count.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gan_runtime.commands.runtime import Runtime
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.spec import RunSpec

IDLE_SECONDS = 20.0
STEPS = 50
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def write(home: Home, runs: int) -> None:
    """Writes `runs` finished runs of two epochs."""
    home.prepare()
    spec = RunSpec.parse({"epochs": 2}).model_dump()
    for number in range(1, runs + 1):
        _write_run(RunDir(home.runs / f"run-{number:04d}"), BEGIN + timedelta(minutes=number), spec)


def _write_run(run: RunDir, at: datetime, spec: dict[str, object]) -> None:
    run.path.mkdir()
    write_json(run.spec_path, spec)
    queued = journal.StatusChange(
        at=at, status="queued", reason="waiting", queue_rank=at.timestamp()
    )
    starting = journal.StatusChange(at=at, status="starting", reason="starting a trainer on cpu")
    journal.append(
        run.supervisor_journal,
        1,
        journal.Created(at=at, spec=spec, accelerator="cpu", color=0),
        queued,
        starting,
    )
    records: list[journal.Record] = [journal.AttemptStart(at=at, resume_step=0)]
    for epoch in (1, 2):
        first, last = (epoch - 1) * STEPS + 1, epoch * STEPS
        wall_s = [0.01 * step for step in range(first, last + 1)]
        values = {metric: [1.0] * STEPS for metric in ("loss_generator", "loss_discriminator")}
        records.append(
            journal.Scalars(at=at, epoch=epoch, first_step=first, wall_s=wall_s, values=values)
        )
        records.append(
            journal.EpochDone(
                at=at, epoch=epoch, step=last, seconds=0.5, images=3200, images_per_s=6400.0
            )
        )
    records.append(
        journal.StatusChange(
            at=at + timedelta(seconds=1), status="finished", reason="all 2 epochs done"
        )
    )
    journal.append(run.trainer_journal(), 1, *records)


def _cpu_seconds(who: int = resource.RUSAGE_SELF) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def measure(home: Home) -> dict[str, float]:
    """Processor seconds of the first opening, a later one and the command `runs`.

    idle_share: of one core, 0 to 1.
    """
    values: dict[str, float] = {}
    for name in ("first_open_s", "open_s"):
        begin = _cpu_seconds()
        runtime = Runtime.open(home)
        values[name] = _cpu_seconds() - begin
        if name == "first_open_s":
            runtime.close()
    begin = _cpu_seconds()
    time.sleep(IDLE_SECONDS)
    values["idle_share"] = (_cpu_seconds() - begin) / IDLE_SECONDS
    runtime.close()
    begin = _cpu_seconds(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "gan_runtime", "runs", "--json", "--home", str(home.path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))
    values["runs_s"] = _cpu_seconds(resource.RUSAGE_CHILDREN) - begin
    return values


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
        write(home, runs)
        print({"runs": runs} | {name: round(value, 3) for name, value in measure(home).items()})
