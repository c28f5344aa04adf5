"""The fast kernels match the plain operations: values, gradients, and gradients of gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from gan_runtime.engines.tf import cpu_convolutions
from gan_runtime.engines.tf import kernels as tf_kernels
from gan_runtime.engines.tf.cpu_convolutions import volume_convolution
from gan_runtime.engines.tf.kernels import PlainKernels, Sizes, TfCpuKernels, layer_kernels
from gan_runtime.engines.tf.step import replica_id
from gan_runtime.engines.tf.strategy import make_strategy
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.step_context import Padding
from tests.support.engines.small_engines import keep_alive

pytestmark = pytest.mark.usefixtures("cores")
PLAIN = PlainKernels()
# Each uses one method for any saving: direct multiplications, or products of spectra.
WRITTEN_OUT, SPECTRAL = TfCpuKernels(spectral_saving=math.inf), TfCpuKernels(spectral_saving=0.0)
BATCH = 6


@pytest.fixture(autouse=True)
def plain_float32() -> None:
    """Resets the policy that an engine of another test may have set."""
    keras.config.set_dtype_policy("float32")


def random(*shape: int, seed: int = 1) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).standard_normal(shape), tf.float32)


def values_and_gradients(
    function: Callable[..., tf.Tensor], *inputs: tf.Tensor
) -> list[np.ndarray]:
    """The result, and the gradient of its weighted sum by each input."""
    with tf.GradientTape() as tape:
        for tensor in inputs:
            tape.watch(tensor)
        outcome = function(*inputs)
        total = tf.reduce_sum(outcome * random(*outcome.shape, seed=9))
    return [outcome.numpy(), *(gradient.numpy() for gradient in tape.gradient(total, inputs))]


def assert_same(values: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for value, other in zip(values, expected, strict=True):
        assert value.shape == other.shape
        assert np.abs(value - other).max() <= 1e-5 * max(1.0, np.abs(other).max())


@pytest.mark.parametrize(
    ("sizes", "channels_in", "channels_out", "kernel", "strides", "padding"),
    [
        ((28, 28), 1, 64, (5, 5), (2, 2), "same"),  # D's first layer
        ((14, 14), 64, 128, (5, 5), (2, 2), "same"),  # D's second layer
        ((7, 7), 32, 16, (5, 5), (1, 1), "same"),
        ((32, 32), 16, 16, (5, 5), (2, 2), "same"),  # too many pixels to gain from the exchange
        ((9, 9), 16, 24, (3, 3), (2, 2), "same"),  # an odd size
        ((8, 8), 16, 16, (4, 4), (2, 2), "same"),  # an even kernel
        ((5, 5), 3, 2, (3, 3), (1, 1), "same"),  # too few channels to gain from the exchange
        ((12, 8), 3, 16, (5, 5), (2, 2), "same"),  # not square, and split by pixel parity
        ((12, 8), 3, 16, (4, 4), (2, 2), "same"),
        ((9, 6), 16, 24, (3, 4), (2, 2), "same"),
        ((9, 8), 16, 16, (4, 2), (2, 2), "valid"),  # the last row is unused
        ((9, 8), 16, 16, (3, 5), (1, 3), "same"),  # a different stride for each axis
        ((4, 4), 16, 24, (4, 4), (2, 2), "same"),  # few pixels: four, one, and not square
        ((2, 2), 16, 24, (4, 4), (2, 2), "same"),
        ((5, 4), 5, 8, (3, 3), (2, 1), "valid"),
        ((2, 1), 5, 8, (5, 3), (1, 1), "same"),
        ((7, 6), 16, 1, (4, 3), (1, 1), "same"),  # to one channel
        ((7, 6), 16, 1, (4, 3), (1, 1), "valid"),
        ((7, 6), 16, 1, (4, 4), (1, 1), ((1, 1), (1, 0))),
    ],
)
def test_convolution_and_gradients_match_tensorflow(
    sizes: Sizes,
    channels_in: int,
    channels_out: int,
    kernel: Sizes,
    strides: Sizes,
    padding: Padding,
) -> None:
    images, weights = (
        random(BATCH, *sizes, channels_in),
        random(*kernel, channels_in, channels_out, seed=2),
    )

    def of(kernels: PlainKernels) -> list[np.ndarray]:
        return values_and_gradients(
            lambda x, w: kernels.convolution(x, w, strides, padding), images, weights
        )

    for fast in (WRITTEN_OUT, SPECTRAL):
        assert_same(of(fast), of(PLAIN))


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("channels", [(2, 3), (8, 3)])  # 8 · 3: too many for depth as channels
def test_bfloat16_volume_gradients_match_tensorflow(
    channels: tuple[int, int], padding: str
) -> None:
    values, weights = random(BATCH, 5, 4, 7, channels[0]), random(3, 2, 4, *channels, seed=2)

    def of(kernels: PlainKernels, dtype: tf.DType) -> list[np.ndarray]:
        def function(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
            narrow = kernels.convolution(tf.cast(x, dtype), tf.cast(w, dtype), (1, 1, 1), padding)
            return tf.cast(narrow, tf.float32)

        return values_and_gradients(function, values, weights)

    # Half a unit in the last of 8 bits, and more where such numbers are summed.
    for value, other in zip(of(TfCpuKernels(), tf.bfloat16), of(PLAIN, tf.float32), strict=True):
        assert value.shape == other.shape
        assert np.abs(value - other).max() <= 2e-2 * np.abs(other).max()


@pytest.mark.parametrize("shape", [(3, 2, 4, 2, 3), (3, 2, 4, 8, 3)])
def test_float32_volume_gradients_match_tensorflow(shape: Sizes) -> None:
    values, weights = random(BATCH, 5, 4, 7, shape[-2]), random(*shape, seed=2)

    def ours(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
        return volume_convolution(x, w, "")

    def plain(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
        return PLAIN.convolution(x, w, (1, 1, 1), "valid")

    assert_same(
        values_and_gradients(ours, values, weights), values_and_gradients(plain, values, weights)
    )


@pytest.mark.parametrize(
    ("sizes", "channels_in", "channels_out", "kernel", "strides", "padding"),
    [
        ((7, 7), 256, 128, (5, 5), (1, 1), "same"),  # G's three transposed convolutions
        ((7, 7), 128, 64, (5, 5), (2, 2), "same"),
        ((14, 14), 64, 1, (5, 5), (2, 2), "same"),
        ((6, 6), 8, 3, (5, 5), (2, 2), "same"),  # three output channels, as in a color image
        ((6, 6), 16, 16, (3, 3), (2, 2), "same"),
        ((6, 4), 8, 3, (5, 5), (2, 2), "same"),
        ((6, 4), 8, 3, (4, 4), (2, 2), "same"),
        ((5, 4), 16, 16, (3, 2), (2, 2), "valid"),
        ((5, 4), 16, 16, (5, 4), (1, 3), "same"),
        ((1, 1), 16, 24, (4, 4), (2, 2), "same"),  # few pixels
        ((2, 2), 16, 24, (4, 4), (2, 2), "same"),
        ((2, 1), 16, 5, (3, 5), (2, 1), "valid"),
    ],
)
def test_transposed_convolution_and_gradients_match_tensorflow(
    sizes: Sizes, channels_in: int, channels_out: int, kernel: Sizes, strides: Sizes, padding: str
) -> None:
    images, weights = (
        random(BATCH, *sizes, channels_in),
        random(*kernel, channels_out, channels_in, seed=2),
    )

    def of(kernels: PlainKernels) -> list[np.ndarray]:
        return values_and_gradients(
            lambda x, w: kernels.transposed_convolution(x, w, strides, padding), images, weights
        )

    for fast in (WRITTEN_OUT, SPECTRAL):
        assert_same(of(fast), of(PLAIN))


@pytest.mark.parametrize(
    ("size", "channels", "is_exchanged"),
    [(14, 64, True), (16, 16, True), (18, 16, False), (64, 64, False), (16, 15, False)],
)
def test_filter_gradient_is_exchanged_only_where_that_is_faster(
    size: int, channels: int, is_exchanged: bool
) -> None:
    images, upstream = random(2, size, size, channels), random(2, size // 2, size // 2, 16)

    @tf.function
    def gradient() -> tf.Tensor:
        return cpu_convolutions.filter_gradient(
            images, upstream, tf.zeros([5, 5, channels, 16]), (2, 2), "same"
        )

    kinds = {
        operation.type for operation in gradient.get_concrete_function().graph.get_operations()
    }
    assert ("Conv2DBackpropFilter" in kinds, "Conv2D" in kinds) == (not is_exchanged, is_exchanged)


@pytest.mark.parametrize(("size", "channels_in"), [(28, 1), (14, 64), (2, 64)])
def test_gradient_penalty_has_the_same_gradient(size: int, channels_in: int) -> None:
    """R1 takes the gradient of a gradient, so the gradients of the fast kernels must be
    differentiable.
    """

    def slope_norm(kernels: PlainKernels) -> Callable[[tf.Tensor], tf.Tensor]:
        def penalty(weights: tf.Tensor) -> tf.Tensor:
            images = random(BATCH, size, size, channels_in)
            with tf.GradientTape() as tape:
                tape.watch(images)
                total = tf.reduce_sum(
                    tf.square(kernels.convolution(images, weights, (2, 2), "same"))
                )
            return tf.reduce_sum(tf.square(tape.gradient(total, images)))[None]

        return penalty

    weights = 0.01 * random(5, 5, channels_in, 32, seed=2)
    expected = values_and_gradients(slope_norm(PLAIN), weights)
    for fast in (WRITTEN_OUT, SPECTRAL):
        assert_same(values_and_gradients(slope_norm(fast), weights), expected)


@pytest.mark.parametrize(
    ("batch", "size", "channels", "dtype", "takes_spectra"),
    [
        (256, 14, (64, 128), "float32", True),  # D's second layer
        (256, 14, (64, 128), "bfloat16", False),  # too coarse for spectra, and faster directly
        (1, 14, (64, 128), "float32", False),  # the spectrum of the kernel alone would cost more
        (
            256,
            28,
            (1, 64),
            "float32",
            False,
        ),  # D's first layer: the spectra of its output would cost more
        (64, 128, (64, 128), "float32", False),  # such a large matrix would not fit into memory
    ],
)
def test_convolution_uses_spectra_only_where_that_saves_most_work(
    batch: int, size: int, channels: Sizes, dtype: str, takes_spectra: bool
) -> None:
    kernels = TfCpuKernels()
    traced = tf.function(
        lambda x, w: kernels.convolution(x, w, (2, 2), "same")
    ).get_concrete_function(
        tf.TensorSpec((batch, size, size, channels[0]), dtype),
        tf.TensorSpec((5, 5, *channels), dtype),
    )
    operations = {node.op for node in traced.graph.as_graph_def().node}
    operations |= {
        node.op
        for function in traced.graph.as_graph_def().library.function
        for node in function.node_def
    }
    assert ("Conv2D" not in operations) == takes_spectra


@pytest.mark.parametrize(
    "shape", [(BATCH, 7, 7, 8), (BATCH, 40), (BATCH, 7, 8), (BATCH, 4, 3, 5, 8)]
)
@pytest.mark.parametrize("norm", [tf_kernels.fused_batch_norm, tf_kernels.synchronised_batch_norm])
def test_batch_norm_on_one_replica_matches_keras(
    shape: tuple[int, ...], norm: Callable[..., Any]
) -> None:
    layer = keras.layers.BatchNormalization(
        momentum=0.0
    )  # so that the stored statistics come from this batch
    layer.build(shape)
    values, gamma, beta = (
        3.0 + 2.0 * random(*shape),
        random(shape[-1], seed=2),
        random(shape[-1], seed=3),
    )
    layer.gamma.assign(gamma)
    layer.beta.assign(beta)
    expected = values_and_gradients(lambda x: layer(x, training=True), values)
    assert_same(
        values_and_gradients(lambda x: norm(x, gamma, beta, layer.epsilon)[0], values), expected
    )
    _, mean, variance = norm(values, gamma, beta, layer.epsilon)
    assert_same(
        [mean.numpy(), variance.numpy()],
        [np.asarray(layer.moving_mean), np.asarray(layer.moving_variance)],
    )


@pytest.mark.usefixtures("exchange")
def test_synchronized_batch_norm_on_two_replicas_is_whole_batch(
    new_group: Callable[[], None],
) -> None:
    new_group()
    strategy = keep_alive(make_strategy(RunSpec.parse({"replicas": 2}), "cpu"))
    values, weights, gamma, beta = (
        random(2, 3, 7, 7, 8),
        random(2, 3, 7, 7, 8, seed=2),
        random(8, seed=3),
        random(8, seed=4),
    )

    def on_a_replica() -> list[tf.Tensor]:
        inputs = [values[replica_id()], gamma, beta]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outcome = tf_kernels.synchronised_batch_norm(*inputs, 1e-3)[0]
            total = tf.reduce_sum(outcome * weights[replica_id()])
        return [outcome, *tape.gradient(total, inputs)]

    call = tf.function(lambda: strategy.run(on_a_replica))
    outcome, by_values, by_gamma, by_beta = map(strategy.experimental_local_results, call())
    result = [tf.concat(outcome, 0), tf.concat(by_values, 0), tf.add_n(by_gamma), tf.add_n(by_beta)]
    whole = [tf.reshape(values, [6, 7, 7, 8]), gamma, beta]
    with tf.GradientTape() as tape:
        tape.watch(whole)
        expected = tf_kernels.fused_batch_norm(*whole, 1e-3)[0]
        total = tf.reduce_sum(expected * tf.reshape(weights, expected.shape))
    assert_same(
        [value.numpy() for value in result],
        [value.numpy() for value in [expected, *tape.gradient(total, whole)]],
    )


def test_bfloat16_convolution_stays_bfloat16_and_accurate() -> None:
    images, weights = random(BATCH, 14, 14, 32), random(5, 5, 32, 32, seed=2)
    narrow = TfCpuKernels().convolution(
        tf.cast(images, tf.bfloat16), tf.cast(weights, tf.bfloat16), (2, 2), "same"
    )
    assert narrow.dtype == tf.bfloat16
    exact = PLAIN.convolution(images, weights, (2, 2), "same").numpy()
    assert np.abs(tf.cast(narrow, tf.float32).numpy() - exact).max() < 0.02 * np.abs(exact).max()


@pytest.mark.parametrize(("channels", "is_widened"), [(4, True), (16, False), (24, True)])
def test_batch_norm_of_odd_channel_counts_runs_in_float32(channels: int, is_widened: bool) -> None:
    values = tf.cast(random(4, 3, 2, 5, channels), tf.bfloat16)
    ones, zeros = tf.ones(channels), tf.zeros(channels)
    outputs, mean, _ = TfCpuKernels().batch_norm(values, ones, zeros, 1e-3)
    wide, expected, _ = PLAIN.batch_norm(tf.cast(values, tf.float32), ones, zeros, 1e-3)
    assert (outputs.dtype, mean.dtype) == (tf.bfloat16, tf.float32)
    assert np.abs(tf.cast(outputs, tf.float32) - wide).max() < 0.02
    assert np.abs(mean - expected).max() < 1e-5

    @tf.function
    def normed() -> tf.Tensor:
        return TfCpuKernels().batch_norm(values, ones, zeros, 1e-3)[0]

    operations = normed.get_concrete_function().graph.get_operations()
    (norm,) = (operation for operation in operations if operation.type.startswith("FusedBatchNorm"))
    assert (norm.inputs[0].dtype == tf.float32) == is_widened


@pytest.mark.parametrize(
    ("accelerator", "xla", "kind"),
    [("cpu", "off", TfCpuKernels), ("cpu", "jit", PlainKernels), ("gpu", "off", PlainKernels)],
)
def test_only_a_cpu_without_xla_uses_the_rewritten_kernels(
    accelerator: str, xla: Any, kind: type
) -> None:
    assert type(layer_kernels(RunSpec(xla=xla), 1, accelerator)) is kind
