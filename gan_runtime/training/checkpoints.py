"""Checkpoints: named arrays in safetensors files, written aside and renamed; the newest few and the
best one are kept.

The names and shapes are those of one device, so a checkpoint of eight replicas opens on one and
back. Each file carries a digest of all that it holds. A newest file that is damaged, or holds
numbers that are none, is passed over for the one before it, and the caller is told. Files and their
names are on the disk, not only in the system's memory, when `save` returns.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from gan_runtime.base import disk
from gan_runtime.base.errors import CheckpointError
from gan_runtime.engines.contract import Arrays
from gan_runtime.training.alarms import first_not_finite

BEST = "best.safetensors"
_NAME = re.compile(r"step-(?:[0-9]{8}|[1-9][0-9]{8,11})\.safetensors")
SHORTFALL = "gap"  # as files have called it from the beginning
DIGEST, OF_ALL = (
    "digest",
    "all:",
)  # before the digest of a file that has one of more than its arrays' names and numbers
Which = Literal["newest", "best"]


@dataclass(frozen=True)
class Checkpoint:
    """A state and where it stood.

    `wall_s`: training seconds until then. `warnings`: files that were passed over, and why.
    """

    arrays: Arrays
    step: int
    wall_s: float
    path: Path
    warnings: tuple[str, ...] = ()


def save(
    folder: Path,
    arrays: Arrays,
    step: int,
    wall_s: float,
    kept: int,
    shortfall: float | None = None,
) -> Path:
    """Writes `step-00000042.safetensors` and removes all but the newest `kept`.

    `shortfall`: how far the epoch is from the best there can be (`alarms.shortfall`), where that
    was measured. The file with the smallest one stays as `best.safetensors`: the best epoch by a
    workload's own measure of quality, else the one whose rows were hardest to tell from real ones,
    which is no measure of quality. A workload that judges nothing has no best file.

    Raises:
        HomeError: the disk has too little space for it, or ran full; the older files stay as they
            are.
    """
    folder.mkdir(exist_ok=True)
    disk.require(
        folder, sum(array.nbytes for array in arrays.values()), f"the checkpoint after step {step}"
    )
    path = _path(folder, step)
    _write(path, arrays, step, wall_s, {} if shortfall is None else {SHORTFALL: repr(shortfall)})
    if shortfall is not None and shortfall < _least_shortfall(folder):
        with disk.whole_file(folder / BEST, durable=True) as aside:
            shutil.copyfile(path, aside)
    for old in _newest_first(folder)[kept:]:
        _remove(old)
    return path


def keep_as_best(folder: Path, arrays: Arrays, step: int, wall_s: float) -> None:
    """Takes the place of the best checkpoint, by a choice that is not the training's own: it has no
    shortfall, so a training that goes on chooses anew.

    Raises:
        HomeError: the disk has too little space for it; the best checkpoint stays as it was.
    """
    disk.require(folder, sum(array.nbytes for array in arrays.values()), "the best checkpoint")
    _write(folder / BEST, arrays, step, wall_s, {})


def load_newest(folder: Path, below: int | None = None) -> Checkpoint | None:
    """The newest usable checkpoint, as a last resort the best one; None when there is none at all.

    `below`: only of those before this step.

    Raises:
        CheckpointError: files are there, but none can be used.
    """
    warnings: list[str] = []
    best = [folder / BEST] if (folder / BEST).is_file() else []
    older = [path for path in _newest_first(folder) if below is None or _step(path) < below]
    for path in [*older, *best]:
        try:
            found = _read(path, tuple(warnings))
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            warnings.append(
                f"checkpoint {path.name} is damaged ({error}); taking the one before it."
            )
            continue
        bad = first_not_finite(found.arrays)
        if bad is None and (below is None or found.step < below):
            return found
        if bad is not None:
            warnings.append(
                f"checkpoint {path.name} holds NaN or infinite numbers ({bad}); taking the one"
                " before it."
            )
    if warnings and below is None:
        raise CheckpointError(
            f"none of the {len(warnings)} checkpoints in {folder} can be used: start a new run."
        )
    return None


def load(folder: Path, which: Which) -> Checkpoint:
    """The newest usable checkpoint, or the best one.

    Raises:
        CheckpointError: there is none, or it cannot be used.
    """
    if which == "newest":
        newest = load_newest(folder)
        if newest is None:
            raise CheckpointError(f"there is no checkpoint in {folder}: train for an epoch first.")
        return newest
    try:
        return _read(folder / BEST, ())
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"the best checkpoint, {folder / BEST}, cannot be used ({error}): take the newest one."
        ) from None


def steps(folder: Path) -> dict[Which, int]:
    """After how many steps the checkpoints were saved that `load` can be asked for, readable
    or not; empty without any.
    """
    newest = newest_step(folder)
    found: dict[Which, int] = {} if newest is None else {"newest": newest}
    try:
        with safe_open(folder / BEST, framework="numpy") as file:
            return {**found, "best": int(file.metadata()["step"])}
    except (SafetensorError, OSError, KeyError, ValueError, TypeError):
        return found  # a workload that judges nothing has none


def all_steps(folder: Path) -> set[int]:
    """Of all files, the best one among them, readable or not."""
    return {*map(_step, _newest_first(folder)), *steps(folder).values()}


def load_step(folder: Path, step: int) -> Checkpoint:
    """The checkpoint after so many steps, one of `all_steps`.

    Raises:
        CheckpointError: it cannot be used.
    """
    path = _path(folder, step)
    if not path.exists() and steps(folder).get("best") == step:
        path = folder / BEST
    try:
        checkpoint = _read(path, ())
        bad = first_not_finite(checkpoint.arrays)
        if bad is None:
            return checkpoint
        why = f"{bad} holds NaN or infinite numbers"
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        why = str(error)
    raise CheckpointError(f"checkpoint {path} cannot be used ({why}): take another one.")


def newest_step(folder: Path) -> int | None:
    """The step of the newest file, readable or not; None without any."""
    return next((_step(path) for path in _newest_first(folder)), None)


def remove_from(folder: Path, step: int) -> None:
    """Removes the checkpoints of this step and later ones: the training has gone back to
    before them.
    """
    for path in _newest_first(folder):
        if _step(path) >= step:
            _remove(path)


def note_failure(folder: Path, step: int) -> int | None:
    """Notes that the training has become NaN after the checkpoint of `step` without reaching
    another.

    At the second time that checkpoint is removed, if there is an older one, whose step is returned:
    a state can be finite and yet beyond repair. None: the next attempt goes on from `step`.
    """
    path, older = (
        _path(folder, step),
        [found for found in map(_step, _newest_first(folder)) if found < step],
    )
    if older and _failures(path).exists():
        _remove(path)
        return older[0]
    _failures(path).touch()
    return None


def _write(path: Path, arrays: Arrays, step: int, wall_s: float, told: dict[str, str]) -> None:
    # Not np.ascontiguousarray, which makes a scalar, such as a step count, a vector; the run would
    # then refuse it.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {"step": str(step), "wall_s": repr(wall_s), **told}
    with disk.whole_file(path, durable=True) as aside:
        save_file(
            contiguous, aside, metadata={**metadata, DIGEST: _digest_of_all(contiguous, metadata)}
        )


def _path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}.safetensors"


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))


def _failures(path: Path) -> Path:
    """An empty file beside a checkpoint from which the training has failed once."""
    return path.with_suffix(".failed")


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    _failures(path).unlink(missing_ok=True)


def _read(path: Path, warnings: tuple[str, ...]) -> Checkpoint:
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (safe_open is no dict)
    if not _is_as_written(arrays, metadata):
        raise ValueError("its contents have changed since they were written")
    return Checkpoint(arrays, int(metadata["step"]), float(metadata["wall_s"]), path, warnings)


def _least_shortfall(folder: Path) -> float:
    try:
        with safe_open(folder / BEST, framework="numpy") as file:
            return float(file.metadata()[SHORTFALL])
    except (SafetensorError, OSError, KeyError, ValueError):
        return float("inf")  # none yet, or one that nobody can read


def _is_as_written(arrays: Arrays, metadata: dict[str, str]) -> bool:
    """Files of earlier versions have a digest of their arrays alone, those of the first ones
    none.
    """
    told = {name: text for name, text in metadata.items() if name != DIGEST}
    written = metadata.get(DIGEST)
    if written is None:
        return told.keys() <= {"step", "wall_s", SHORTFALL}
    expected = _digest_of_all(arrays, told) if written.startswith(OF_ALL) else _digest(arrays)
    return written == expected


def _digest_of_all(arrays: Arrays, told: dict[str, str]) -> str:
    """Of the arrays with their types and shapes, and of what is told beside them."""
    kinds = [(name, array.dtype.str, array.shape) for name, array in sorted(arrays.items())]
    beside = hashlib.blake2b(repr((kinds, sorted(told.items()))).encode(), digest_size=16)
    return f"{OF_ALL}{_digest(arrays)}{beside.hexdigest()}"


def _digest(arrays: Arrays) -> str:
    found = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        found.update(name.encode())
        found.update(np.asarray(arrays[name], order="C").tobytes())
    return found.hexdigest()


def _newest_first(folder: Path) -> list[Path]:
    """What `save` has named so: a copy beside them, or a pipe, is none of the run's."""
    named = [
        path for path in folder.glob("step-*") if _NAME.fullmatch(path.name) and path.is_file()
    ]
    return sorted(named, key=_step, reverse=True)
