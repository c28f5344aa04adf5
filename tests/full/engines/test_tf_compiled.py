"""Steps compiled by XLA, as a whole or in clusters, match uncompiled ones: real networks, real
trainers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gan_runtime.base.framework_settings import PASS_VARIABLE
from gan_runtime.data import loading
from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from gan_runtime.workloads import dcgan_mnist
from tests.support.engines.small_engines import (
    MakeEngine,
    Numbers,
    assert_close,
    assert_moves_alike,
    trained,
)

pytestmark = pytest.mark.usefixtures("cores")
OF_THE_STEP = (
    "Softplus",
    "gradient_tape/",
    "optimizer_generator/",
    "optimizer_discriminator/",
)  # losses, gradients, updates


def test_compiled_dcgan_step_with_r1_matches_the_uncompiled_one(make: MakeEngine) -> None:
    """Includes dropout noise, which is generated so that XLA draws the same numbers.

    At rate 1 the weights move by the gradient itself.
    """
    options = {
        "optimizer": "sgd",
        "learning_rate_generator": 1.0,
        "learning_rate_discriminator": 1.0,
    }
    off, jit = (
        make(1, dcgan_mnist.WORKLOAD, xla=xla, r1_weight=1.0, accumulation_steps=2, **options)
        for xla in ("off", "jit")
    )
    before = off.state()
    assert_close(trained(jit, 1), trained(off, 1), 1e-4)
    assert_moves_alike(before, jit.state(), off.state(), 1e-3)
    [gradients] = jit.step.gradient_functions
    assert gradients.experimental_get_tracing_count() == 1  # not once per part


@pytest.mark.parametrize(("replicas", "parts"), [(1, 2), (2, 1)])
def test_kernels_of_a_compiled_step_are_counted_before_and_after_xla(
    make: MakeEngine, replicas: int, parts: int
) -> None:
    engine = make(replicas, xla="jit", count_kernels="yes", accumulation_steps=parts)
    engine.trace()
    kernels = engine.kernels()
    assert kernels.kernels_before is not None
    assert kernels.kernels_after is not None
    assert kernels.fusions is not None
    assert kernels.operations > 100
    assert 0 < kernels.fusions <= kernels.kernels_after < kernels.kernels_before
    engine.run(1)  # counting changes nothing that training needs


def test_kernel_counts_add_up_over_phases(make: MakeEngine) -> None:
    together, in_turn = (
        make(1, xla="jit", count_kernels="yes", updates=updates).kernels()
        for updates in ("together", "in_turn")
    )
    assert (in_turn.kernels_before or 0) > (together.kernels_before or 0)


def test_autocluster_compiles_the_step_without_changing_results(
    make: MakeEngine, new_run: Callable[..., RunDir], tmp_path: Path
) -> None:
    """Uses its own trainer, since TensorFlow reads the flags once.

    XLA dumps what it compiles.
    """
    options = {"replicas": 2, "batch_size_global": 512, "epochs": 1, "precision": "float32"}
    run = new_run("run-0001", workload="mlp_gan", xla="autocluster", **options)
    dump = tmp_path / "compiled"
    command = [sys.executable, "-m", "gan_runtime.worker", str(run.path), "1", "cpu"]
    environment = {**os.environ, PASS_VARIABLE: "XLA_FLAGS", "XLA_FLAGS": f"--xla_dump_to={dump}"}
    child = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=250, check=False
    )
    assert child.returncode == 0, child.stdout + child.stderr

    clusters = [path.read_text() for path in dump.glob("*.cluster_*.before_optimizations.txt")]
    assert len(clusters) >= 3
    compiled = "\n".join(clusters)
    assert [part for part in OF_THE_STEP if part not in compiled] == []

    engine = make(images=loading.load("digits").resident["images"], **options)
    assert_close(recorded(run), trained(engine, 3), 1e-4)


def recorded(run: RunDir) -> Numbers:
    """Returns every metric of every step in the trainer's journal."""
    calls = [
        record.values
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, journal.Scalars)
    ]
    return {metric: np.concatenate([call[metric] for call in calls]) for metric in calls[0]}
