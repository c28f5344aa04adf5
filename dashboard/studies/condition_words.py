"""Under what runs were measured, in a line: which images and how many of them, which device, whose host."""

from __future__ import annotations

from dashboard import words
from gan_runtime import catalog
from gan_runtime.store.queries import Conditions

ENGINES = {"tensorflow": "TensorFlow", "jax": "JAX", "auto": "TensorFlow"}
IMPORTED = "imported, so the times are those of the host it came from"


def line(runs: list[Conditions]) -> str:
    """All that these runs share, and what they do not with "or" between: safe inside Markdown."""
    if not runs:
        return "No run."
    parts = (
        [data(run.dataset, run.images) for run in runs],
        [processor(run.accelerator, run.cpu_model) for run in runs],
        [ENGINES.get(run.engine, run.engine) for run in runs],
        [f"{run.devices} device{'s' if run.devices > 1 else ''}" for run in runs],
        [f"{run.epochs} epoch{'s' if run.epochs > 1 else ''}" for run in runs],
        [IMPORTED for run in runs if run.imported],
    )
    return " · ".join(words.plain(" or ".join(dict.fromkeys(part))) for part in parts if part)


def data(dataset: str, images: int | None) -> str:
    """Such as: MNIST, 10 000 of its 60 000 images."""
    entry = catalog.DATASETS.get(dataset)
    name = entry.title if entry else dataset
    if images is None:
        return name
    whole = entry.rows if entry else images
    of = f" of its {words.count(whole)}" if images < whole else ""
    return f"{name}, {words.count(images)}{of} images"


def processor(accelerator: str, cpu_model: str) -> str:
    """Such as: CPU (AMD EPYC 9B14)."""
    return f"{accelerator.upper()}{f' ({cpu_model})' if cpu_model else ''}"
