"""The gain of our kernels on this machine's CPU: TensorFlow's operation and ours, each timed alone.

In bfloat16; spectral convolutions in float32, the only type that uses them. "Three passes" are the
operation and both gradients. The shapes are those of Table 1. Each figure is the fastest of --calls
calls, which other processes disturb least. Prints the table of docs/training.md.

python -m benchmarks.kernel_times [--batch 256] [--calls 20] [--cpu-time] [--showers | --pairs]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import tensorflow as tf

from benchmarks.markdown import table
from gan_runtime.engines.tf import cpu_convolutions
from gan_runtime.engines.tf import kernels as tf_kernels

KERNEL = 5
Clock = Callable[[], float]


@dataclass(frozen=True)
class Comparison:
    """TensorFlow's operation and ours. `flop`: of a call, for a rate; 0: the table has times."""

    name: str
    plain_call: Callable[[], Any]
    own_call: Callable[[], Any]
    flop: int = 0

    def line(self, calls: int, clock: Clock) -> list[str]:
        """A line of the table: name, TensorFlow's operation, ours."""
        both = (min_seconds(call, calls, clock) for call in (self.plain_call, self.own_call))
        return [self.name, *(self._text(seconds) for seconds in both)]

    def _text(self, seconds: float) -> str:
        return (
            f"{self.flop / seconds / 1e9:,.0f} GFLOP/s" if self.flop else f"{1e3 * seconds:.1f} ms"
        )


def min_seconds(call: Callable[[], Any], calls: int, clock: Clock) -> float:
    """Seconds of the fastest of `calls` calls, after two that trace and allocate."""
    compiled = tf.function(call)
    seconds = []
    for _ in range(2 + calls):
        begin = clock()
        compiled()
        seconds.append(clock() - begin)
    return min(seconds[2:])


def normal(*shape: int, dtype: tf.DType = tf.bfloat16) -> tf.Tensor:
    """Standard normal values."""
    return tf.cast(tf.random.stateless_normal(shape, (1, 2)), dtype)


def filter_gradient(
    batch: int, stride: int, size: int, channels_in: int, channels_out: int
) -> Comparison:
    """The filter gradient of a "same" convolution of `size` × `size` images."""
    small = size // stride
    images, upstream = (
        normal(batch, size, size, channels_in),
        normal(batch, small, small, channels_out),
    )
    kernel = normal(KERNEL, KERNEL, channels_in, channels_out)
    strides = [1, stride, stride, 1]

    def plain() -> tf.Tensor:
        return tf.raw_ops.Conv2DBackpropFilter(
            input=images,
            filter_sizes=kernel.shape,
            out_backprop=upstream,
            strides=strides,
            padding="SAME",
        )

    flop = 2 * batch * small**2 * KERNEL**2 * channels_in * channels_out
    return Comparison(
        f"filter gradient, stride {stride}, {channels_in} to {channels_out} channels",
        plain,
        lambda: cpu_convolutions.filter_gradient(
            images, upstream, kernel, (stride, stride), "same"
        ),
        flop,
    )


def one_channel_convolution(batch: int) -> Comparison:
    """The generator's last transposed convolution."""
    images, kernel = normal(batch, 14, 14, 64), normal(KERNEL, KERNEL, 1, 64)
    ours, plain = tf_kernels.TfCpuKernels(), tf_kernels.PlainKernels()
    return Comparison(
        "transposed convolution to one channel",
        lambda: plain.transposed_convolution(images, kernel, (2, 2), "same"),
        lambda: ours.transposed_convolution(images, kernel, (2, 2), "same"),
    )


