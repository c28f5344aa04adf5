"""Compares the project's layers with those of Keras, given the same weights and values, on any
engine and with any of its kernels.

A difference is a share of the largest number in Keras' result, or of 1 if that is larger.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
from keras import ops

from gan_runtime.workloads import layers as ours
from gan_runtime.workloads.step_context import LayerKernels, step_scope

ROWS, CHANNELS, FILTERS, CLASSES = 3, 2, 3, 4
CONVOLUTIONS = {
    "convolution": (
        (ours.Convolution1D, keras.layers.Conv1D),
        (ours.Convolution, keras.layers.Conv2D),
        (ours.Convolution3D, keras.layers.Conv3D),
    ),
    "transposed": (
        (ours.TransposedConvolution1D, keras.layers.Conv1DTranspose),
        (ours.TransposedConvolution, keras.layers.Conv2DTranspose),
        (ours.TransposedConvolution3D, keras.layers.Conv3DTranspose),
    ),
}
# By number of axes: sizes of the values, kernels and factors. Kernels have fewer or more taps than
# a factor, and one factor is 1.
ENLARGED: dict[int, list[tuple[tuple[int, ...], ...]]] = {
    1: [((5,), (7,), (3,)), ((4,), (2,), (5,))],
    2: [((3, 4), (3, 2), (2, 4))],
    3: [((3, 2, 4), (4, 6, 2), (2, 6, 1)), ((2, 3, 2), (3, 3, 4), (3, 2, 3))],
}
# By number of axes: sizes and strides of kernels.
KERNELS_AND_STRIDES = {
    1: [((3,), (2,)), ((4,), (1,))],
    2: [((2, 3), (1, 2)), ((4, 5), (2, 2)), ((3, 2), (1, 2)), ((5, 4), (1, 1))],
    3: [((2, 3, 5), (1, 2, 1)), ((4, 5, 2), (2, 2, 2))],
}
AllKernels = Mapping[str, LayerKernels | None]  # an engine's kernels by name; None: outside a step
Differences = dict[
    str, dict[str, float]
]  # comparison → {"values", "by input", variable: the largest difference}
# (layer, inputs, weights of a sum of its outputs) → the outputs, and the gradients of that sum with
# respect to the first input and all weights.
Differentiated = Callable[[Any, list[np.ndarray], np.ndarray], list[np.ndarray]]


@dataclass(frozen=True)
class Case:
    """The sizes of the values, and the options of a convolution, along each axis between batch and
    channels.
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str


def cases(axes: int) -> Iterator[Case]:
    """Odd and even sizes, none square; kernel and stride differ between axes."""
    for (kernel, strides), padding in itertools.product(
        KERNELS_AND_STRIDES[axes], ("same", "valid")
    ):
        yield Case((9, 6, 5)[:axes], kernel, strides, padding)


def convolutions(
    kind: str, axes: int, kernels: AllKernels, differentiated: Differentiated
) -> Differences:
    """Compares layers with bias and activation, case by case."""
    mine, plain = CONVOLUTIONS[kind][axes - 1]
    differences = _all(
        (str(case), _difference(mine, plain, case, kernels, differentiated)) for case in cases(axes)
    )
    return (
        differences | among_zeros(axes, kernels, differentiated)
        if kind == "convolution"
        else differences
    )


