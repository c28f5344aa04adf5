"""Checkpoints and weight snapshots of a run, as safetensors files that appear whole or not at all.

A checkpoint is the whole state of an engine in the layout of one device, so it loads on any number
of replicas. A digest covers all contents; a damaged or non-finite file is skipped for an older one.
A snapshot has the weights of one epoch in float16, without optimizers.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from gan_runtime.base import disk
from gan_runtime.base.errors import CheckpointError
from gan_runtime.engines.contract import Arrays

BEST = "best.safetensors"
SHORTFALL = "gap"  # metadata key in files of all versions
# The metadata key of the digest, and its prefix if the digest covers the metadata too.
DIGEST, OF_ALL = "digest", "all:"
_CHECKPOINT = re.compile(r"step-(?:[0-9]{8}|[1-9][0-9]{8,11})\.safetensors")
_UNREADABLE = (SafetensorError, OSError, KeyError, ValueError)
Which = Literal["newest", "best"]

FEWEST_SNAPSHOTS = 3  # three points define a plane
MOST_SNAPSHOTS = 60  # read by `load_snapshots`
_SNAPSHOT = re.compile(r"epoch-([0-9]{5}|[1-9][0-9]{5,8})\.safetensors")
_OPTIMIZER, _AVERAGE = "optimizer_", ("average/", "average_")  # prefixes of array names
Weights = dict[str, NDArray[np.float32]]


def first_not_finite(arrays: Arrays) -> str | None:
    """The name of the first array with a NaN or infinite number; None if all are finite."""
    return next((name for name in sorted(arrays) if not np.isfinite(arrays[name]).all()), None)


@dataclass(frozen=True)
class Checkpoint:
    """An engine's state after `step` steps and `wall_s` seconds of training.

    `warnings`: one message for each skipped file.
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
    retained: int,
    shortfall: float | None = None,
) -> Path:
    """Writes `step-00000042.safetensors`, durably, and deletes all but the newest `retained`.

    `shortfall`: the epoch's distance from the best possible (`alarms.shortfall`), if measured. The
    epoch with the smallest one becomes `best.safetensors`. None leaves the best checkpoint
    unchanged.

    Raises:
        HomeError: the disk is full or nearly full; the older files stay.
    """
    folder.mkdir(exist_ok=True)
    disk.require(
        folder, sum(array.nbytes for array in arrays.values()), f"the checkpoint after step {step}"
    )
    path = _path(folder, step)
    _write(path, arrays, step, wall_s, {} if shortfall is None else {SHORTFALL: repr(shortfall)})
    if shortfall is not None and shortfall < _least_shortfall(folder):
        with disk.whole_file(folder / BEST, durable=True) as temporary:
            shutil.copyfile(path, temporary)
    for old in _newest_first(folder)[retained:]:
        _delete(old)
    return path


def replace_best(folder: Path, arrays: Arrays, step: int, wall_s: float) -> None:
    """Replaces the best checkpoint. It gets no shortfall, so a resumed training selects again.

    Raises:
        HomeError: the disk has too little space; the best checkpoint stays.
    """
    disk.require(folder, sum(array.nbytes for array in arrays.values()), "the best checkpoint")
    _write(folder / BEST, arrays, step, wall_s, {})


def load_newest(folder: Path, below: int | None = None) -> Checkpoint | None:
    """The newest usable checkpoint, or the best one as a last resort; None if there are no files.

    `below`: only those before this step.

    Raises:
        CheckpointError: there are files, but none is usable.
    """
    warnings: list[str] = []
    best = [folder / BEST] if (folder / BEST).is_file() else []
    older = [path for path in _newest_first(folder) if below is None or _step(path) < below]
    for path in [*older, *best]:
        try:
            checkpoint = _read(path, tuple(warnings))
        except _UNREADABLE as error:
            warnings.append(f"checkpoint {path.name} is damaged ({error}); using an older one.")
            continue
        name = first_not_finite(checkpoint.arrays)
        if name is None and (below is None or checkpoint.step < below):
            return checkpoint
        if name is not None:
            warnings.append(
                f"checkpoint {path.name} has NaN or infinite numbers in {name}; using an older one."
            )
    if warnings and below is None:
        raise CheckpointError(
            f"none of the {len(warnings)} checkpoints in {folder} is usable: start a new run."
        )
    return None


