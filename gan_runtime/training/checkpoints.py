"""Checkpoints: named arrays in safetensors files, written aside and renamed; the newest few and the best one are kept.

The names and shapes are those of one device, so a checkpoint of eight replicas opens on one and back. Each file carries a
digest of its arrays. A damaged newest file is passed over for the one before it, and the caller is told.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from gan_runtime.engines.contract import Arrays
from gan_runtime.errors import CheckpointError

BEST = "best.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """A state and where it stood. `wall_s`: training seconds until then. `warnings`: damaged files that were passed over."""

    arrays: Arrays
    step: int
    wall_s: float
    path: Path
    warnings: tuple[str, ...] = ()


def save(folder: Path, arrays: Arrays, step: int, wall_s: float, kept: int, gap: float | None = None) -> Path:
    """Writes `step-00000042.safetensors` and removes all but the newest `kept`.

    `gap`: how far apart D's mean scores of real and generated images are, 0 to 1, where it was measured. The file with the
    smallest gap stays as `best.safetensors`: of all epochs the one whose images D found hardest to tell. That is no measure
    of image quality.
    """
    folder.mkdir(exist_ok=True)
    path = folder / f"step-{step:08d}.safetensors"
    # Not np.ascontiguousarray, which makes a scalar, such as a step count, a vector; the run would then refuse it.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {"step": str(step), "wall_s": repr(wall_s), "digest": _digest(contiguous)}
    aside = path.with_suffix(".part")
    save_file(contiguous, aside, metadata=metadata | ({} if gap is None else {"gap": repr(gap)}))
    aside.replace(path)
    if gap is not None and gap < _best_gap(folder):
        shutil.copyfile(path, aside)
        aside.replace(folder / BEST)
    for old in _newest_first(folder)[kept:]:
        old.unlink()
    return path


def load_newest(folder: Path) -> Checkpoint | None:
    """The newest readable checkpoint, as a last resort the best one; None when there is none at all.

    Raises:
        CheckpointError: files are there, but none can be read.
    """
    warnings: list[str] = []
    best = [folder / BEST] if (folder / BEST).exists() else []
    for path in [*_newest_first(folder), *best]:
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
    if metadata.get("digest", _digest(arrays)) != _digest(arrays):
        raise ValueError("its contents have changed since they were written")
    return Checkpoint(arrays, int(metadata["step"]), float(metadata["wall_s"]), path, warnings)


def _best_gap(folder: Path) -> float:
    try:
        with safe_open(folder / BEST, framework="numpy") as file:
            return float(file.metadata()["gap"])
    except (SafetensorError, OSError, KeyError, ValueError):
        return float("inf")  # none yet, or one that nobody can read


def _digest(arrays: Arrays) -> str:
    found = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        found.update(name.encode())
        found.update(np.asarray(arrays[name], order="C").tobytes())
    return found.hexdigest()


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.safetensors"), reverse=True)
