"""Two workers without a shared run folder: one has a checkpoint, the other none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from gan_runtime.base.cluster import free_addresses, tf_config
from gan_runtime.engines.contract import Arrays
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.training import checkpoints

SPEC = {
    "workload": "mlp_gan",
    "batch_size_global": 128,
    "precision": "float32",
    "workers": 2,
    "epochs": 1,
}
STEP = 14


def run_apart(home: Home, elsewhere: Path) -> list[RunDir]:
    """The run's folder as each worker sees it."""
    first = RunDir(home.runs / "cluster-0001")
    first.path.mkdir()
    write_json(first.spec_path, SPEC)
    second = RunDir(shutil.copytree(first.path, elsewhere / "cluster-0001"))
    state: Arrays = {}  # not read: the workers compare their steps first
    checkpoints.save(first.checkpoints, state, STEP, wall_s=1.0, retained=3)
    return [first, second]


def assert_both_end_with_a_sentence(
    apart: list[RunDir], module: str, seconds: float, says_rank: bool
) -> None:
    """Asserts that both workers exit with an error instead of waiting for each other.

    `module`: the entry module of a worker; `seconds`: until both have exited; `says_rank`: whether
    the rank is also an argument, in addition to its place in TF_CONFIG.
    """
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "CUDA_VISIBLE_DEVICES": "-1"}
    addresses = free_addresses(2)
    workers = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                module,
                str(run.path),
                "1",
                "cpu",
                *([str(rank)] if says_rank else []),
            ],
            env={**environment, "TF_CONFIG": tf_config(addresses, rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank, run in enumerate(apart)
    ]
    try:
        printed = [worker.communicate(timeout=seconds)[0].splitlines()[-1] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    # A worker of a cluster continues its output in the run's folder.
    logged = [run.log_tail(1, rank) for rank, run in enumerate(apart)]
    assert (printed if says_rank else logged) == [
        f"worker {rank} of 2: one worker resumes from step 0, another from step 14: they see"
        f" different {run.checkpoints}. Use one home on a shared file system."
        for rank, run in enumerate(apart)
    ]
    assert [worker.returncode for worker in workers] == [1, 1]
