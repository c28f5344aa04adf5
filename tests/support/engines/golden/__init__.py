"""Stored results of the TensorFlow engine for the small cases of `parity`.

`python -m tests.support.engines.golden` regenerates them.

The file has the initial weights of each case, the numbers of its steps, the weights after them, and
the scores of a final probe, in float32. Other processors round sums differently, by a millionth of
the numbers. Comparisons allow 1 in 10,000 of the numbers, and for each weight 1 in 1,000 of its own
move.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from gan_runtime.engines.contract import Arrays

FILE = Path(__file__).parent / "steps.npz"
AVERAGE, GENERATOR = "average/", "generator/"


@dataclass(frozen=True)
class Stored:
    """The results of one case.

    `begin`, `weights`: named as in a checkpoint; `numbers`: metric → (steps,); `scores`: metric →
    ().
    """

    begin: Arrays
    numbers: Arrays
    weights: Arrays
    scores: Arrays


def weights_of(state: Arrays) -> Arrays:
    """The arrays of networks and averages in a checkpoint, without those of optimizers."""
    return {
        name: array
        for name, array in state.items()
        if "/" in name and not name.startswith("optimizer_")
    }


def with_begin(state: Arrays, begin: Arrays) -> Arrays:
    """The state of a new engine with these weights; its average is a copy of its generator."""
    averages = {
        name: begin[name.replace(AVERAGE, GENERATOR, 1)]
        for name in state
        if name.startswith(AVERAGE)
    }
    return {**state, **begin, **averages}


def read() -> dict[str, Stored]:
    """The stored results by case."""
    with np.load(FILE, allow_pickle=False) as file:
        index, values = json.loads(str(file["index"])), file["values"]
    cases: dict[str, dict[str, Arrays]] = {}
    for place, length, shape, case, kind, name in index:
        arrays = cases.setdefault(case, {"begin": {}, "numbers": {}, "weights": {}, "scores": {}})
        arrays[kind][name] = values[place : place + length].reshape(shape)
    return {case: Stored(**arrays) for case, arrays in cases.items()}


def write(cases: dict[str, Stored]) -> None:
    """Replaces the file. Equal arrays, such as shared initial weights, are stored once."""
    index, values, places, end = [], list[np.ndarray](), dict[bytes, int](), 0
    for case, stored in cases.items():
        for kind, arrays in asdict(stored).items():
            for name, array in arrays.items():
                if (content := array.tobytes()) not in places:
                    places[content], end = end, end + array.size
                    values.append(array.astype(np.float32).ravel())
                index.append((places[content], array.size, array.shape, case, kind, name))
    np.savez_compressed(FILE, index=np.array(json.dumps(index)), values=np.concatenate(values))
