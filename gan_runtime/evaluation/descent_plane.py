"""The plane in which a network's weights moved most, and the path of the training in it.

Weights are measured in norms of their filters, as they are at the end: scaling a filter up and the next layer down changes
neither the function nor, then, the picture (filter normalisation, Li et al. 2018, section 4). In this measure a principal
component analysis of the way from each snapshot to the last one gives the two directions (their section 7.2). Biases and
batch norm's parameters are left at their last values (their section 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Kernels = Mapping[str, NDArray[np.float32]]  # by name


@dataclass(frozen=True)
class Plane:
    """`path`: (snapshots, 2), each in mean change of a filter as a share of its norm; the last one is (0, 0).

    `centre`: the kernels of the last snapshot. `steps`: what one unit along each axis adds to them. `shares`: how much of all
    squared movement each axis holds, 0 to 1.
    """

    centre: Kernels
    steps: tuple[Kernels, Kernels]
    path: NDArray[np.float64]
    shares: tuple[float, float]

    def at(self, x: float, y: float) -> Kernels:
        """The kernels at a point of the plane, by name."""
        first, second = self.steps
        return {
            name: kernel + np.float32(x) * first[name] + np.float32(y) * second[name]
            for name, kernel in self.centre.items()
        }


def through(snapshots: Sequence[Kernels], filter_axes: Mapping[str, int]) -> Plane:
    """The plane of at least three snapshots. `filter_axes`: name of each kernel → its axis of output channels.

    Raises:
        ValueError: fewer than three snapshots, or the weights have not moved in two directions.
    """
    if len(snapshots) < 3:
        raise ValueError(f"a plane needs three snapshots, there are {len(snapshots)}")
    last = snapshots[-1]
    norms = {name: _filter_norms(last[name], axis) for name, axis in filter_axes.items()}
    filters = sum(int(np.count_nonzero(norm)) for norm in norms.values())
    ways = np.stack(
        [
            _flat({name: _over(one[name] - last[name], norms[name]) for name in norms})
            for one in snapshots[:-1]
        ]
    )
    # The directions come from the small matrix of inner products: there are far fewer snapshots than weights.
    values, vectors = np.linalg.eigh((ways @ ways.T).astype(np.float64))
    values, vectors = values[::-1], vectors[:, ::-1]
    if not values[1] > 1e-9 * values[0]:
        raise ValueError("the weights have not moved in two directions")
    unit = np.sqrt(filters)
    directions = [(vectors[:, axis] @ ways) / np.sqrt(values[axis]) for axis in (0, 1)]
    steps = tuple(_unflat(direction * unit, norms, last) for direction in directions)
    path = np.vstack([vectors[:, :2] * np.sqrt(values[:2]), np.zeros(2)]) / unit
    total = float(values.clip(min=0).sum())
    return Plane(
        {name: last[name] for name in norms},
        (steps[0], steps[1]),
        path,
        (values[0] / total, values[1] / total),
    )


def _filter_norms(kernel: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    others = tuple(each for each in range(kernel.ndim) if each != axis % kernel.ndim)
    return np.sqrt(np.sum(np.square(kernel, dtype=np.float32), axis=others, keepdims=True))


def _over(values: NDArray[np.float32], norms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Zero where a filter has no norm."""
    return np.divide(values, norms, out=np.zeros(values.shape, np.float32), where=norms > 0)


def _flat(arrays: Kernels) -> NDArray[np.float32]:
    return np.concatenate([array.ravel() for array in arrays.values()])


def _unflat(flat: NDArray[np.floating], norms: Kernels, like: Kernels) -> Kernels:
    """Back into kernels, in units of weights."""
    ends = np.cumsum([like[name].size for name in norms])[:-1]
    parts = np.split(flat.astype(np.float32), ends)
    return {
        name: part.reshape(like[name].shape) * norms[name] for name, part in zip(norms, parts, strict=True)
    }
