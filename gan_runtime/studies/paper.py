"""Reproducing the paper: the studies for its figures on a host, and all deviations from the paper.

Source: Ravikumar and Sriraman 2023, sections 5.1 to 5.4, Figs. 5 to 13.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gan_runtime import catalog
from gan_runtime.base import formats
from gan_runtime.hardware.hosts import ACCELERATORS, Host
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import preset
from gan_runtime.studies import references
from gan_runtime.studies.design import QUESTIONS, StudyDesign

COMPARED_BATCH = 256  # for the XLA and precision studies; the paper does not state its batch
# Options that are not compared with the paper: it does not state them, or they are random.
UNSAID = {
    "name",
    "seed",
    "batch_size_global",
    "restart_epochs",
    "weight_snapshots",
    "quality_every",
    "accelerator",
    "dataset",
    "engine",
}


@dataclass(frozen=True)
class ReproductionSize:
    """The size of a reproduction.

    `compared_epochs`: of the studies about speed, which is steady after the first epoch.
    `replicas`: at most, on a host with as many devices; on a CPU they are simulated.
    """

    title: str
    epochs: int
    compared_epochs: int
    repeats: int
    replicas: int


SIZES = {
    "full": ReproductionSize(
        "As in the paper", references.PAPER_EPOCHS, 3, 3, references.PAPER_REPLICAS
    ),
    "reduced": ReproductionSize("Reduced", 4, 3, 3, 1),
}


@dataclass(frozen=True)
class Deviation:
    """A deviation of planned runs from the paper, and the titles of their studies."""

    what: str
    here: str
    paper: str
    studies: tuple[str, ...]


@dataclass(frozen=True)
class ReproductionPlan:
    """The studies of a reproduction, their deviations from the paper, and notes for the user."""

    studies: tuple[StudyDesign, ...]
    deviations: tuple[Deviation, ...]
    notes: tuple[str, ...]

    @property
    def runs(self) -> int:
        """The number of runs of all studies."""
        return sum(len(study.runs) for study in self.studies)


def usual_size(host: Host) -> str:
    """A key of SIZES; on a CPU the whole paper takes too long."""
    return "reduced" if _best(host) == "cpu" else "full"


def plan(host: Host, dataset: str, images: int, size: str) -> ReproductionPlan:
    """The studies for Figs. 5 to 13 on this host, with the `images` images of `dataset`.

    `size`: a key of SIZES.
    """
    accelerator, scale = _best(host), SIZES[size]
    count = host.devices[accelerator].count if accelerator != "cpu" else scale.replicas
    base = {
        **preset("paper").values,
        "dataset": dataset,
        "accelerator": accelerator,
        "replicas": max(1, min(scale.replicas, count)),
        "weight_snapshots": "no",
    }
    long = {**base, "epochs": scale.epochs}
    short = {**base, "epochs": scale.compared_epochs, "batch_size_global": COMPARED_BATCH}
    studies = [
        StudyDesign.parse(
            "batch_size",
            {**long, "weight_snapshots": "yes"},
            list(references.PAPER_BATCHES),
            scale.repeats,
            "Paper - batch size",
        ),
        _restarts(long, scale),
        StudyDesign.parse("precision", short, None, scale.repeats, "Paper - precision"),
    ]
    notes = []
    if accelerator == "tpu" or host.devices[accelerator].engines[0] == "jax":
        notes.append(
            "Fig. 12 (XLA on and off) is not planned: a TPU and the JAX engine compile every step,"
            " so both variants are the same program."
        )
    else:
        studies.append(
            StudyDesign.parse("xla", short, ["off", "jit"], scale.repeats, "Paper - XLA")
        )
    devices, missing = _devices(host, short, scale)
    planned = (*studies, *([devices] if devices else []))
    return ReproductionPlan(planned, tuple(deviations(planned, host, images)), (*notes, *missing))


def _best(host: Host) -> str:
    return next(name for name in ACCELERATORS if host.devices[name].available)


def _restarts(base: dict[str, Any], size: ReproductionSize) -> StudyDesign:
    """Options with three learning-rate cycles, or one per epoch in shorter runs."""
    changed = {
        "batch_size_global": references.PAPER_RESTARTS_BATCH,
        "restart_epochs": max(1, size.epochs // 3),
    }
    return StudyDesign.parse("schedule", {**base, **changed}, None, 1, "Paper - rate schedule")


def _devices(
    host: Host, base: dict[str, Any], size: ReproductionSize
) -> tuple[StudyDesign | None, list[str]]:
    """A study for each kind of device of this host, with one device and with as many as in the
    paper, and notes on missing devices.
    """
    kinds = [name for name in ("cpu", "gpu", "tpu") if host.devices[name].available]
    values = [f"{name}:1" for name in kinds]
    best = kinds[-1]
    most = (
        references.PAPER_REPLICAS
        if best == "cpu"
        else min(references.PAPER_REPLICAS, host.devices[best].count)
    )
    if most > 1:
        values.append(f"{best}:{most}")
    absent = " and ".join(name.upper() for name in ("gpu", "tpu") if name not in kinds)
    missing = (
        [
            f"Fig. 13 (CPU, GPU, TPU) compares less: this host has no"
            f" {absent.replace(' and ', ' and no ')}."
        ]
        if absent
        else []
    )
    if len(kinds) > 1:
        missing.append(
            "Fig. 13: each accelerator has its own queue. Runs on the CPU and on the accelerator"
            " train at the same time. They slow each other down where they share the processor."
        )
    if len(values) < 2:
        return None, missing
    changed = {**base, "batch_size_global": references.PAPER_DEVICES_BATCH}
    return StudyDesign.parse("devices", changed, values, size.repeats, "Paper - devices"), missing


def deviations(studies: tuple[StudyDesign, ...], host: Host, images: int) -> list[Deviation]:
    """All deviations of these studies from the paper, read from their runs, each once; without the
    options that a study varies.
    """
    titles: dict[tuple[str, str, str], dict[str, None]] = {}
    for study in studies:
        for planned in study.runs:
            for difference in _differences(planned.spec, study, host, images):
                titles.setdefault(difference, {})[study.title] = None
    return [Deviation(*difference, tuple(names)) for difference, names in titles.items()]


def _differences(
    spec: RunSpec, study: StudyDesign, host: Host, images: int
) -> Iterator[tuple[str, str, str]]:
    """The name of each difference, the value here, and the value in the paper."""
    varied = set(QUESTIONS[study.question].varied(spec.entry))
    if (spec.dataset, images) != (references.PAPER_DATASET, references.PAPER_IMAGES):
        title = catalog.DATASETS[references.PAPER_DATASET].title
        theirs = f"{title}, {formats.quantity(references.PAPER_IMAGES, 'image')}"
        yield (
            "Data",
            f"{catalog.DATASETS[spec.dataset].title}, {formats.count(images)} images",
            theirs,
        )
    if "accelerator" not in varied:
        kind, device = spec.accelerator.upper(), host.devices[spec.accelerator].name
        yield (
            "Device",
            kind if device in ("", kind) else f"{kind} ({device})",
            references.PAPER_MACHINE,
        )
    if spec.accelerator == "cpu" and spec.replicas > 1:
        yield (
            "Replicas",
            f"{spec.replicas} simulated on the same processor",
            f"{references.PAPER_REPLICAS} TPU cores",
        )
    if host.engine(spec) != "tensorflow":
        yield "Engine", catalog.engine(host.engine(spec)).title, catalog.engine("tensorflow").title
    if (
        "xla" not in varied
        and spec.accelerator != "tpu"
        and spec.xla == "off"
        and host.engine(spec) == "tensorflow"
    ):
        yield "Compiler", "XLA off", "XLA, as in every program of a TPU"
    theirs_spec = RunSpec.parse({**preset("paper").values, "accelerator": "tpu"})
    here_and_there = {**theirs_spec.flat(), **spec.flat()}
    for name, option in RunSpec.options(theirs_spec.workload).items():
        here, theirs_value = here_and_there[name], theirs_spec.value(name)
        if here != theirs_value and name not in varied and name not in UNSAID:
            yield option.label, str(here), str(theirs_value)
    steps, paper_steps = (
        _steps(spec, images, spec.epochs),
        _steps(spec, references.PAPER_IMAGES, references.PAPER_EPOCHS),
    )
    if steps != paper_steps and not varied & {"xla", "precision", "accelerator"}:
        yield (
            f"Training steps at batch {spec.batch_size_global}",
            formats.count(steps),
            formats.count(paper_steps),
        )


def _steps(spec: RunSpec, images: int, epochs: int) -> int:
    return spec.steps_per_epoch(images) * epochs
