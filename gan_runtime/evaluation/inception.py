"""The Inception network of the FID paper (Heusel et al. 2017, arXiv:1706.08500) and its 2,048
features, built in Keras. image_features.py reads its weights. Loads Keras.

Szegedy et al. 2016, arXiv:1512.00567, as trained by Google on 2015-12-05. Unlike later Inception
networks, its average pools exclude padding, and the last block has a maximum pool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import JobError

SIDE = 299  # pixels

Tensor = Any
Tensors = Mapping[str, NDArray[Any]]
Kernel = tuple[int, int]
Step = tuple[str, int, Kernel]  # a convolution: name within its block, filters, kernel size
ONE, THREE, FIVE, WIDE, HIGH = (1, 1), (3, 3), (5, 5), (1, 7), (7, 1)


def network() -> keras.Model:
    """Images (N, 299, 299, 3) from -1 to 1 → features (N, 2048), with random weights."""
    images = keras.Input((SIDE, SIDE, 3), dtype="float32")
    values = _convolution(images, ("Conv2d_1a_3x3", 32, THREE), halve=True)  # 149 × 149
    values = _convolution(values, ("Conv2d_2a_3x3", 32, THREE), padding="valid")
    values = _convolution(values, ("Conv2d_2b_3x3", 64, THREE))  # 147 × 147
    values = _largest(values, 2, "valid")
    values = _convolution(values, ("Conv2d_3b_1x1", 80, ONE))
    values = _convolution(values, ("Conv2d_4a_3x3", 192, THREE), padding="valid")  # 71 × 71
    values = _largest(values, 2, "valid")
    for name, filters in (("5b", 32), ("5c", 64), ("5d", 64)):  # 35 × 35
        values = _block_a(values, f"Mixed_{name}.", filters)
    values = _block_b(values, "Mixed_6a.")
    for name, filters in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):  # 17 × 17
        values = _block_c(values, f"Mixed_{name}.", filters)
    values = _block_d(values, "Mixed_7a.")
    values = _block_e(values, "Mixed_7b.", _mean)  # 8 × 8
    values = _block_e(values, "Mixed_7c.", _largest)
    return keras.Model(images, keras.layers.GlobalAveragePooling2D(dtype="float32")(values))


def load(model: keras.Model, tensors: Tensors) -> None:
    """Sets all weights from tensors with PyTorch's names and kernels (out, in, height, width).

    Raises:
        JobError: a tensor is missing or has another shape.
    """
    for layer in model.layers:
        if not layer.weights:
            continue
        kinds = ["weight"]
        if isinstance(layer, keras.layers.BatchNormalization):
            kinds = ["weight", "bias", "running_mean", "running_var"]
        try:
            arrays = [np.asarray(tensors[f"{layer.name}.{kind}"], np.float32) for kind in kinds]
            layer.set_weights([_as_in_keras(array) for array in arrays])
        except (KeyError, ValueError) as error:
            raise JobError(f"the weights of {layer.name} do not fit Inception: {error}.") from None


def _as_in_keras(array: NDArray[Any]) -> NDArray[Any]:
    return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array


def _convolution(values: Tensor, step: Step, halve: bool = False, padding: str = "same") -> Tensor:
    """A convolution with batch norm and ReLU. `halve`: stride 2, without padding."""
    name, filters, kernel = step
    values = keras.layers.Conv2D(
        filters,
        kernel,
        strides=2 if halve else 1,
        padding="valid" if halve else padding,
        use_bias=False,
        name=f"{name}.conv",
        dtype="float32",
    )(values)
    values = keras.layers.BatchNormalization(epsilon=1e-3, name=f"{name}.bn", dtype="float32")(
        values
    )
    return keras.layers.Activation("relu", dtype="float32")(values)


def _chain(values: Tensor, block: str, *steps: Step, halve: bool = False) -> Tensor:
    """One branch of a block. `halve`: the last step has stride 2."""
    for number, (name, filters, kernel) in enumerate(steps, 1):
        is_last = number == len(steps)
        values = _convolution(values, (block + name, filters, kernel), halve and is_last)
    return values


def _mean(values: Tensor) -> Tensor:
    """The mean of 3 × 3 neighbors, excluding those outside the image."""
    return keras.layers.AveragePooling2D(3, 1, "same", dtype="float32")(values)


def _largest(values: Tensor, stride: int = 1, padding: str = "same") -> Tensor:
    return keras.layers.MaxPooling2D(3, stride, padding, dtype="float32")(values)


def _joined(*branches: Tensor) -> Tensor:
    return keras.layers.Concatenate(dtype="float32")(list(branches))


def _block_a(values: Tensor, block: str, pooled: int) -> Tensor:
    dbl = ("branch3x3dbl_2", 96, THREE), ("branch3x3dbl_3", 96, THREE)
    return _joined(
        _chain(values, block, ("branch1x1", 64, ONE)),
        _chain(values, block, ("branch5x5_1", 48, ONE), ("branch5x5_2", 64, FIVE)),
        _chain(values, block, ("branch3x3dbl_1", 64, ONE), *dbl),
        _chain(_mean(values), block, ("branch_pool", pooled, ONE)),
    )


def _block_b(values: Tensor, block: str) -> Tensor:
    dbl = ("branch3x3dbl_2", 96, THREE), ("branch3x3dbl_3", 96, THREE)
    return _joined(
        _chain(values, block, ("branch3x3", 384, THREE), halve=True),
        _chain(values, block, ("branch3x3dbl_1", 64, ONE), *dbl, halve=True),
        _largest(values, 2, "valid"),
    )


def _block_c(values: Tensor, block: str, inner: int) -> Tensor:
    alternating = [
        (f"branch7x7dbl_{number}", filters, kernel)
        for number, filters, kernel in (
            (1, inner, ONE),
            (2, inner, HIGH),
            (3, inner, WIDE),
            (4, inner, HIGH),
            (5, 192, WIDE),
        )
    ]
    first = ("branch7x7_1", inner, ONE), ("branch7x7_2", inner, WIDE)
    return _joined(
        _chain(values, block, ("branch1x1", 192, ONE)),
        _chain(values, block, *first, ("branch7x7_3", 192, HIGH)),
        _chain(values, block, *alternating),
        _chain(_mean(values), block, ("branch_pool", 192, ONE)),
    )


def _block_d(values: Tensor, block: str) -> Tensor:
    steps = [
        (f"branch7x7x3_{number}", 192, kernel)
        for number, kernel in enumerate((ONE, WIDE, HIGH, THREE), 1)
    ]
    narrow = ("branch3x3_1", 192, ONE), ("branch3x3_2", 320, THREE)
    return _joined(
        _chain(values, block, *narrow, halve=True),
        _chain(values, block, *steps, halve=True),
        _largest(values, 2, "valid"),
    )


def _block_e(values: Tensor, block: str, pool: Callable[[Tensor], Tensor]) -> Tensor:
    single = _chain(values, block, ("branch3x3_1", 384, ONE))
    double = _chain(values, block, ("branch3x3dbl_1", 448, ONE), ("branch3x3dbl_2", 384, THREE))
    split = [
        _chain(branch, block, (f"{name}{letter}", 384, kernel))
        for branch, name in ((single, "branch3x3_2"), (double, "branch3x3dbl_3"))
        for letter, kernel in (("a", (1, 3)), ("b", (3, 1)))
    ]
    return _joined(
        _chain(values, block, ("branch1x1", 320, ONE)),
        *split,
        _chain(pool(values), block, ("branch_pool", 192, ONE)),
    )
