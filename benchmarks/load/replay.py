"""A simulated training: a process that writes a run's journal as a trainer would.

    python -m benchmarks.load.replay RUN_DIR --steps-per-s 100 --seconds 60 [--epoch-steps 1000]
        [--faster 1]

The run must come from `submit_run`. Numbers are random; nothing is trained. The process ends after
--seconds of the run's time, or when the file STOP exists. `--faster F` writes an hour of records in
1/F hours. Each call is written when its last step is due.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks import large_home
from gan_runtime.records import journal
from gan_runtime.records.home import REPOSITORY, Home, run_number
from gan_runtime.records.journal import JournalWriter, StatusChange
from gan_runtime.records.run_folder import RunDir, TrainerProcess, write_json
from gan_runtime.spec import RunSpec

SECONDS_BETWEEN_CALLS = 0.25
EPOCHS = 10_000
ACCELERATOR = "cpu"


def free_name(home: Home) -> str:
    """The next unused run id of the home."""
    return (
        f"quick-{1 + max((run_number(run.run_id) or 0 for run in home.run_dirs()), default=0):04d}"
    )


def submit_run(home: Home, name: str) -> RunDir:
    """Creates a run that the home's owner takes for a started one."""
    incomplete, spec = (
        RunDir(home.runs / f".new-{name}"),
        RunSpec.parse({"epochs": EPOCHS}).model_dump(),
    )
    incomplete.samples.mkdir(parents=True)
    write_json(incomplete.spec_path, spec)
    journal.append(
        incomplete.supervisor_journal,
        1,
        journal.Created(spec=spec, accelerator=ACCELERATOR, color=0),
        StatusChange(status="queued", reason="waiting", queue_rank=1.0),
        StatusChange(status="starting", reason="starting a replay"),
    )
    incomplete.path.rename(home.runs / name)
    return RunDir(home.runs / name)


@contextmanager
def replaying(run: RunDir, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The replaying process, in a separate session like a trainer; ends it afterward."""
    command = [sys.executable, "-m", "benchmarks.load.replay", str(run.path), *arguments]
    process = subprocess.Popen(command, cwd=REPOSITORY, start_new_session=True)
    try:
        yield process
    finally:
        run.stop_file.touch()
        process.wait()


def replay(
    run: RunDir, steps_per_s: float, seconds: float, epoch_steps: int, faster: float
) -> None:
    """Writes the run until its end or a stop."""
    random, png = np.random.default_rng(7), large_home.noise_png(np.random.default_rng(7))
    run.write_process(TrainerProcess.of(os.getpid(), attempt=1))
    with JournalWriter(run.trainer_journal()) as writer:
        writer.write(
            journal.AttemptStart(resume_step=0),
            journal.AttemptPlan(
                images=64 * epoch_steps, steps_per_epoch=epoch_steps, epochs=EPOCHS
            ),
            StatusChange(status="running", reason="training"),
        )
        run.announce()
        step, begin = 0, time.monotonic()
        while (
            elapsed_s := time.monotonic() - begin
        ) * faster < seconds and not run.stop_file.exists():
            target = int(min(elapsed_s * faster, seconds) * steps_per_s)
            while step < target:
                step = _write_call(run, writer, step, target, epoch_steps, random, png)
            time.sleep(max(0.0, SECONDS_BETWEEN_CALLS - (time.monotonic() - begin - elapsed_s)))
        writer.write(StatusChange(status="finished", reason="replayed"))


def _write_call(
    run: RunDir,
    writer: JournalWriter,
    done: int,
    target: int,
    epoch_steps: int,
    random: np.random.Generator,
    png: bytes,
) -> int:
    """Writes one call, up to step `target` or the end of its epoch, and the epoch's end if it
    reaches that. Returns the newest step.
    """
    epoch = done // epoch_steps + 1
    last = min(target, epoch * epoch_steps)
    records: list[journal.Record] = [
        large_home.call_scalars(journal.now(), epoch, done + 1, last - done, random)
    ]
    if last == epoch * epoch_steps:
        (run.samples / f"epoch-{epoch:05d}.png").write_bytes(png)
        records += large_home.end_of_epoch(journal.now(), epoch, epoch_steps, random)
    writer.write(*records)
    return last


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes a run's journal as a trainer does.")
    parser.add_argument("run", type=Path)
    parser.add_argument("--steps-per-s", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the run's own time")
    parser.add_argument("--epoch-steps", type=int, default=1_000)
    parser.add_argument("--faster", type=float, default=1.0)
    options = parser.parse_args()
    replay(
        RunDir(options.run),
        options.steps_per_s,
        options.seconds,
        options.epoch_steps,
        options.faster,
    )
