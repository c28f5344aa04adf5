"""Compares the TPU's kernels with the plain ones. Only the process with JAX imports this."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gan_runtime.engines.jax.kernels import JaxKernels
from gan_runtime.engines.jax.tpu_kernels import TpuKernels
from gan_runtime.engines.jax.tpu_volumes import Block, folded
from gan_runtime.workloads.step_context import Padding

# (size, channels in, channels out, stride, taps) of a convolution of square images with a square
# kernel.
CONVOLUTIONS = {
    "to_one_channel": (28, 1, 64, 2, 5),
    "with_stride": (14, 8, 16, 2, 5),
    "plain": (7, 8, 16, 1, 5),
    "odd_block": (10, 1, 8, 2, 5),
    "in_blocks": (16, 32, 4, 2, 4),
}
# The size of volumes, and of their kernel without channels.
VOLUME, VOLUME_TAPS = (4, 5, 7), (3, 2, 4)
# Blocks along the second axis and depth: single outputs, uneven remainders, and larger than the
# volume.
BLOCKS = {"single": Block(1, 1), "with_rests": Block(2, 3), "whole": Block(9, 8)}
QUICK_TO_COMPILE = {"xla_backend_optimization_level": 0}  # each program runs once
Function = Callable[..., Any]


def arrays(*shapes: tuple[int, ...]) -> list[jax.Array]:
    """Standard normal float32, the same in every call."""
    generator = np.random.default_rng(0)
    return [jnp.asarray(generator.normal(size=shape), jnp.float32) for shape in shapes]


def differences(ours: Function, plain: Function, inputs: list[jax.Array]) -> dict[str, float]:
    """Differences of values, gradients, and gradients of the squared gradient with respect to the
    first input, as in the R1 penalty.
    """
    upstream = arrays(jax.eval_shape(plain, *inputs).shape)[0]

    def gradients(function: Function) -> tuple[Any, ...]:
        return (function(*inputs), *jax.vjp(function, *inputs)[1](upstream))

    def second(function: Function) -> Any:
        def slope(*values: jax.Array) -> jax.Array:
            return jnp.square(
                jax.grad(lambda first: (function(first, *values[1:]) * upstream).sum())(values[0])
            ).sum()

        return jax.grad(slope, argnums=1)(*inputs)

    def all_of(function: Function) -> tuple[Any, ...]:
        return jax.jit(
            lambda: (*gradients(function), second(function)), compiler_options=QUICK_TO_COMPILE
        )()

    names = ("values", "by_first", "by_second", "second_order")
    pairs = zip(names, all_of(ours), all_of(plain), strict=True)
    return {name: _distance(first, other) for name, first, other in pairs}


def _distance(first: jax.Array, other: jax.Array) -> float:
    return float(jnp.abs(first - other).max() / jnp.abs(other).max())


def _called(kernel_of: Function, stride: int, images: jax.Array, kernel: jax.Array) -> jax.Array:
    return kernel_of(images, kernel, (stride, stride), "same")


def of_volumes() -> dict[str, dict[str, float]]:
    """Differences for the blocks that the kernels choose, and for given blocks, whose backward pass
    JAX derives; then for bias and batch norm.
    """
    plain, tpu, differences_by_name = JaxKernels(None), TpuKernels(None), {}
    for channels, name in ((2, "two channels"), (1, "one channel")):
        inputs = arrays((2, *VOLUME, channels), (*VOLUME_TAPS, channels, 3))
        for kind, padding in {
            "same": "same",
            "valid": "valid",
            "zeros": ((1, 2), (2, 0), (0, 3)),
        }.items():
            ours, expected = (partial(_volumes, of.convolution, padding) for of in (tpu, plain))
            differences_by_name[f"{name}, {kind}, chosen"] = differences(ours, expected, inputs)
        zeros = tuple(jax.lax.padtype_to_pads(VOLUME, VOLUME_TAPS, (1, 1, 1), "SAME"))
        plainly = partial(_volumes, plain.convolution, "same")
        for kind, block in BLOCKS.items():
            ours = partial(folded, around=zeros, block=block)
            differences_by_name[f"{name}, same, {kind}"] = differences(ours, plainly, inputs)
    _, values, of_channels = arrays((1,), (3, *VOLUME, 2), (2,))  # other values than `upstream`
    for name, function in (
        ("bias", _biased),
        ("scale and offset", _scaled),
        ("batch norm", _normed),
    ):
        ours, expected = (partial(function, of) for of in (tpu, plain))
        differences_by_name[name] = differences(ours, expected, [values, of_channels])
    return differences_by_name


def _volumes(
    convolution: Function, padding: Padding, volumes: jax.Array, kernel: jax.Array
) -> jax.Array:
    return convolution(volumes, kernel, (1, 1, 1), padding)


def _biased(kernels: JaxKernels, values: jax.Array, bias: jax.Array) -> jax.Array:
    return jnp.square(
        kernels.elementwise(jnp.add, values, bias)
    )  # so that there is a second derivative


def _scaled(kernels: JaxKernels, values: jax.Array, scale: jax.Array) -> jax.Array:
    def leaky(values: jax.Array, scale: jax.Array, offset: jax.Array) -> jax.Array:
        return jax.nn.leaky_relu(values * scale + offset, 0.3) ** 2

    return kernels.elementwise(leaky, values, scale, jnp.square(scale))


def _normed(kernels: JaxKernels, values: jax.Array, gamma: jax.Array) -> jax.Array:
    outputs, mean, variance = kernels.batch_norm(values, gamma, jnp.ones(2), 1e-3)
    return outputs + mean + variance


def of_all() -> dict[str, dict[str, float]]:
    """{case: {name: largest difference, as a share of the largest value}}: each case as a
    convolution and as a transposed one, and volumes.
    """
    tpu, plain = TpuKernels(None), JaxKernels(None)
    differences_by_name = of_volumes()
    for name, (size, channels, filters, stride, taps) in CONVOLUTIONS.items():
        images, small, kernel = arrays(
            (3, size, size, channels),
            (3, size // stride, size // stride, filters),
            (taps, taps, channels, filters),
        )
        for kind, inputs in (("convolution", images), ("transposed_convolution", small)):
            ours, expected = (partial(_called, getattr(of, kind), stride) for of in (tpu, plain))
            differences_by_name[f"{name}, {kind}"] = differences(ours, expected, [inputs, kernel])
    return differences_by_name