def among_zeros(axes: int, kernels: AllKernels, differentiated: Differentiated) -> Differences:
    """Compares a convolution with zeros around its values; Keras gets the padded values."""
    mine, plain = CONVOLUTIONS["convolution"][axes - 1]
    zeros, sizes = ((1, 2), (0, 0), (3, 0))[:axes], (5, 4, 3)[:axes]
    options = {"filters": FILTERS, "kernel_size": 2, "kernel_initializer": "zeros"}
    values = random(ROWS, *sizes, CHANNELS)

    class Padded(plain):  # type: ignore[misc, valid-type]
        def call(self, inputs: Any) -> Any:
            return super().call(ops.pad(inputs, [(0, 0), *zeros, (0, 0)]))

        def compute_output_shape(self, shape: tuple[int, ...]) -> Any:
            larger = (size + sum(ends) for size, ends in zip(shape[1:-1], zeros, strict=True))
            return super().compute_output_shape((shape[0], *larger, shape[-1]))

    everywhere = {**kernels, "outside a step": None}
    differences = compare(
        mine(zeros=zeros, **options), Padded(**options), [values], everywhere, differentiated
    )
    return {f"{kind}: zeros": apart for kind, apart in differences.items()}


def enlarged_convolutions(
    axes: int, kernels: AllKernels, differentiated: Differentiated
) -> Differences:
    """Compares convolutions of enlarged values with Keras' UpSampling and convolution."""
    mine = (
        ours.EnlargedConvolution1D,
        ours.EnlargedConvolution,
        ours.EnlargedConvolution3D,
    )
    options = {"filters": FILTERS, "activation": "tanh", "kernel_initializer": "zeros"}
    return _all(
        (
            f"{sizes}, {kernel} by {factors}",
            compare(
                mine[axes - 1](kernel_size=kernel, factors=factors, **options),
                EnlargedByKeras(axes, kernel, factors, options),
                [random(ROWS, *sizes, CHANNELS)],
                kernels,
                differentiated,
            ),
        )
        for sizes, kernel, factors in ENLARGED[axes]
    )


class EnlargedByKeras(keras.layers.Layer):
    """Keras' nearest-neighbor UpSampling, followed by its convolution."""

    def __init__(
        self, axes: int, kernel: tuple[int, ...], factors: tuple[int, ...], options: Any
    ) -> None:
        super().__init__()
        upsampling = (
            keras.layers.UpSampling1D,
            keras.layers.UpSampling2D,
            keras.layers.UpSampling3D,
        )
        self.enlarging = upsampling[axes - 1](factors if axes > 1 else factors[0])
        self.convolution = CONVOLUTIONS["convolution"][axes - 1][1](kernel_size=kernel, **options)

    def build(self, shape: tuple[int, ...]) -> None:
        self.convolution.build(self.enlarging.compute_output_shape(shape))

    def call(self, values: Any) -> Any:
        return self.convolution(self.enlarging(values))


def other_options(kernels: AllKernels, differentiated: Differentiated) -> Differences:
    """Compares layers with options that no kernel covers."""
    cases: dict[str, tuple[type, type, Case, dict[str, Any]]] = {
        "dilated": (
            *CONVOLUTIONS["convolution"][1],
            Case((9, 6), (3, 2), (1, 1), "same"),
            {"dilation_rate": 2},
        ),
        "groups": (
            *CONVOLUTIONS["convolution"][1],
            Case((9, 6), (3, 2), (1, 1), "same"),
            {"groups": CHANNELS, "filters": 4},
        ),
        "causal": (*CONVOLUTIONS["convolution"][0], Case((9,), (3,), (1,), "causal"), {}),
        "output padding": (
            *CONVOLUTIONS["transposed"][0],
            Case((9,), (3,), (2,), "same"),
            {"output_padding": 1},
        ),
    }
    return _all(
        (name, _difference(mine, plain, case, kernels, differentiated, **options))
        for name, (mine, plain, case, options) in cases.items()
    )


def _difference(
    mine: type,
    plain: type,
    case: Case,
    kernels: AllKernels,
    differentiated: Differentiated,
    **options: Any,
) -> Differences:
    options = {
        "filters": FILTERS,
        "kernel_size": case.kernel,
        "strides": case.strides,
        "padding": case.padding,
        "activation": "tanh",
        "kernel_initializer": "zeros",
        **options,
    }
    inputs = [random(ROWS, *case.sizes, CHANNELS)]
    return compare(mine(**options), plain(**options), inputs, kernels, differentiated)


