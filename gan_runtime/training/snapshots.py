"""Weights of the networks as they were before training and after each epoch, without
optimizers: half-precision files.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from gan_runtime.base import disk
from gan_runtime.base.errors import CheckpointError
from gan_runtime.engines.contract import Arrays

Weights = dict[str, NDArray[np.float32]]

FEWEST = 3  # a plane needs three points
MOST = 60  # that are read again; of more, as many are taken evenly
_NAME = re.compile(r"epoch-([0-9]{5}|[1-9][0-9]{5,8})\.safetensors")
_NO_WEIGHTS = ("optimizer_", "average/", "average_")


def save(folder: Path, state: Arrays, epoch: int) -> Path:
    """Writes `epoch-00003.safetensors` from an engine's state; epoch 0 is the untrained network."""
    folder.mkdir(exist_ok=True)
    path = folder / f"epoch-{epoch:05d}.safetensors"
    weights = {
        name: array.astype(np.float16)
        for name, array in state.items()
        if array.ndim and not name.startswith(_NO_WEIGHTS)
    }
    with disk.whole_file(path) as aside:
        save_file(weights, aside)
    return path


def epochs(folder: Path) -> list[int]:
    """The epochs of which snapshots are there, in their order; empty without the folder."""
    return sorted(
        int(found[1]) for path in folder.glob("epoch-*") if (found := _NAME.fullmatch(path.name))
    )


def in_words(there: list[int]) -> str:
    """Of one of `epochs` or more: "epoch 3", "epochs 0 to 12 and 15"."""
    gaps = [place for place in range(1, len(there)) if there[place] > there[place - 1] + 1]
    parts = [there[begin:end] for begin, end in pairwise([0, *gaps, len(there)])]
    told = [f"{part[0]} to {part[-1]}" if len(part) > 1 else str(part[0]) for part in parts]
    begin = f"{', '.join(told[:-1])} and " if told[1:] else ""
    return f"epoch{'s' if there[1:] else ''} {begin}{told[-1]}"


def load(folder: Path) -> dict[int, Weights]:
    """Epoch → named float32 arrays; the first and the last epoch, and evenly between them at
    most MOST in all.
    """
    there = epochs(folder)
    places = np.linspace(0, max(0, len(there) - 1), min(MOST, len(there))).round().astype(int)
    return {there[place]: load_one(folder, there[place]) for place in places}


def load_one(folder: Path, epoch: int) -> Weights:
    """The weights after one of `epochs`: named float32 arrays.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = folder / f"epoch-{epoch:05d}.safetensors"
    try:
        return {name: array.astype(np.float32) for name, array in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"the weights in {path} cannot be read ({error}): take another epoch."
        ) from None
