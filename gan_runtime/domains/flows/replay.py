"""The replay, a baseline of every rollout: of all frames of the training films the one nearest to the given frame, and what followed it there.

A model that does no better has learned no flow: looking up what it was trained on would do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import SOURCE, TARGET
from gan_runtime.data.contract import DataSet, Progress
from gan_runtime.data.sharded import row_bytes
from gan_runtime.domains.flows import films
from gan_runtime.domains.flows.films import Film
from gan_runtime.engines.inputs import host_value

Values = NDArray[np.float32]
BATCH = 64  # frames that are compared at once
MOST_BYTES = 8_000_000_000  # of frames that are read; of larger sets every second frame is compared, or fewer


@dataclass(frozen=True)
class Replay:
    """`title`: "Re 140 from frame 22". `frames`: (K, height, width, channels out), values of the steps 1 to K; K is below the steps of the
    rollout where the film ends before."""

    title: str
    frames: Values


def nearest(data: DataSet, given: Values, steps: int, progress: Progress) -> Replay:
    """By the root mean square error to the `given` frame (height, width, channels out).

    Compared are frames that `steps` others follow in their film, or at least three quarters of it.
    """
    known = films.trained(data)
    starts = [(film, frame) for film in known for frame in range(_starts(film, steps))]
    starts = starts[:: 1 + len(starts) * row_bytes(data.fields[SOURCE]) // MOST_BYTES]
    errors = np.empty(len(starts))
    for begin in range(0, len(starts), BATCH):
        progress(begin, len(starts), "looking for the nearest training frame")
        rows = np.array([film.first + frame for film, frame in starts[begin : begin + BATCH]], np.int64)
        sources = host_value(films.of_training(data, SOURCE, rows), data.fields[SOURCE])
        errors[begin : begin + BATCH] = np.square(sources[..., : given.shape[-1]] - given).mean(
            axis=(1, 2, 3)
        )
    film, frame = starts[int(errors.argmin())]
    rows = film.first + np.arange(frame, min(frame + steps, film.steps))
    following = host_value(films.of_training(data, TARGET, rows), data.fields[TARGET])
    return Replay(film.title if film.reynolds is None else f"{film.title} from frame {frame}", following)


def _starts(film: Film, steps: int) -> int:
    """How many of a film's frames, from the first on, enough others follow."""
    return film.steps + 1 - min(steps, -(-3 * film.steps // 4))
