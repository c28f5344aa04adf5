"""What the sample grids ask the generator with: the same in every run of equal options and data, whatever its seed.

So the same place in the grids of two runs shows what two generators make of the same latent, label or frame. Whether two
runs were asked with the same is told by a digest, which stands in the record of each picture.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.data.contract import DataSet
from gan_runtime.engines.values import host_values
from gan_runtime.workloads.contract import Options, Workload

SAMPLES = 64  # an 8 × 8 grid
_SEED = 0


def fixed_inputs(
    workload: Workload, options: Options, data: DataSet, count: int = SAMPLES
) -> dict[str, NDArray[Any]]:
    """`count` rows of inputs by name, on the host; more rows begin with the same ones.

    From NumPy's first generator, whose numbers never change again (NEP 19), and from held-out rows, of which there may be
    fewer than `count`. So grids stay comparable over versions, engines and accelerators.
    """
    rows = host_values(data.read_held_out(count), data.fields)
    return workload.fixed_inputs(options, data.fields, rows, np.random.RandomState(_SEED), count)


def digest(inputs: Mapping[str, NDArray[Any]], classes: tuple[str, ...] = ()) -> str:
    """16 hexadecimal digits that tell inputs from others: by names, types, shapes, numbers, and what labels are called."""
    told = hashlib.sha256(repr(classes).encode())
    for name, array in sorted(inputs.items()):
        told.update(repr((name, array.dtype.str, array.shape)).encode())
        told.update(np.ascontiguousarray(array).tobytes())
    return told.hexdigest()[:16]


def chunks(inputs: Mapping[str, NDArray[Any]], rows: int) -> Iterator[tuple[dict[str, NDArray[Any]], int]]:
    """The inputs in equal pieces of `rows` rows, and how many of them count: the last piece is filled up with its last row."""
    count = len(next(iter(inputs.values())))
    for begin in range(0, count, rows):
        size = min(rows, count - begin)
        places = np.minimum(np.arange(begin, begin + rows), count - 1)
        yield {name: array[places] for name, array in inputs.items()}, size
