"""Kernels of the training step for a GPU: the mathematics of `JaxKernels`, written so that XLA
passes each convolution on to cuDNN without changes.

cuDNN knows three convolutions: forward, by values and by kernel, each with one number of zeros for
both sides of an axis. XLA's compiler brings ours into this form (seen in its optimized program):

* "same" with a stride can need one more row of zeros behind the image than in front: 1 and 2 for 5
  taps from 28 to 14 pixels. XLA then copies the image into a larger one, and cuts its gradient out
  of one. A kernel with a row of zeros in front needs 2 and 2, and no copy: 6 taps, the same values;
* JAX derives some gradients by kernel, those of transposed convolutions and of gradient penalties,
  as forward convolutions whose kernel is an image, up to 32 × 32 taps. Here they are gradients by
  kernel, in derivatives of any order (`kernels.linked`).

Other numbers of axes are left to XLA: for volumes its convolutions are the faster ones already
(docs/gpu.md).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from gan_runtime.engines.convolutions import among_zeros, transposed_sizes
from gan_runtime.engines.jax.kernels import JaxKernels, Sizes, convolution, layout, linked
from gan_runtime.workloads.step_context import Padding

IMAGE_AXES = 2


class GpuKernels(JaxKernels):
    def convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: Padding
    ) -> jax.Array:
        values, kernel, strides, padding = among_zeros(values, kernel, strides, padding)
        if len(strides) != IMAGE_AXES:
            return convolution(values, kernel, strides, padding)
        return _convolution(values, jnp.asarray(kernel), strides, padding)

    def transposed_convolution(
        self, values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str
    ) -> jax.Array:
        """The gradient by values of the convolution of the larger images."""
        if len(strides) != IMAGE_AXES:
            return super().transposed_convolution(values, kernel, strides, padding)
        sizes = transposed_sizes(values, kernel, strides, padding)
        larger = (values.shape[0], *sizes, kernel.shape[-2])
        return _by_values(values, jnp.asarray(kernel), larger, strides, padding)


def even_convolution(
    values: jax.Array, kernel: jax.Array, strides: Sizes, padding: str
) -> jax.Array:
    """A convolution of images with as many zeros behind as in front, along each axis.

    (8, 28, 28, 1) and (5, 5, 1, 64) by 2 × 2 → (8, 14, 14, 64), with 6 × 6 taps and 2 zeros around.
    """
    around = jax.lax.padtype_to_pads(
        values.shape[1:-1], kernel.shape[:-2], strides, padding.upper()
    )
    missing = [(behind - front, 0) for front, behind in around]
    return jax.lax.conv_general_dilated(
        values,
        jnp.pad(kernel, [*missing, (0, 0), (0, 0)]),
        strides,
        [(behind, behind) for _, behind in around],
        dimension_numbers=layout(IMAGE_AXES),
    )


def _kernel_gradient(
    values: jax.Array, upstream: jax.Array, taps: Sizes, strides: Sizes, padding: str
) -> jax.Array:
    shape = (*taps, values.shape[-1], upstream.shape[-1])
    (gradient,) = jax.linear_transpose(
        lambda kernel: even_convolution(values, kernel, strides, padding),
        jax.ShapeDtypeStruct(shape, values.dtype),
    )(upstream)
    return gradient


_convolution, _by_values, _ = linked(even_convolution, _kernel_gradient)
