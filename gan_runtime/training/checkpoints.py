"""Checkpoints: named arrays in safetensors files, written aside and renamed, the newest few kept.

The names and shapes are those of one device, so a checkpoint of eight replicas opens on one and back. A damaged newest
file is passed over for the one before it, and the caller is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from gan_runtime.engines.contract import Arrays
from gan_runtime.errors import CheckpointError

KEPT = 3


@dataclass(frozen=True)
class Checkpoint:
    """A state and where it stood. `wall_s`: training seconds until then. `warnings`: damaged files that were passed over."""

    arrays: Arrays
    step: int
    wall_s: float
    path: Path
    warnings: tuple[str, ...] = ()


def save(folder: Path, arrays: Arrays, step: int, wall_s: float) -> Path:
    """Writes `step-00000042.safetensors` and removes all but the newest few."""
    folder.mkdir(exist_ok=True)
    path = folder / f"step-{step:08d}.safetensors"
    aside = path.with_suffix(".part")
    # Not np.ascontiguousarray, which makes a scalar, such as a step count, a vector; the run would then refuse it.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    save_file(contiguous, aside, metadata={"step": str(step), "wall_s": repr(wall_s)})
    aside.replace(path)
    for old in _newest_first(folder)[KEPT:]:
        old.unlink()
    return path


def load_newest(folder: Path) -> Checkpoint | None:
    """The newest readable checkpoint; None when there is none at all.

    Raises:
        CheckpointError: files are there, but none can be read.
    """
    warnings: list[str] = []
    for path in _newest_first(folder):
        try:
            return _read(path, tuple(warnings))
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            warnings.append(f"checkpoint {path.name} is damaged ({error}); taking the one before it.")
    if warnings:
        raise CheckpointError(f"none of the {len(warnings)} checkpoints in {folder} can be read: start a new run.")
    return None


def _read(path: Path, warnings: tuple[str, ...]) -> Checkpoint:
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (safe_open is no dict)
    return Checkpoint(arrays, int(metadata["step"]), float(metadata["wall_s"]), path, warnings)


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.safetensors"), reverse=True)
