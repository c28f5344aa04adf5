"""The work of the job that generates: a checkpoint is asked for images, which become a picture and a file of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime import pictures
from gan_runtime.jobs.task import Task
from gan_runtime.training import trained
from gan_runtime.training.album import Album
from gan_runtime.training.checkpoints import Which
from gan_runtime.training.trained import Trained

PICTURE_FILE = "generated.png"
ARRAYS_FILE = "generated.npz"  # what the workload shows, by name


@dataclass(frozen=True)
class Wanted:
    """The options of the job. `label`: the name of one class; empty for all of them. `checkpoint`: which of the run's."""

    run_id: str
    count: int = 64
    seed: int = 0
    label: str = ""
    checkpoint: Which = "newest"


def generate(task: Task) -> dict[str, Any]:
    """Options: those of `Wanted`. The picture holds all of the images, drawn as those of the run's epochs are.

    Raises:
        CheckpointError, DatasetError, SpecError: see `trained.of_run` and `Trained.generated`.
        UnknownRunError: the run is gone.
    """
    wanted = Wanted(**task.options)
    task.progress(0, 3, "building the networks")
    networks = trained.of_run(task.home.run_dir(wanted.run_id), task.home, wanted.checkpoint)
    task.progress(1, 3, "generating")
    shown = networks.generated(wanted.count, wanted.seed, wanted.label)
    task.progress(2, 3, "drawing")
    pictures.save(_drawn(networks, shown, wanted), task.results / PICTURE_FILE)
    np.savez_compressed(task.results / ARRAYS_FILE, allow_pickle=False, **shown)
    task.progress(3, 3, "done")
    checkpoint = networks.checkpoint
    return {
        "step": checkpoint.step,
        "checkpoint_file": checkpoint.path.name,
        "warnings": list(checkpoint.warnings),
    }


def _drawn(networks: Trained, shown: Mapping[str, NDArray[Any]], wanted: Wanted) -> Image.Image:
    """The first of the kinds of pictures that the workload makes of these arrays."""
    kind = Album.of(networks.spec).drawn(shown)[0]
    takes = pictures.RENDERERS[kind.renderer].takes
    arrays, classes = [shown[name] for name in kind.arrays], networks.classes
    if wanted.label:  # the only class there is to speak of
        classes = (wanted.label,)
        arrays = [
            np.zeros_like(array) if name == pictures.LABELS else array
            for name, array in zip(takes, arrays, strict=True)
        ]
    return pictures.render(kind.renderer, tuple(arrays), classes, pictures.whole(wanted.count))
