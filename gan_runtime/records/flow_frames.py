"""The frames of an iteration, true and predicted, in one file of the run's folder: flow/<iteration>-<way>.npz.

Values as networks see them, in [-1, 1], as float16: 3 digits, enough for pictures. Long iterations leave out frames evenly.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.errors import HomeError, PictureError
from gan_runtime.records.rundir import RunDir

MOST_BYTES = 64_000_000  # of both films, before they are packed
Frames16 = NDArray[np.float16]


@dataclass(frozen=True)
class Frames:
    """`steps` int64 (K,): of each frame, 0 is the given one; `truth`, `predicted` (K, height, width, channels). `mask` (height, width, more):
    channels of the source that no step changes, such as the obstacle; perhaps none."""

    steps: NDArray[np.int64]
    truth: Frames16
    predicted: Frames16
    mask: Frames16


def thinned(frames: Frames, most_bytes: int = MOST_BYTES) -> Frames:
    """Every k-th frame, with the smallest k that keeps both films within `most_bytes`; the first always stays."""
    every = max(1, -(-2 * frames.truth.nbytes // most_bytes))
    return Frames(frames.steps[::every], frames.truth[::every], frames.predicted[::every], frames.mask)


def write(run: RunDir, name: str, frames: Frames) -> str:
    """Writes the file aside and renames it; returns its path within the run's folder.

    Raises:
        HomeError: the disk is full; no file is left.
    """
    target = run.flow / f"{name}.npz"
    aside = target.with_suffix(".part")  # removed by the owner of the home where a kill leaves it
    kept = thinned(frames)
    try:
        run.flow.mkdir(exist_ok=True)
        with aside.open("wb") as file:
            np.savez_compressed(
                file, steps=kept.steps, truth=kept.truth, predicted=kept.predicted, mask=kept.mask
            )
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise HomeError.not_written(target, error) from None
    aside.replace(target)
    return f"{run.flow.name}/{target.name}"


def read(run: RunDir, file: str) -> Frames:
    """Raises PictureError when the file is gone or damaged, or holds something else."""
    try:
        return _read(run.path / file)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise PictureError(
            f"the frames {file} of {run.run_id} cannot be read ({reason}): iterate again."
        ) from None


def _read(path: Path) -> Frames:
    with zipfile.ZipFile(path) as members:  # sizes are known before anything is unpacked
        if sum(member.file_size for member in members.infolist()) > 2 * MOST_BYTES:
            raise ValueError("too large")
    with np.load(path, allow_pickle=False) as stored:
        frames = Frames(*(_typed(stored[name], name) for name in ("steps", "truth", "predicted", "mask")))
    height, width = frames.truth.shape[1:3]
    if frames.truth.ndim != 4 or frames.truth.shape != frames.predicted.shape:
        raise ValueError("not two films of one shape")
    if len(frames.steps) != len(frames.truth) or frames.mask.shape[:2] != (height, width):
        raise ValueError("steps or mask of other films")
    return frames


def _typed(array: NDArray[Any], name: str) -> NDArray[Any]:
    wanted = np.dtype(np.int64 if name == "steps" else np.float16)
    if array.dtype != wanted:
        raise ValueError(f"{name} is {array.dtype}")
    return array