def norms(axes: int, kernels: AllKernels, differentiated: Differentiated) -> Differences:
    """Compares batch norms in training, including their stored statistics after one step."""
    values, labels = (
        3.0 + 2.0 * random(ROWS + 2, *(5, 4, 3)[:axes], CHANNELS),
        np.int32([2, 0, 3, 2, 1]),
    )
    plain = keras.layers.BatchNormalization
    bare = {"center": False, "scale": False}
    conditional = ours.ConditionalBatchNorm(CLASSES, momentum=0.9)
    pairs = {
        "norm": (ours.BatchNorm(momentum=0.9), plain(momentum=0.9), [values]),
        "bare": (ours.BatchNorm(**bare), plain(**bare), [values]),
        "conditional": (conditional, ByLookUp(), [values, labels]),
    }
    return _all(
        (name, compare(mine, other, inputs, kernels, differentiated))
        for name, (mine, other, inputs) in pairs.items()
    )


class ByLookUp(keras.layers.Layer):
    """A conditional batch norm built from Keras' own layers."""

    def __init__(self) -> None:
        super().__init__()
        self.scales, self.offsets = (
            keras.layers.Embedding(CLASSES, CHANNELS, "zeros") for _ in range(2)
        )
        self.norm = keras.layers.BatchNormalization(momentum=0.9, center=False, scale=False)

    def build(self, shapes: list[tuple[int, ...]]) -> None:
        self.norm.build(shapes[0])
        for table in (self.scales, self.offsets):
            table.build(shapes[1])

    def call(self, inputs: list[Any], training: bool = False) -> Any:
        values, labels = inputs
        by_row = (-1, *(1,) * (len(values.shape) - 2), CHANNELS)
        scales, offsets = (
            ops.reshape(table(labels), by_row) for table in (self.scales, self.offsets)
        )
        return self.norm(values, training=training) * scales + offsets


def compare(
    mine: Any,
    plain: Any,
    inputs: list[np.ndarray],
    kernels: AllKernels,
    differentiated: Differentiated,
) -> Differences:
    """Compares outputs, gradients and the statistics stored afterward, with each of the kernels."""
    shapes = [array.shape for array in inputs] if len(inputs) > 1 else inputs[0].shape
    for layer in (mine, plain):
        layer.build(shapes)  # not called: JAX would compile each call
    for seed, pair in enumerate(
        zip(mine.trainable_variables, plain.trainable_variables, strict=True)
    ):
        for variable in pair:
            variable.assign(random(*variable.shape, seed=seed))
    begin, upstream = mine.get_weights(), random(*mine.compute_output_shape(shapes), seed=9)
    expected = differentiated(plain, inputs, upstream)
    names = ["values", "by input", *(variable.name for variable in mine.trainable_variables)]
    names += [variable.name for variable in mine.non_trainable_variables]
    differences = {}
    for kind, kernel in kernels.items():
        mine.set_weights(begin)
        with using(kernel):
            gradients = differentiated(mine, inputs, upstream)
        pairs = zip(names, gradients, expected, strict=True)
        differences[kind] = {name: _share(result, other) for name, result, other in pairs}
    return differences


def _all(named: Iterable[tuple[str, Differences]]) -> Differences:
    return {
        f"{kind}: {name}": apart
        for name, differences in named
        for kind, apart in differences.items()
    }


def using(kernels: LayerKernels | None) -> AbstractContextManager[None]:
    """A step with these kernels; these layers need nothing else of it."""
    return step_scope(SimpleNamespace(kernels=kernels))  # type: ignore[arg-type]


def random(*shape: int, seed: int = 1) -> np.ndarray:
    """Standard normal float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _share(result: np.ndarray, expected: np.ndarray) -> float:
    if result.shape != expected.shape:
        return float("inf")
    return float(np.abs(result - expected).max() / max(1.0, np.abs(expected).max()))
