"""One scenario from its seed: the fault, the recovery, and the checks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.faults import checks
from benchmarks.faults.fault import Expectation
from benchmarks.faults.kinds import KINDS, ON_SLURM, WITH_TENSORFLOW
from benchmarks.faults.stage import BrokenGuaranteeError, Stage
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.engines.contract import Arrays
from gan_runtime.records import processes
from gan_runtime.records.home import Home
from gan_runtime.records.processes import TRAINER
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints
from tests.support import toy_trainer
from tests.support.cluster import rig

_SHARED: dict[str, Any] = {
    "workload": "mlp_gan",
    "steps_per_loop": 2,
    "precision": "float32",
    "accelerator": "cpu",
    "quality_every": 0,  # its job would look like a leftover
}
TOY = {
    **_SHARED,
    "engine": "tensorflow",
    "batch_size_global": 8,
    "epochs": 6,
    "keep_checkpoints": 2,
}
TENSORFLOW = {
    **_SHARED,
    "engine": "tensorflow",
    "batch_size_global": 256,
    "epochs": 4,
    "weight_snapshots": "yes",
}


@dataclass(frozen=True)
class Reference:
    """The final checkpoint of an undisturbed run, and its numbers of calls and file operations."""

    arrays: Arrays
    calls: int
    operations: int
    syncs: int


@dataclass(frozen=True)
class Result:
    """The result of a scenario. `actions`: what it did; `ends`: final states of the attempts.

    `problems`: failed checks; empty if the scenario passed. `skipped`: why it was not tried.
    """

    seed: int
    kind: str
    actions: str
    ends: tuple[str, ...]
    problems: tuple[str, ...]
    seconds: float
    skipped: str = ""

    @property
    def line(self) -> str:
        """The printed line."""
        if self.skipped:
            return f"seed {self.seed:<6} {self.kind:<18} skipped: {self.skipped}"
        ends = " → ".join(self.ends)
        verdict = "passed" if not self.problems else f"FAILED: {'; '.join(self.problems)}"
        return (
            f"seed {self.seed:<6} {self.kind:<18} {self.seconds:4.1f} s  {self.actions}  [{ends}] "
            f" {verdict}"
        )


def play(seed: int, kind: str) -> Result:
    """Sets up a stage, injects the fault, recovers and checks. An error becomes a problem of the
    result.
    """
    if kind in ON_SLURM and (lacking := rig.missing()):
        return Result(seed, kind, "", (), (), 0.0, lacking)
    begin, uses_tensorflow = time.monotonic(), kind in WITH_TENSORFLOW
    expected = reference(uses_tensorflow)
    actions: list[str] = []
    ends: list[str] = []
    problems: list[str] = []
    try:
        with _stage(seed, uses_tensorflow, expected) as stage:
            actions = stage.actions
            expectation = KINDS[kind](stage)
            ends = stage.recover(expectation.run)
            stage.close()
            problems += _problems(stage, expectation, ends, expected)
    except (BrokenGuaranteeError, GanRuntimeError) as error:
        problems.append(str(error))
    except Exception as error:  # the remaining scenarios still run
        problems.append(f"{type(error).__name__}: {error}")
    return Result(
        seed, kind, ", ".join(actions), tuple(ends), tuple(problems), time.monotonic() - begin
    )


def _problems(
    stage: Stage, expectation: Expectation, ends: list[str], expected: Reference
) -> list[str]:
    checks.run_next_owner(stage.home)
    rows = checks.stored_rows(stage.home)
    problems = [
        *checks.state_problems(expectation.run, rows, ends[-1]),
        *checks.step_problems(expectation.run, rows),
        *checks.end_problems(expectation.run, expected.arrays),
        *checks.rebuild_problems(stage.home, rows),
        *checks.remaining_processes(stage.home),
        *checks.partial_files(stage.home, stage.scratch),
        *(problem for check in expectation.checks for problem in check(stage.home)),
    ]
    if ends[0] not in expectation.ends:
        problems.append(
            f"the first attempt ended {ends[0]}, which is not {' or '.join(expectation.ends)}"
        )
    return (
        problems
        if ends[-1] == "finished"
        else [*problems, f"after {len(ends)} attempts it is {ends[-1]}"]
    )


@contextmanager
def _stage(seed: int, uses_tensorflow: bool, expected: Reference) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="gan-faults-") as folder:
        scratch = Path(folder) / "tmp"
        scratch.mkdir()
        stage = Stage(
            Home(Path(folder) / "home").prepare(),
            scratch,
            Random(seed),
            dict(TENSORFLOW if uses_tensorflow else TOY),
            expected.calls,
            expected.operations,
            expected.syncs,
            TRAINER if uses_tensorflow else toy_trainer.MODULE,
        )
        original, tempfile.tempdir = tempfile.tempdir, str(scratch)
        try:
            yield stage
        finally:
            tempfile.tempdir = original
            stage.clean_up()


@cache
def reference(uses_tensorflow: bool = False) -> Reference:
    """A run without an owner and without faults. File operations of a TensorFlow run are not
    counted.
    """
    with tempfile.TemporaryDirectory(prefix="gan-faults-") as folder:
        run = RunDir(Home(Path(folder)).prepare().runs / "reference-0001")
        run.path.mkdir()
        write_json(
            run.spec_path, RunSpec.parse(TENSORFLOW if uses_tensorflow else TOY).model_dump()
        )
        command = [
            sys.executable,
            "-m",
            TRAINER if uses_tensorflow else toy_trainer.MODULE,
            str(run.path),
            "1",
            "cpu",
        ]
        environment = {**processes.environment(os.environ), "CUDA_VISIBLE_DEVICES": "-1"}
        output = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout
        counts = re.search(r"file operations: (\d+), syncs: (\d+)", output)
        end = checkpoints.load_newest(run.checkpoints)
        assert end is not None
        calls = run.trainer_journal().read_bytes().count(b'"kind":"scalars"')
        return Reference(end.arrays, calls, *(map(int, counts.groups()) if counts else (0, 0)))
