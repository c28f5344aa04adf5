"""benchmarks/gpu.sh, with the CPU in the place of a GPU. It also runs without PyTorch, whose cells
then say so.

The evaluation is left out, since it trains a classifier: test_quality.py runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gan_runtime.records.home import REPOSITORY

CASE = ["--only", "dcgan_mnist", "--batches", "2", "--precisions", "float32"]
SHORT_RUN = ["workload=mlp_gan", "epochs=1", "quality_every=0"]


def interpreter(tmp_path: Path, code: str) -> Path:
    """A shell script in the place of Python, which lists its calls in the file `calls`."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{code}\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def script(tmp_path: Path, python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The finished script, with its results in the temporary folder."""
    output = ["--output", str(tmp_path / "gpu.jsonl")]
    return subprocess.run(
        [REPOSITORY / "benchmarks" / "gpu.sh", *arguments, "--accelerator", "cpu", *output, *CASE],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHON": str(python),
            "LIMIT": "400",
            "GAN_RUNTIME_LOCKS": str(tmp_path / "locks"),
        },
    )


@pytest.mark.timeout(600)  # ten processes; three of them compile
def test_the_script_trains_a_run_and_prints_a_table_with_rows(tmp_path: Path) -> None:
    without_evaluation = f'case "$*" in *" evaluate "*) exit ;; esac\nexec {sys.executable} "$@"'
    settings = [word for setting in SHORT_RUN for word in ("--set", setting)]

    child = script(tmp_path, interpreter(tmp_path, without_evaluation), *settings)

    assert child.returncode == 0, child.stderr
    assert "finished" in child.stdout, "the run of the SQL query"
    row = next(line for line in child.stdout.splitlines() if line.startswith("| `dcgan_mnist`"))
    workload, batch, precision, images_per_s = row.strip("| ").split(" | ")[:4]
    assert (workload, batch, precision) == ("`dcgan_mnist`", "2", "float32")
    assert int(images_per_s.replace(",", "")) > 0


def test_a_failed_training_is_named_and_does_not_stop_the_other_parts(tmp_path: Path) -> None:
    failing = 'case "$*" in *" train "*) exit 3 ;; esac'

    child = script(tmp_path, interpreter(tmp_path, failing))

    assert child.returncode == 1
    (failure,) = [line for line in child.stderr.splitlines() if line.startswith("failed: ")]
    assert "gan_runtime train --preset quick" in failure
    assert failure.endswith("(exit code 3)")
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert "-m gan_runtime evaluate quick-0001 quality" in calls
    assert calls[-1].startswith("-m benchmarks.gpu --table")
