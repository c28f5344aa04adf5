"""Steps compiled by XLA, as a whole or in clusters, compute what uncompiled ones compute."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gan_runtime.data import loading
from gan_runtime.engines.tf import flags as tf_flags
from gan_runtime.framework_settings import PASS_VARIABLE
from gan_runtime.records import journal
from gan_runtime.records.rundir import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.workloads import dcgan_mnist
from tests.support.engines.small_engines import MakeEngine, Numbers, assert_close, assert_moves_alike, trained

pytestmark = pytest.mark.usefixtures("cores")
OF_THE_STEP = (
    "Softplus",
    "gradient_tape/",
    "optimizer_generator/",
    "optimizer_discriminator/",
)  # losses, gradients, updates


def test_a_compiled_dcgan_step_with_r1_equals_the_uncompiled_one(make: MakeEngine) -> None:
    """Dropout noise included: it is made so that XLA draws the same numbers. At rate 1 the weights move by the gradient itself."""
    options = {"optimizer": "sgd", "learning_rate_generator": 1.0, "learning_rate_discriminator": 1.0}
    off, jit = (
        make(1, dcgan_mnist.WORKLOAD, xla=xla, r1_weight=1.0, accumulation_steps=2, **options)
        for xla in ("off", "jit")
    )
    before = off.state()
    assert_close(trained(jit, 1), trained(off, 1), 1e-4)
    assert_moves_alike(before, jit.state(), off.state(), 1e-3)
    [gradients] = jit._step._gradients
    assert gradients.experimental_get_tracing_count() == 1  # not once for each part


@pytest.mark.parametrize(("replicas", "parts"), [(1, 2), (2, 1)])
def test_the_kernels_of_a_compiled_step_are_counted_before_and_after_xla(
    make: MakeEngine, replicas: int, parts: int
) -> None:
    engine = make(replicas, xla="jit", count_kernels="yes", accumulation_steps=parts)
    engine.trace()
    found = engine.kernels()
    assert found.kernels_before is not None
    assert found.kernels_after is not None
    assert found.fusions is not None
    assert found.operations > 100
    assert 0 < found.fusions <= found.kernels_after < found.kernels_before
    engine.run(1)  # counting has changed nothing that training needs


def test_the_phases_of_a_step_add_up(make: MakeEngine) -> None:
    together, in_turn = (
        make(1, xla="jit", count_kernels="yes", updates=updates).kernels()
        for updates in ("together", "in_turn")
    )
    assert (in_turn.kernels_before or 0) > (together.kernels_before or 0)


def test_without_being_asked_only_operations_are_counted(make: MakeEngine) -> None:
    off, jit = make(1, count_kernels="yes").kernels(), make(1, xla="jit").kernels()
    assert (
        (off.kernels_before, off.kernels_after, off.fusions)
        == (jit.kernels_before, jit.kernels_after, jit.fusions)
        == (None,) * 3
    )
    assert min(off.operations, jit.operations) > 100


def test_autocluster_makes_clusters_of_the_training_step_and_the_same_numbers(
    make: MakeEngine, new_run: Callable[..., RunDir], tmp_path: Path
) -> None:
    """A trainer of its own, since TensorFlow reads the flags once. XLA writes down what it compiles."""
    options = {"replicas": 2, "batch_size_global": 512, "epochs": 1, "precision": "float32"}
    run = new_run("run-0001", workload="mlp_gan", xla="autocluster", **options)
    dump = tmp_path / "compiled"
    command = [sys.executable, "-m", "gan_runtime.worker", str(run.path), "1", "cpu"]
    environment = {**os.environ, PASS_VARIABLE: "XLA_FLAGS", "XLA_FLAGS": f"--xla_dump_to={dump}"}
    child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert child.returncode == 0, child.stdout + child.stderr

    clusters = [path.read_text() for path in dump.glob("*.cluster_*.before_optimizations.txt")]
    assert len(clusters) >= 3
    compiled = "\n".join(clusters)
    assert [part for part in OF_THE_STEP if part not in compiled] == []

    engine = make(images=loading.load("digits").resident["images"], **options)
    assert_close(recorded(run), trained(engine, 3), 1e-4)


def recorded(run: RunDir) -> Numbers:
    """Every metric of every step in the trainer's journal."""
    calls = [
        record.values
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, journal.Scalars)
    ]
    return {metric: np.concatenate([call[metric] for call in calls]) for metric in calls[0]}


@pytest.mark.parametrize(
    ("xla", "given", "flags"),
    [
        ("autocluster", None, "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"),
        (
            "autocluster",
            "--tf_xla_min_cluster_size=9",
            "--tf_xla_min_cluster_size=9 --tf_xla_auto_jit=2 --tf_xla_cpu_global_jit",
        ),
        ("jit", None, None),
        ("off", "--tf_xla_min_cluster_size=9", "--tf_xla_min_cluster_size=9"),
    ],
)
def test_flags_are_set_for_autocluster_alone(
    monkeypatch: pytest.MonkeyPatch, xla: str, given: str | None, flags: str | None
) -> None:
    # A copy: what the function sets must not reach the processes that later tests start.
    monkeypatch.setattr(os, "environ", {"TF_XLA_FLAGS": given} if given else {})
    tf_flags.set_flags(RunSpec.parse({"xla": xla}), "cpu")
    assert os.environ.get("TF_XLA_FLAGS") == flags


@pytest.mark.parametrize(
    ("options", "accelerator", "threads"),
    [
        ({"replicas": 4}, "cpu", ("1", "4")),
        ({"replicas": 8}, "cpu", ("1", "4")),
        ({"replicas": 2}, "cpu", (None, None)),
        ({"replicas": 8}, "gpu", (None, None)),
        ({"workers": 8}, "cpu", (None, None)),  # the launcher shares the cores out among processes
    ],
)
def test_as_many_replicas_as_cores_get_one_thread_an_operation(
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, int],
    accelerator: str,
    threads: tuple[str | None, str | None],
) -> None:
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    tf_flags.set_flags(RunSpec.parse(options), accelerator)
    assert (os.environ.get("TF_NUM_INTRAOP_THREADS"), os.environ.get("TF_NUM_INTEROP_THREADS")) == threads


@pytest.mark.parametrize(
    ("options", "cores", "trains", "threads"),
    [
        ({}, 2, True, ("1", "2")),
        ({}, 8, True, (None, None)),
        ({}, 2, False, (None, None)),
        ({"pix2pix.size": "full"}, 2, True, (None, None)),
        ({"pix2pix.tile": 128}, 2, True, (None, None)),
    ],
)
def test_small_layers_on_two_cores_get_one_thread_an_operation_while_they_train(
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
    cores: int,
    trains: bool,
    threads: tuple[str | None, str | None],
) -> None:
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    spec = RunSpec.parse({"workload": "pix2pix", "dataset": "karman", **options})
    tf_flags.set_flags(spec, "cpu", trains=trains)
    assert (os.environ.get("TF_NUM_INTRAOP_THREADS"), os.environ.get("TF_NUM_INTEROP_THREADS")) == threads


def test_threads_that_a_person_has_set_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"TF_NUM_INTRAOP_THREADS": "3"})
    tf_flags.set_flags(RunSpec.parse({"replicas": 256}), "cpu")
    assert os.environ["TF_NUM_INTRAOP_THREADS"] == "3"