def load(folder: Path, which: Which) -> Checkpoint:
    """The newest usable checkpoint, or the best one.

    Raises:
        CheckpointError: there is none, or it is not usable.
    """
    if which == "newest":
        newest = load_newest(folder)
        if newest is None:
            raise CheckpointError(f"there is no checkpoint in {folder}: train for an epoch first.")
        return newest
    try:
        return _read(folder / BEST, ())
    except _UNREADABLE as error:
        raise CheckpointError(
            f"the best checkpoint {folder / BEST} is not usable ({error}): use the newest one."
        ) from None


def steps(folder: Path) -> dict[Which, int]:
    """The steps of the newest and the best checkpoint, readable or not; empty without any."""
    newest = newest_step(folder)
    by_name: dict[Which, int] = {} if newest is None else {"newest": newest}
    try:
        with safe_open(folder / BEST, framework="numpy") as file:
            return {**by_name, "best": int(file.metadata()["step"])}
    except (*_UNREADABLE, TypeError):
        return by_name  # a workload without scores has no best checkpoint


def all_steps(folder: Path) -> set[int]:
    """The steps of all checkpoint files, including the best one, readable or not."""
    return {*map(_step, _newest_first(folder)), *steps(folder).values()}


def load_step(folder: Path, step: int) -> Checkpoint:
    """The checkpoint after `step` steps, one of `all_steps`.

    Raises:
        CheckpointError: it is not usable.
    """
    path = _path(folder, step)
    if not path.exists() and steps(folder).get("best") == step:
        path = folder / BEST
    try:
        checkpoint = _read(path, ())
        name = first_not_finite(checkpoint.arrays)
        if name is None:
            return checkpoint
        why = f"{name} has NaN or infinite numbers"
    except _UNREADABLE as error:
        why = str(error)
    raise CheckpointError(f"checkpoint {path} is not usable ({why}): use another one.")


def newest_step(folder: Path) -> int | None:
    """The step of the newest file, readable or not; None without any."""
    return next((_step(path) for path in _newest_first(folder)), None)


def delete_from(folder: Path, step: int) -> None:
    """Deletes the checkpoints from `step` on, after a roll-back."""
    for path in _newest_first(folder):
        if _step(path) >= step:
            _delete(path)


def record_failure(folder: Path, step: int) -> int | None:
    """Records that training became NaN between the checkpoint of `step` and the next.

    On the second failure the checkpoint is deleted if an older one exists, whose step is returned:
    a finite state can still lead to NaN every time. None means that the next attempt resumes from
    `step`.
    """
    path = _path(folder, step)
    older = [other for other in map(_step, _newest_first(folder)) if other < step]
    if older and _failure_marker(path).exists():
        _delete(path)
        return older[0]
    _failure_marker(path).touch()
    return None


def _write(path: Path, arrays: Arrays, step: int, wall_s: float, more: dict[str, str]) -> None:
    # Not np.ascontiguousarray: it turns a scalar, such as a step count, into a vector, which
    # loading refuses.
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {"step": str(step), "wall_s": repr(wall_s), **more}
    with disk.whole_file(path, durable=True) as temporary:
        digest = _digest_of_all(contiguous, metadata)
        save_file(contiguous, temporary, metadata={**metadata, DIGEST: digest})


def _path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}.safetensors"


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))


def _failure_marker(path: Path) -> Path:
    """An empty file next to a checkpoint from which training has failed once."""
    return path.with_suffix(".failed")


def _delete(path: Path) -> None:
    path.unlink(missing_ok=True)
    _failure_marker(path).unlink(missing_ok=True)


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
    except _UNREADABLE:
        return float("inf")  # the best checkpoint is missing or unreadable


def _is_as_written(arrays: Arrays, metadata: dict[str, str]) -> bool:
    """Checks the digest. Older versions cover only the arrays; the first have no digest."""
    covered = {name: text for name, text in metadata.items() if name != DIGEST}
    written = metadata.get(DIGEST)
    if written is None:
        return covered.keys() <= {"step", "wall_s", SHORTFALL}
    expected = _digest_of_all(arrays, covered) if written.startswith(OF_ALL) else _digest(arrays)
    return written == expected


