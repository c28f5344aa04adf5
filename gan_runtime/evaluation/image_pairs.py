"""The images of pairs that the evaluation of quality compares: targets, and what an image-to-image
network makes of sources.

Targets of training pairs are the reference, those of held-out pairs give the floor. The network
generates from the sources of the same held-out pairs, so a perfect one reaches the floor. Images
are tiles, as the workload cuts its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import TARGET
from gan_runtime.data.contract import Arrays
from gan_runtime.engines.inputs import HostNoise, host_values, inputs_of
from gan_runtime.evaluation.image_classifier import FEWEST_IMAGES, MOST_NUMBERS, RealImages
from gan_runtime.training.inference import TrainedNetworks

ROWS_AT_A_TIME = 50  # pairs that are read, or generated from, at a time


def samples(
    networks: TrainedNetworks, count: int, seed: int
) -> tuple[RealImages, dict[str, NDArray[Any]]]:
    """Targets as real images, and the inputs of the network for the held-out pairs; at most `count`
    of each. No copies are searched for.
    """
    data, random = networks.data, np.random.RandomState(seed)
    count = min(count, _most(networks))
    rows = np.sort(random.permutation(data.rows)[:count])
    held_out = np.sort(random.permutation(data.held_out)[:count])
    reference = _inputs(
        networks, lambda first, size: data.read(rows[first : first + size]), len(rows), seed
    )[TARGET]

    def read_held_out(first: int, size: int) -> Arrays:
        rows = [data.read_held_out(1, int(place)) for place in held_out[first : first + size]]
        return {name: np.concatenate([row[name] for row in rows]) for name in data.fields}

    inputs = _inputs(networks, read_held_out, len(held_out), seed)
    real = RealImages(
        reference,
        inputs[TARGET],
        searched=None,
        are_held_out=False,
        is_whole=len(rows) == data.rows,
    )
    return real, inputs


def generated(
    networks: TrainedNetworks, inputs: Mapping[str, NDArray[Any]], seed: int
) -> Iterator[dict[str, NDArray[Any]]]:
    """The arrays of `Workload.show` for these inputs, in parts."""
    for first in range(0, len(inputs[TARGET]), ROWS_AT_A_TIME):
        part = {name: array[first : first + ROWS_AT_A_TIME] for name, array in inputs.items()}
        yield networks.engine.generate(part, seed)


def _most(networks: TrainedNetworks) -> int:
    """The most images of a sample, to limit memory."""
    shape, tile = networks.data.fields[TARGET].shape, networks.spec.entry.tile
    sides = shape[:2] if tile is None else (tile(networks.spec.of_workload),) * 2
    return max(FEWEST_IMAGES, MOST_NUMBERS // math.prod((*sides, *shape[2:])))


def _inputs(
    networks: TrainedNetworks, read: Callable[[int, int], Arrays], count: int, seed: int
) -> dict[str, NDArray[Any]]:
    """The workload's inputs for `count` rows. `read(first, size)`: stored rows, by field."""
    fields, options = networks.data.fields, networks.spec.of_workload
    parts = []
    for first in range(0, count, ROWS_AT_A_TIME):
        rows = host_values(read(first, min(ROWS_AT_A_TIME, count - first)), fields)
        noise = HostNoise(seed, streams=first)  # no part repeats the places of another
        parts.append(inputs_of(networks.workload, options, fields, rows, noise))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
