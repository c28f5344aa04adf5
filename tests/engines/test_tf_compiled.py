"""Steps compiled by XLA, as a whole or in clusters: kernel counts, flags and threads."""

from __future__ import annotations

import os

import pytest

from gan_runtime.engines.tf import process as tf_process
from gan_runtime.spec import RunSpec
from tests.support.engines.small_engines import MakeEngine

pytestmark = pytest.mark.usefixtures("cores")


def test_kernels_of_a_compiled_step_are_counted_before_and_after_xla(make: MakeEngine) -> None:
    kernels = make(1, xla="jit", count_kernels="yes").kernels()
    assert kernels.kernels_before is not None
    assert kernels.kernels_after is not None
    assert kernels.fusions is not None
    assert kernels.operations > 100
    assert 0 < kernels.fusions <= kernels.kernels_after < kernels.kernels_before


def test_only_operations_are_counted_without_xla_or_count_kernels(make: MakeEngine) -> None:
    off, jit = make(1, count_kernels="yes").kernels(), make(1, xla="jit").kernels()
    assert (
        (off.kernels_before, off.kernels_after, off.fusions)
        == (jit.kernels_before, jit.kernels_after, jit.fusions)
        == (None,) * 3
    )
    assert min(off.operations, jit.operations) > 100


@pytest.mark.parametrize(
    ("xla", "present", "flags"),
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
def test_xla_flags_are_set_only_for_autocluster(
    monkeypatch: pytest.MonkeyPatch, xla: str, present: str | None, flags: str | None
) -> None:
    # A copy, so that the flags do not reach the processes that later tests start.
    monkeypatch.setattr(os, "environ", {"TF_XLA_FLAGS": present} if present else {})
    tf_process.set_flags(RunSpec.parse({"xla": xla}), "cpu")
    assert os.environ.get("TF_XLA_FLAGS") == flags


@pytest.mark.parametrize(
    ("options", "accelerator", "threads"),
    [
        ({"replicas": 4}, "cpu", ("1", "4")),
        ({"replicas": 8}, "cpu", ("1", "4")),
        ({"replicas": 2}, "cpu", (None, None)),
        ({"replicas": 8}, "gpu", (None, None)),
        ({"workers": 8}, "cpu", (None, None)),  # the launcher divides the cores among processes
    ],
)
def test_one_thread_per_operation_if_replicas_fill_the_cores(
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, int],
    accelerator: str,
    threads: tuple[str | None, str | None],
) -> None:
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    tf_process.set_flags(RunSpec.parse(options), accelerator)
    assert (
        os.environ.get("TF_NUM_INTRAOP_THREADS"),
        os.environ.get("TF_NUM_INTEROP_THREADS"),
    ) == threads


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
def test_small_layers_on_two_cores_train_with_one_thread_per_op(
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
    cores: int,
    trains: bool,
    threads: tuple[str | None, str | None],
) -> None:
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    spec = RunSpec.parse({"workload": "pix2pix", "dataset": "karman", **options})
    tf_process.set_flags(spec, "cpu", trains=trains)
    assert (
        os.environ.get("TF_NUM_INTRAOP_THREADS"),
        os.environ.get("TF_NUM_INTEROP_THREADS"),
    ) == threads


def test_user_set_thread_counts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"TF_NUM_INTRAOP_THREADS": "3"})
    tf_process.set_flags(RunSpec.parse({"replicas": 256}), "cpu")
    assert os.environ["TF_NUM_INTRAOP_THREADS"] == "3"