def _digest_of_all(arrays: Arrays, metadata: dict[str, str]) -> str:
    """Digest over the arrays with their types and shapes, and the metadata."""
    kinds = [(name, array.dtype.str, array.shape) for name, array in sorted(arrays.items())]
    rest = hashlib.blake2b(repr((kinds, sorted(metadata.items()))).encode(), digest_size=16)
    return f"{OF_ALL}{_digest(arrays)}{rest.hexdigest()}"


def _digest(arrays: Arrays) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.asarray(arrays[name], order="C").tobytes())
    return digest.hexdigest()


def _newest_first(folder: Path) -> list[Path]:
    """Regular files with the names that `save` gives, so no copies or pipes."""
    paths = [
        path
        for path in folder.glob("step-*")
        if _CHECKPOINT.fullmatch(path.name) and path.is_file()
    ]
    return sorted(paths, key=_step, reverse=True)


# ---- weight snapshots ----------------------------------------------------------------------------


def save_snapshot(folder: Path, state: Arrays, epoch: int, averages: bool = False) -> Path:
    """Writes `epoch-00003.safetensors` from an engine's state; epoch 0 is before training.

    `averages`: includes the moving averages, for a run whose images come from them.
    """
    folder.mkdir(exist_ok=True)
    path = _snapshot(folder, epoch)
    left_out = _OPTIMIZER if averages else (_OPTIMIZER, *_AVERAGE)
    weights = {
        name: array.astype(np.float16)
        for name, array in state.items()
        if array.ndim and not name.startswith(left_out)
    }
    with disk.whole_file(path) as temporary:
        save_file(weights, temporary)
    return path


def snapshot_epochs(folder: Path) -> list[int]:
    """The epochs that have snapshots, in order; empty without the folder."""
    matches = (_SNAPSHOT.fullmatch(path.name) for path in folder.glob("epoch-*"))
    return sorted(int(match[1]) for match in matches if match)


@lru_cache(100_000)
def has_averages(folder: Path, epoch: int) -> bool:
    """Whether the snapshot of an epoch holds moving averages; False for an unreadable one."""
    try:
        with safe_open(_snapshot(folder, epoch), framework="numpy") as file:
            return any(name.startswith(_AVERAGE) for name in file.keys())  # noqa: SIM118
    except _UNREADABLE:
        return False


def _snapshot(folder: Path, epoch: int) -> Path:
    return folder / f"epoch-{epoch:05d}.safetensors"


def epochs_in_words(epochs: list[int]) -> str:
    """Ascending epochs, at least one, as text: "epoch 3" or "epochs 0 to 12 and 15"."""
    gaps = [place for place in range(1, len(epochs)) if epochs[place] > epochs[place - 1] + 1]
    ranges = [epochs[begin:end] for begin, end in pairwise([0, *gaps, len(epochs)])]
    texts = [f"{part[0]} to {part[-1]}" if len(part) > 1 else str(part[0]) for part in ranges]
    begin = f"{', '.join(texts[:-1])} and " if texts[1:] else ""
    return f"epoch{'s' if epochs[1:] else ''} {begin}{texts[-1]}"


def load_snapshots(folder: Path) -> dict[int, Weights]:
    """Epoch → named float32 arrays without moving averages, for at most MOST_SNAPSHOTS evenly
    spaced epochs including the first and the last.
    """
    epochs = snapshot_epochs(folder)
    count = min(MOST_SNAPSHOTS, len(epochs))
    places = np.linspace(0, max(0, len(epochs) - 1), count).round().astype(int)
    snapshots = {epochs[place]: load_snapshot(folder, epochs[place]) for place in places}
    return {epoch: _without_averages(weights) for epoch, weights in snapshots.items()}


def _without_averages(weights: Weights) -> Weights:
    return {name: array for name, array in weights.items() if not name.startswith(_AVERAGE)}


def load_snapshot(folder: Path, epoch: int) -> Weights:
    """The weights after one of `snapshot_epochs`: named float32 arrays.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = _snapshot(folder, epoch)
    try:
        return {name: array.astype(np.float32) for name, array in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"the weights in {path} cannot be read ({error}): use another epoch."
        ) from None
