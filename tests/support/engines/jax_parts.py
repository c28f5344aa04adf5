"""Individual parts of the JAX engine, for tests. Only the process with JAX imports this."""

from __future__ import annotations

import re
from functools import partial
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import keras
import numpy as np

from gan_runtime.base.fields import Field
from gan_runtime.engines.inputs import RowOrder
from gan_runtime.engines.jax import inference as jax_inference
from gan_runtime.engines.jax import inputs, tpu_volumes
from gan_runtime.engines.jax import kernels as jax_kernels
from gan_runtime.engines.jax.devices import AXIS
from gan_runtime.engines.jax.gpu_kernels import IMAGE_AXES, GpuKernels
from gan_runtime.engines.jax.inputs import JaxStepNoise
from gan_runtime.engines.jax.tpu_kernels import TpuKernels
from gan_runtime.engines.task import StepPlan
from gan_runtime.workloads.layers import ConditionalBatchNorm
from tests.support.engines import keras_layers
from tests.support.engines.showers import random_showers
from tests.support.engines.small_engines import Streamed

KERNELS = {"cpu": jax_kernels.JaxCpuKernels(None)}  # the plain kernels are Keras' own
VOLUME_AXES = 3
QUICK_TO_COMPILE = {
    "xla_backend_optimization_level": 0
}  # each program runs once; this cuts the time to a fifth


