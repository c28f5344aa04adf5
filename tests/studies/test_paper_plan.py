"""The plan to reproduce the paper on a host: its queued studies, and all deviations from the paper,
before it starts.
"""

from __future__ import annotations

import pytest

from gan_runtime.hardware.hosts import Device, Host
from gan_runtime.studies import paper
from gan_runtime.studies.paper import Deviation, ReproductionPlan


def with_devices(host: Host, **devices: Device) -> Host:
    return host.model_copy(update={"devices": {**host.devices, **devices}})


def deviations_of(plan: ReproductionPlan) -> dict[str, tuple[str, str]]:
    """Maps deviations to (here, in the paper); if several studies share one, the first counts."""
    return {
        deviation.what: (deviation.here, deviation.paper) for deviation in reversed(plan.deviations)
    }


def titles(plan: ReproductionPlan) -> list[str]:
    return [study.title.removeprefix("Paper - ") for study in plan.studies]


def test_cpu_plan_lists_all_reductions(host: Host) -> None:
    plan = paper.plan(host, "digits", 1_797, paper.usual_size(host))
    assert titles(plan) == ["batch size", "rate schedule", "precision", "XLA", "devices"]
    assert plan.runs == 12 + 2 + 6 + 6 + 6
    assert plan.deviations[0].studies == tuple(study.title for study in plan.studies)
    assert deviations_of(plan) == {
        "Data": ("Digits (embedded), 1,797 images", "MNIST, 60,000 images"),
        "Device": ("CPU (test processor)", "TPU v3"),
        "Compiler": ("XLA off", "XLA, as in every program of a TPU"),
        "Replicas": ("1", "8"),
        "Epochs": ("4", "30"),
        "Training steps at batch 64": ("112", "28,110"),
        "Training steps at batch 128": ("56", "14,040"),
        "Training steps at batch 256": ("28", "7,020"),
        "Training steps at batch 512": ("12", "3,510"),
    }
    epochs = [deviation for deviation in plan.deviations if deviation.what == "Epochs"]
    assert epochs == [
        Deviation("Epochs", "4", "30", ("Paper - batch size", "Paper - rate schedule")),
        Deviation("Epochs", "3", "30", ("Paper - precision", "Paper - XLA", "Paper - devices")),
    ]
    assert plan.notes == (
        "Fig. 13 (CPU, GPU, TPU) compares less: this host has no GPU and no TPU.",
    )


def test_full_size_cpu_plan_uses_and_reports_simulated_replicas(host: Host) -> None:
    plan = paper.plan(host, "mnist", 10_000, "full")
    assert {run.spec.replicas for run in plan.studies[0].runs} == {8}
    assert deviations_of(plan)["Replicas"] == ("8 simulated on the same processor", "8 TPU cores")
    assert deviations_of(plan)["Data"] == ("MNIST, 10,000 images", "MNIST, 60,000 images")
    assert deviations_of(plan)["Training steps at batch 64"] == ("4,680", "28,110")


def test_single_gpu_plan_reports_its_deviations(host: Host) -> None:
    gpu = Device(available=True, count=1, name="H200")
    plan = paper.plan(with_devices(host, gpu=gpu), "mnist", 60_000, "full")
    assert deviations_of(plan) == {
        "Device": ("GPU (H200)", "TPU v3"),
        "Compiler": ("XLA off", "XLA, as in every program of a TPU"),
        "Replicas": ("1", "8"),
        "Epochs": ("3", "30"),
    }
    assert [run.variant for run in plan.studies[-1].runs[:2]] == ["cpu x1", "gpu x1"]
    assert any("this host has no TPU" in note for note in plan.notes)
    assert any("train at the same time" in note for note in plan.notes)


@pytest.mark.parametrize("engine", ["tensorflow", "jax"])
def test_tpu_plan_follows_the_paper_but_omits_the_xla_study(host: Host, engine: str) -> None:
    tpu = Device(available=True, count=8, name="TPU", engines=(engine,))
    plan = paper.plan(with_devices(host, tpu=tpu), "mnist", 60_000, "full")
    spec = plan.studies[0].runs[0].spec
    assert (spec.accelerator, spec.replicas, spec.epochs, spec.dataset, spec.precision) == (
        "tpu",
        8,
        30,
        "mnist",
        "mixed_bfloat16",
    )
    assert titles(plan) == ["batch size", "rate schedule", "precision", "devices"]
    assert [run.variant for run in plan.studies[-1].runs[:3]] == ["cpu x1", "tpu x1", "tpu x8"]
    assert {run.spec.batch_size_global for run in plan.studies[-1].runs} == {32}
    assert plan.notes[0].startswith(
        "Fig. 12 (XLA on and off) is not planned: a TPU and the JAX engine compile every step"
    )
    batch_size = [
        deviation.what for deviation in plan.deviations if "Paper - batch size" in deviation.studies
    ]
    assert batch_size == (
        ["Device"] if engine == "tensorflow" else ["Device", "Engine"]
    )  # its version is not compared


def test_figure_9_study_has_restart_cycles_at_the_papers_batch(host: Host) -> None:
    for size, cycle in (("full", 10), ("reduced", 1)):
        [constant, restarts] = paper.plan(host, "digits", 1_797, size).studies[1].runs
        assert (constant.variant, restarts.variant) == ("constant rate", "cosine restarts rate")
        assert (restarts.spec.learning_rate_schedule, restarts.spec.restart_epochs) == (
            "cosine_restarts",
            cycle,
        )
        assert restarts.spec.batch_size_global == 512
