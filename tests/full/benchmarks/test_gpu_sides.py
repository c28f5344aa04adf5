"""The sides of the GPU benchmark, run on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from gan_runtime.records.home import REPOSITORY


def _answers(*arguments: str, requests: str = "") -> list[dict[str, object]]:
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu.jax_side", *arguments],
        input=requests,
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
        env={**os.environ, "GPU_BENCH_ACCELERATOR": "cpu"},
    )
    return [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")]


def test_engine_side_prepares_and_measures_a_case() -> None:
    requests = '{"request": "prepare"}\n{"request": "measure", "seconds": 0.01}\n'

    prepared, turn = _answers("dcgan_mnist", "2", "float32", requests=requests)

    assert "failure" not in prepared
    assert turn["steps"] == 50
    assert float(str(turn["seconds"])) > 0.01


def test_dcgan_step_operations_match_its_layers() -> None:
    """benchmarks/flops.py counts 431.6 million, including positions outside the image in full."""
    (counted,) = _answers("operations", "dcgan_mnist")

    assert float(str(counted["flop_per_image"])) == pytest.approx(328e6, rel=0.01)