def thinned(values: np.ndarray, upstream: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Values after dropout, and their gradient for `upstream`."""
    outputs, back = jax.vjp(
        lambda inputs: JaxStepNoise(1, jnp.int32(0), jnp.int32(0)).dropout(inputs, rate),
        jnp.asarray(values),
    )
    [gradient] = back(jnp.asarray(upstream))
    return np.asarray(outputs), np.asarray(gradient)


def draws(seed: int, step: int, place: int) -> tuple[np.ndarray, np.ndarray]:
    """Two consecutive draws of latents (8, 5)."""
    noise = JaxStepNoise(seed, jnp.int32(step), jnp.int32(0), place)
    return np.asarray(noise.normal(8, 5)), np.asarray(noise.normal(8, 5))


def uniform_in_shares(shares: int, rows: int, *shape: int) -> np.ndarray:
    """Uniform numbers (rows, *shape), drawn by `shares` replicas together."""
    parts = [
        JaxStepNoise(1, jnp.int32(5), jnp.int32(share)).uniform(rows // shares, *shape)
        for share in range(shares)
    ]
    return np.concatenate([np.asarray(part) for part in parts])


def counted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bin counts from 0 to 1, bin counts from the lowest to the highest value, and this range."""
    counts, low_high = jax_inference.range_counts(
        [jnp.asarray(half) for half in np.split(values, 2)]
    )
    return jax_inference.bin_counts(values, 0.0, 1.0), np.asarray(counts), np.asarray(low_high)


def on_the_device(field: Field, stored: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
    """The shape of rows in a device's memory, and the rows read back from there."""
    lying = jnp.asarray(inputs.to_device_layout(field, stored))
    return lying.shape, np.asarray(inputs.from_device_layout(field, lying))


def read_by(
    process: int, processes: int, first_step: int, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the rows that one of several processes reads of a streamed data set, and those
    of the steps' global batches.

    int (steps, batches, share of the batch) and (steps, batches, batch), with two batches of eight
    per step.
    """
    data, order = Streamed(random_showers(40)), RowOrder(1, StepPlan(2, 8, rows=40, updates={}))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), (AXIS,))
    with mock.patch.multiple(jax, process_count=lambda: processes, process_index=lambda: process):
        inputs.StreamedRows(data, order, mesh, steps).read(range(first_step, first_step + steps))
    [numbers] = data.reads
    return numbers.reshape(steps, 2, -1), order.rows(first_step, steps)


def batch_norm(values: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> list[np.ndarray]:
    """Normalized values, mean and variance."""
    return [
        np.asarray(array)
        for array in jax_kernels.JaxKernels(None).batch_norm(jnp.asarray(values), gamma, beta, 1e-3)
    ]


def block_of(
    sizes: tuple[int, ...], taps: tuple[int, ...], channels: tuple[int, int]
) -> tuple[int, int] | None:
    """The output cells per block of a "valid" convolution on a TPU, along the second axis and along
    depth; None if the convolution is not folded.
    """
    kernel = np.empty((*taps, *channels))
    if not tpu_volumes.is_few(kernel, (1, 1, 1)):
        return None
    block = tpu_volumes.best_block(
        tpu_volumes.ConvolutionShape(sizes, taps, ((0, 0),) * VOLUME_AXES, *channels)
    )
    return block.second, block.depth


def volumes_convolved(values: np.ndarray, kernel: np.ndarray, padding: Any) -> list[np.ndarray]:
    """Convolutions as float32: on a CPU of bfloat16 inputs, and of the same numbers in float32; and
    XLA's own of the latter.
    """
    of_cpu, plain = KERNELS["cpu"].convolution, jax_kernels.JaxKernels(None).convolution
    narrow = [jnp.asarray(array, jnp.bfloat16) for array in (values, kernel)]
    wide = [array.astype(jnp.float32) for array in narrow]
    return [
        np.asarray(convolution(*both, (1, 1, 1), padding), np.float32)
        for convolution, both in ((of_cpu, narrow), (of_cpu, wide), (plain, wide))
    ]


def layer_differences(what: str, axes: int) -> keras_layers.Differences:
    """Differences of convolutions, transposed ones, those of enlarged values, batch norms, or
    layers that no kernel covers.
    """
    keras.config.set_dtype_policy("float32")
    if what == "norms":
        return keras_layers.norms(axes, {"plain": jax_kernels.JaxKernels(None)}, _differentiated)
    if what == "enlarged":
        return keras_layers.enlarged_convolutions(axes, KERNELS, _differentiated)
    if what == "other options":
        return keras_layers.other_options(KERNELS, _differentiated)
    # The TPU's kernels treat all axes alike, and each compilation takes time.
    further = {IMAGE_AXES: {"gpu": GpuKernels(None)}, VOLUME_AXES: {"tpu": TpuKernels(None)}}
    return keras_layers.convolutions(what, axes, KERNELS | further.get(axes, {}), _differentiated)


def _differentiated(layer: Any, inputs: list[np.ndarray], upstream: np.ndarray) -> list[np.ndarray]:
    """A `keras_layers.Differentiated` that also returns the stored statistics, last."""
    first, *further = (jnp.asarray(value) for value in inputs)
    stored = [variable.value for variable in layer.non_trainable_variables]
    weights = [variable.value for variable in layer.trainable_variables]
    called = jax.jit(partial(_called, layer), compiler_options=QUICK_TO_COMPILE)
    outcome, back, moved = called(first, further, weights, stored, upstream)
    return [np.asarray(value) for value in (outcome, back[0], *back[1], *moved)]


def _called(layer: Any, first: Any, further: Any, weights: Any, stored: Any, upstream: Any) -> Any:
    def function(first: jax.Array, weights: list[jax.Array]) -> tuple[jax.Array, list[jax.Array]]:
        training = {"training": True} if stored else {}
        return layer.stateless_call(
            weights, stored, [first, *further] if further else first, **training
        )

    outcome, back, moved = jax.vjp(function, first, weights, has_aux=True)
    return outcome, back(upstream), moved


def conditional_norm_on_two_devices(
    values: np.ndarray, labels: np.ndarray, upstream: np.ndarray, classes: int
) -> list[list[np.ndarray]]:
    """Outputs, gradients and stored statistics for (2, B, …, C), on two devices and on one."""
    layer = ConditionalBatchNorm(classes)
    layer.build((values.shape[1:], labels.shape[1:]))
    weights = [
        jnp.asarray(keras_layers.random(*variable.shape, seed=seed))
        for seed, variable in enumerate(layer.trainable_variables)
    ]
    stored = [variable.value for variable in layer.non_trainable_variables]

    def on(kernels: Any, values: Any, labels: Any, upstream: Any) -> Any:
        with keras_layers.using(kernels):
            outcome, back, moved = _called(layer, values, [labels], weights, stored, upstream)
        return outcome, back[0], back[1], moved

    def shared(*arrays: jax.Array) -> Any:
        outcome, by_values, by_weights, moved = on(
            jax_kernels.JaxKernels("replicas"), *(array[0] for array in arrays)
        )
        return outcome[None], by_values[None], jax.lax.psum(by_weights, "replicas"), moved

    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("replicas",))
    split, whole = jax.P("replicas"), jax.P()
    two = jax.jit(
        jax.shard_map(
            shared,
            mesh=mesh,
            in_specs=split,
            out_specs=(split, split, whole, whole),
            check_vma=False,
        )
    )(values, labels, upstream)
    flat = [array.reshape(-1, *array.shape[2:]) for array in (values, labels, upstream)]
    single = on(jax_kernels.JaxKernels(None), *flat)
    return [[np.asarray(value) for value in jax.tree.leaves(way)] for way in (two, single)]


def layers_and_kernels(
    kind: str, shape: tuple[int, int, int], stride: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Values, gradients with respect to input and kernel, and those of a gradient penalty, as pairs
    of (Keras' layer, our kernel), for a convolution and a transposed one.
    """
    size, channels, filters = shape
    random = np.random.default_rng(0)
    kernels = {
        "plain": jax_kernels.JaxKernels,
        "cpu": jax_kernels.JaxCpuKernels,
        "gpu": GpuKernels,
    }[kind](None)
    pairs = {}
    for name, layer, kernel_of in (
        ("convolution", keras.layers.Conv2D, kernels.convolution),
        ("transposed", keras.layers.Conv2DTranspose, kernels.transposed_convolution),
    ):
        images = jnp.asarray(random.standard_normal((2, size, size, channels)), jnp.float32)
        built = layer(filters, 5, stride, padding="same", use_bias=False)
        built.build(images.shape)
        kernel = jnp.asarray(built.kernel)

        def keras_way(images: jax.Array, kernel: jax.Array, layer: Any = built) -> jax.Array:
            outputs, _ = layer.stateless_call([kernel], [], images)
            return outputs

        def our_way(images: jax.Array, kernel: jax.Array, kernel_of: Any = kernel_of) -> jax.Array:
            return kernel_of(images, kernel, (stride, stride), "same")

        ways = []
        for way in (keras_way, our_way):
            outputs, back = jax.vjp(way, images, kernel)
            by_images, by_kernel = back(jnp.cos(outputs))
            second = jax.grad(_penalty, argnums=(1, 2))(way, images, kernel)
            arrays = outputs, by_images, by_kernel, *second
            ways.append([np.asarray(array) for array in arrays])
        pairs[name] = list(zip(*ways, strict=True))
    return pairs


def layouts_of_a_penalty(name: str) -> set[str]:
    """The value layouts of all convolutions in the gradients of a gradient penalty on a CPU."""
    kernels = jax_kernels.JaxCpuKernels(None)
    way = partial(getattr(kernels, name), strides=(2, 2), padding="same")
    channels = (4, 3) if name == "convolution" else (3, 4)
    images, kernel = jnp.zeros((2, 8, 8, 4)), jnp.zeros((5, 5, *channels))
    gradients = jax.make_jaxpr(jax.grad(partial(_penalty, way), argnums=(0, 1)))(images, kernel)
    return set(re.findall(r"lhs_spec=(\([^)]*\))", str(gradients)))


def _penalty(way: Any, images: jax.Array, kernel: jax.Array) -> jax.Array:
    """A gradient within a gradient, as in R1."""
    return jnp.square(jax.grad(lambda values: jnp.sin(way(values, kernel)).sum())(images)).sum()