def spectral_convolution(
    name: str, batch: int, stride: int, size: int, channels: tuple[int, int]
) -> Comparison:
    """A convolution of `size` × `size` images, or its transpose to them, with both gradients."""
    images = normal(batch, size, size, channels[0], dtype=tf.float32)
    small_images = normal(batch, size // stride, size // stride, channels[1], dtype=tf.float32)
    kernel = normal(KERNEL, KERNEL, *channels, dtype=tf.float32)
    is_transposed = name.startswith("transposed")
    values, upstream = (small_images, images) if is_transposed else (images, small_images)

    def passes(kernels: tf_kernels.PlainKernels) -> list[tf.Tensor]:
        layer = kernels.transposed_convolution if is_transposed else kernels.convolution
        with tf.GradientTape() as tape:
            tape.watch([values, kernel])
            outputs = layer(values, kernel, (stride, stride), "same")
        return [outputs, *tape.gradient(outputs, [values, kernel], output_gradients=upstream)]

    between = channels[::-1] if is_transposed else channels
    return Comparison(
        f"{name}, stride {stride}, {between[0]} to {between[1]} channels, float32, three passes",
        lambda: passes(tf_kernels.PlainKernels()),
        lambda: passes(tf_kernels.TfCpuKernels(spectral_saving=0.0)),  # even where it is slower
    )


def volume_convolution(
    name: str, batch: int, sizes: tuple[int, ...], kernel: tuple[int, ...], dtype: tf.DType
) -> Comparison:
    """A "valid" convolution of volumes with both gradients. `kernel`: taps, channels in and out."""
    values, weights = normal(batch, *sizes, kernel[-2], dtype=dtype), normal(*kernel, dtype=dtype)

    def passes(kernels: tf_kernels.PlainKernels) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([values, weights])
            outputs = kernels.convolution(values, weights, (1, 1, 1), "valid")
        return [outputs, *tape.gradient(outputs, [values, weights], output_gradients=outputs)]

    return Comparison(
        f"{name}, {dtype.name}, three passes",
        lambda: passes(tf_kernels.PlainKernels()),
        lambda: passes(tf_kernels.TfCpuKernels()),
    )


def enlarged_convolution(
    name: str,
    batch: int,
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    factors: tuple[int, ...],
    dtype: tf.DType,
) -> Comparison:
    """A convolution after up-sampling by `factors`, with both gradients."""
    values, weights = normal(batch, *sizes, kernel[-2], dtype=dtype), normal(*kernel, dtype=dtype)
    upsampling = keras.layers.UpSampling3D(factors, dtype=dtype.name)

    def plain(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        return tf_kernels.PlainKernels().convolution(
            upsampling(values), weights, (1, 1, 1), "valid"
        )

    def ours(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        return tf_kernels.TfCpuKernels().enlarged_convolution(values, weights, factors)

    def passes(function: Callable[..., tf.Tensor]) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([values, weights])
            outputs = function(values, weights)
        return [outputs, *tape.gradient(outputs, [values, weights], output_gradients=outputs)]

    return Comparison(
        f"{name}, enlarged by {factors}, {dtype.name}, three passes",
        lambda: passes(plain),
        lambda: passes(ours),
    )


def shower_layers(batch: int) -> list[Comparison]:
    """Layers of CERN's 3DGAN, reduced to 17 × 17 × 25 cells and 4 channels."""
    bfloat16, float32 = tf.bfloat16, tf.float32
    return [
        volume_convolution(
            "D's first convolution, 1 to 4 channels", batch, (21, 22, 30), (5, 6, 6, 1, 4), bfloat16
        ),
        volume_convolution(
            "D's second, 4 to 4 channels", batch, (17, 17, 27), (5, 6, 6, 4, 4), bfloat16
        ),
        volume_convolution(
            "G's third, 4 to 4 channels", batch, (20, 20, 40), (4, 4, 6, 4, 4), bfloat16
        ),
        *(
            enlarged_convolution(
                "G's first, 4 to 4 channels", batch, (4, 4, 8), (6, 6, 8, 4, 4), (5, 5, 6), dtype
            )
            for dtype in (bfloat16, float32)
        ),
    ]


def dcgan_layers(batch: int) -> list[Comparison]:
    """Layers of Table 1."""
    return [
        filter_gradient(batch, 1, 7, 128, 256),
        filter_gradient(batch, 2, 14, 64, 128),
        one_channel_convolution(batch),
        batch_norm(batch),
        spectral_convolution("transposed convolution", batch, 1, 7, (128, 256)),
        spectral_convolution("transposed convolution", batch, 2, 14, (64, 128)),
        spectral_convolution("convolution", batch, 2, 14, (64, 128)),
    ]


def pix2pix_layers(batch: int) -> list[Comparison]:
    """Innermost layers of small Pix2Pix on tiles of 64 pixels, and its logits, always float32."""
    layers = [
        ("down_4, 4 × 4 to 2 × 2 pixels", 4, (128, 128), False),
        ("down_5, 2 × 2 to 1 pixel", 2, (128, 128), False),
        ("up_5, 1 to 2 × 2 pixels", 1, (128, 128), True),
        ("up_4, 2 × 2 to 4 × 4 pixels", 2, (128, 256), True),
    ]
    convolutions = [
        image_convolution(name, batch, size, channels, dtype, transposed)
        for name, size, channels, transposed in layers
        for dtype in (tf.bfloat16, tf.float32)
    ]
    return [*convolutions, logit_convolution(batch)]


def image_convolution(
    name: str, batch: int, size: int, channels: tuple[int, int], dtype: tf.DType, transposed: bool
) -> Comparison:
    """A 4 × 4 convolution of images with stride 2, or its transpose, with both gradients.

    `channels`: of the kernel.
    """
    images = normal(batch, size, size, channels[1 if transposed else 0], dtype=dtype)
    weights = normal(4, 4, *channels, dtype=dtype)

    def passes(kernels: tf_kernels.PlainKernels) -> list[tf.Tensor]:
        layer = kernels.transposed_convolution if transposed else kernels.convolution
        with tf.GradientTape() as tape:
            tape.watch([images, weights])
            outputs = layer(images, weights, (2, 2), "same")
        return [outputs, *tape.gradient(outputs, [images, weights], output_gradients=outputs)]

    return Comparison(
        f"{name}, {dtype.name}, three passes",
        lambda: passes(tf_kernels.PlainKernels()),
        lambda: passes(tf_kernels.TfCpuKernels()),
    )


def logit_convolution(batch: int) -> Comparison:
    """The discriminator's last convolution."""
    images, weights = (
        normal(batch, 15, 15, 64, dtype=tf.float32),
        normal(4, 4, 64, 1, dtype=tf.float32),
    )

    def passes(kernels: tf_kernels.PlainKernels) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([images, weights])
            outputs = kernels.convolution(images, weights, (1, 1), ((1, 1), (1, 1)))
        return [outputs, *tape.gradient(outputs, [images, weights], output_gradients=outputs)]

    return Comparison(
        "logits, 15 × 15 pixels, 64 to 1 channel, float32, three passes",
        lambda: passes(tf_kernels.PlainKernels()),
        lambda: passes(tf_kernels.TfCpuKernels()),
    )


def batch_norm(batch: int) -> Comparison:
    """Batch norm of 7 × 7 images with 128 channels: Keras' layer, and fused."""
    values, gamma, beta = normal(batch, 7, 7, 128), tf.ones([128]), tf.zeros([128])
    layer = keras.layers.BatchNormalization(dtype="mixed_bfloat16")
    layer.build(values.shape)
    return Comparison(
        "batch norm",
        lambda: layer(values, training=True),
        lambda: tf_kernels.fused_batch_norm(values, gamma, beta, 1e-3)[0],
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Times TensorFlow's operations and ours.")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="processor time of all threads, for a machine with other users",
    )
    parser.add_argument(
        "--showers", action="store_true", help="time the convolutions of CERN's 3DGAN instead"
    )
    parser.add_argument(
        "--pairs", action="store_true", help="time the convolutions of Pix2Pix instead"
    )
    options = parser.parse_args()
    clock = time.process_time if options.cpu_time else time.perf_counter
    layers = shower_layers if options.showers else pix2pix_layers if options.pairs else dcgan_layers
    comparisons = layers(options.batch)
    print(
        table(
            ["What", "Before", "After"],
            [comparison.line(options.calls, clock) for comparison in comparisons],
        )
    )


if __name__ == "__main__":
    main()
