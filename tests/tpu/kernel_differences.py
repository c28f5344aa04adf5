"""How far the TPU's kernels are from the plain ones, in a process of its own, since TensorFlow's tests share none with JAX.

python -m tests.tpu.kernel_differences        prints {case: {what: largest difference, as a share of the largest value}} as JSON
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.update(JAX_PLATFORMS="cpu", KERAS_BACKEND="jax")

import jax
import jax.numpy as jnp
import numpy as np

from gan_runtime.engines.jax.kernels import JaxKernels
from gan_runtime.engines.jax.tpu_kernels import TpuKernels

# (size, channels in, channels out, stride) of a convolution of square images with a kernel of 5 × 5.
CONVOLUTIONS = {
    "to_one_channel": (28, 1, 64, 2),
    "with_stride": (14, 8, 16, 2),
    "plain": (7, 8, 16, 1),
    "odd_block": (10, 1, 8, 2),
}
Function = Callable[..., Any]


def arrays(*shapes: tuple[int, ...]) -> list[jax.Array]:
    """Standard normal float32, the same in every call."""
    generator = np.random.default_rng(0)
    return [jnp.asarray(generator.normal(size=shape), jnp.float32) for shape in shapes]


def differences(ours: Function, plain: Function, inputs: list[jax.Array]) -> dict[str, float]:
    """Of values, gradients, and gradients of the squared gradient by the first input, as the R1 penalty has them."""
    upstream = arrays(jax.eval_shape(plain, *inputs).shape)[0]

    def gradients(function: Function) -> tuple[Any, ...]:
        return (function(*inputs), *jax.vjp(function, *inputs)[1](upstream))

    def second(function: Function) -> Any:
        def slope(*values: jax.Array) -> jax.Array:
            return jnp.square(
                jax.grad(lambda first: (function(first, *values[1:]) * upstream).sum())(values[0])
            ).sum()

        return jax.grad(slope, argnums=1)(*inputs)

    pairs = zip(("values", "by_first", "by_second"), gradients(ours), gradients(plain), strict=True)
    found = {name: _distance(one, other) for name, one, other in pairs}
    return found | {"second_order": _distance(second(ours), second(plain))}


def _distance(one: jax.Array, other: jax.Array) -> float:
    return float(jnp.abs(one - other).max() / jnp.abs(other).max())


def _called(kernel_of: Function, stride: int, images: jax.Array, kernel: jax.Array) -> jax.Array:
    return kernel_of(images, kernel, (stride, stride), "same")


def main() -> None:
    """Every case, once as a convolution and once transposed."""
    tpu, plain = TpuKernels(None), JaxKernels(None)
    found = {}
    for name, (size, channels, filters, stride) in CONVOLUTIONS.items():
        images, small, kernel = arrays(
            (3, size, size, channels), (3, size // stride, size // stride, filters), (5, 5, channels, filters)
        )
        for kind, inputs in (("convolution", images), ("transposed_convolution", small)):
            ours, others = (partial(_called, getattr(of, kind), stride) for of in (tpu, plain))
            found[f"{name}, {kind}"] = differences(ours, others, [inputs, kernel])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
