"""Reproducing the paper: which studies answer its figures, in full and in the reduced form that a small machine affords.

Source: Ravikumar and Sriraman 2023, sections 5.1 to 5.4, Figs. 5 to 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gan_runtime.hosts import Host
from gan_runtime.studies.design import StudyDesign

FULL = {"epochs": 30, "repeats": 3}
REDUCED = {"epochs": 4, "repeats": 2}
REPLICAS = 8
COMPARED_EPOCHS = 3  # of the XLA and accelerator studies: they are about speed, which is steady after the first epoch


@dataclass(frozen=True)
class Plan:
    """The studies of one reproduction, and in words what was reduced; empty when nothing was."""

    studies: tuple[StudyDesign, ...]
    reduced: str

    @property
    def runs(self) -> int:
        """All of them together."""
        return sum(len(study.runs) for study in self.studies)


def plan(host: Host, dataset: str) -> Plan:
    """The studies for Figs. 5 to 13 on this host, with the images of `dataset`."""
    accelerator = next((name for name in ("tpu", "gpu") if host.devices[name].available), "cpu")
    small = accelerator == "cpu"
    replicas = 1 if small else min(REPLICAS, host.devices[accelerator].count)
    size = REDUCED if small else FULL
    base: dict[str, Any] = {
        "workload": "dcgan_mnist",
        "dataset": dataset,
        "accelerator": accelerator,
        "replicas": replicas,
        "batch_size_global": 256,
    }
    studies = (
        StudyDesign.parse(
            "batch_size",
            {**base, "epochs": size["epochs"], "weight_snapshots": "yes"},
            [64, 128, 256, 512],
            size["repeats"],
            "Paper - batch size",
        ),
        StudyDesign.parse("xla", {**base, "epochs": COMPARED_EPOCHS}, ["off", "jit"], size["repeats"], "Paper - XLA"),
        StudyDesign.parse("precision", {**base, "epochs": COMPARED_EPOCHS}, None, size["repeats"], "Paper - precision"),
    )
    return Plan(studies, _reduced(host, dataset, size) if small else "")


def _reduced(host: Host, dataset: str, size: dict[str, int]) -> str:
    """What differs from the paper's setting, in a sentence."""
    data = "" if dataset == "mnist" else f", on the {dataset} instead of MNIST"
    return (
        f"A reduced form for this host ({host.cores} CPU cores, no GPU or TPU): {size['epochs']} epochs instead of "
        f"{FULL['epochs']}, {size['repeats']} repeats, one device instead of eight TPU cores{data}."
    )
