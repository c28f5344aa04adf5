"""The gain of our kernels on this machine's CPU: TensorFlow's operation and ours, each timed alone.

In bfloat16, but for the convolutions that are products of spectra, which are so in float32 only;
those with both their gradients.

The shapes are those of Table 1 at batch 256. Each figure is the least of so many calls, which
other processes disturb least. Prints the table of docs/training.md, "What makes it fast".

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
class Compared:
    """`flop`: operations of a call, for a rate; 0: the table shows its time."""

    what: str
    before: Callable[[], Any]
    after: Callable[[], Any]
    flop: int = 0

    def line(self, calls: int, clock: Clock) -> list[str]:
        """The name, before, after."""
        both = (least_seconds(call, calls, clock) for call in (self.before, self.after))
        return [self.what, *(self._words(seconds) for seconds in both)]

    def _words(self, seconds: float) -> str:
        return (
            f"{self.flop / seconds / 1e9:,.0f} GFLOP/s" if self.flop else f"{1e3 * seconds:.1f} ms"
        )


def least_seconds(call: Callable[[], Any], calls: int, clock: Clock) -> float:
    """The fastest of `calls` calls, after two that trace and allocate."""
    compiled = tf.function(call)
    seconds = []
    for _ in range(2 + calls):
        begin = clock()
        compiled()
        seconds.append(clock() - begin)
    return min(seconds[2:])


def numbers(*shape: int, dtype: tf.DType = tf.bfloat16) -> tf.Tensor:
    """Standard normal numbers of this shape."""
    return tf.cast(tf.random.stateless_normal(shape, (1, 2)), dtype)


def filter_gradient(
    batch: int, stride: int, size: int, channels_in: int, channels_out: int
) -> Compared:
    """Of a "same" convolution of `size` × `size` images."""
    small = size // stride
    images, upstream = (
        numbers(batch, size, size, channels_in),
        numbers(batch, small, small, channels_out),
    )
    kernel = numbers(KERNEL, KERNEL, channels_in, channels_out)
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
    return Compared(
        f"filter gradient, stride {stride}, {channels_in} to {channels_out} channels",
        plain,
        lambda: cpu_convolutions.filter_gradient(
            images, upstream, kernel, (stride, stride), "same"
        ),
        flop,
    )


def to_one_channel(batch: int) -> Compared:
    """The generator's last transposed convolution."""
    images, kernel = numbers(batch, 14, 14, 64), numbers(KERNEL, KERNEL, 1, 64)
    ours, plain = tf_kernels.TfCpuKernels(), tf_kernels.PlainKernels()
    return Compared(
        "transposed convolution to one channel",
        lambda: plain.transposed_convolution(images, kernel, (2, 2), "same"),
        lambda: ours.transposed_convolution(images, kernel, (2, 2), "same"),
    )


def by_spectra(
    what: str, batch: int, stride: int, size: int, channels: tuple[int, int]
) -> Compared:
    """A convolution of `size` × `size` images, or its transpose to them, with its gradients
    by images and kernel.
    """
    images = numbers(batch, size, size, channels[0], dtype=tf.float32)
    outcome = numbers(batch, size // stride, size // stride, channels[1], dtype=tf.float32)
    kernel = numbers(KERNEL, KERNEL, *channels, dtype=tf.float32)
    is_transposed = what.startswith("transposed")
    values, upstream = (outcome, images) if is_transposed else (images, outcome)

    def passes(kernels: tf_kernels.PlainKernels) -> list[tf.Tensor]:
        layer = kernels.transposed_convolution if is_transposed else kernels.convolution
        with tf.GradientTape() as tape:
            tape.watch([values, kernel])
            outputs = layer(values, kernel, (stride, stride), "same")
        return [outputs, *tape.gradient(outputs, [values, kernel], output_gradients=upstream)]

    between = channels[::-1] if is_transposed else channels
    return Compared(
        f"{what}, stride {stride}, {between[0]} to {between[1]} channels, float32, three passes",
        lambda: passes(tf_kernels.PlainKernels()),
        lambda: passes(tf_kernels.TfCpuKernels(spectral_saving=0.0)),  # even where it is slower
    )


def volumes(
    what: str, batch: int, sizes: tuple[int, ...], kernel: tuple[int, ...], dtype: tf.DType
) -> Compared:
    """A "valid" convolution of volumes with its gradients by volumes and kernel.

    `kernel`: taps, channels in and out.
    """
    values, weights = numbers(batch, *sizes, kernel[-2], dtype=dtype), numbers(*kernel, dtype=dtype)

    def passes(kernels: tf_kernels.PlainKernels) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([values, weights])
            outputs = kernels.convolution(values, weights, (1, 1, 1), "valid")
        return [outputs, *tape.gradient(outputs, [values, weights], output_gradients=outputs)]

    return Compared(
        f"{what}, {dtype.name}, three passes",
        lambda: passes(tf_kernels.PlainKernels()),
        lambda: passes(tf_kernels.TfCpuKernels()),
    )


def enlarged(
    what: str,
    batch: int,
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    factors: tuple[int, ...],
    dtype: tf.DType,
) -> Compared:
    """A convolution of volumes whose cells are repeated `factors` times along the axes, with
    both gradients.
    """
    values, weights = numbers(batch, *sizes, kernel[-2], dtype=dtype), numbers(*kernel, dtype=dtype)
    upsampling = keras.layers.UpSampling3D(factors, dtype=dtype.name)

    def plainly(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
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

    return Compared(
        f"{what}, enlarged by {factors}, {dtype.name}, three passes",
        lambda: passes(plainly),
        lambda: passes(ours),
    )


def of_showers(batch: int) -> list[Compared]:
    """Layers of CERN's 3DGAN, cut down to 17 × 17 × 25 cells and 4 channels."""
    halves, whole = tf.bfloat16, tf.float32
    return [
        volumes(
            "D's first convolution, 1 to 4 channels", batch, (21, 22, 30), (5, 6, 6, 1, 4), halves
        ),
        volumes("D's second, 4 to 4 channels", batch, (17, 17, 27), (5, 6, 6, 4, 4), halves),
        volumes("G's third, 4 to 4 channels", batch, (20, 20, 40), (4, 4, 6, 4, 4), halves),
        *(
            enlarged(
                "G's first, 4 to 4 channels", batch, (4, 4, 8), (6, 6, 8, 4, 4), (5, 5, 6), dtype
            )
            for dtype in (halves, whole)
        ),
    ]


def of_digits(batch: int) -> list[Compared]:
    """Layers of Table 1."""
    return [
        filter_gradient(batch, 1, 7, 128, 256),
        filter_gradient(batch, 2, 14, 64, 128),
        to_one_channel(batch),
        batch_norm(batch),
        by_spectra("transposed convolution", batch, 1, 7, (128, 256)),
        by_spectra("transposed convolution", batch, 2, 14, (64, 128)),
        by_spectra("convolution", batch, 2, 14, (64, 128)),
    ]


def of_pairs(batch: int) -> list[Compared]:
    """Innermost layers of Pix2Pix, small, tiles of 64 pixels; and its logits, which are
    float32 in both formats.
    """
    layers = [
        ("down_4, 4 × 4 to 2 × 2 pixels", 4, (128, 128), False),
        ("down_5, 2 × 2 to 1 pixel", 2, (128, 128), False),
        ("up_5, 1 to 2 × 2 pixels", 1, (128, 128), True),
        ("up_4, 2 × 2 to 4 × 4 pixels", 2, (128, 256), True),
    ]
    halved = [
        pictures(what, batch, size, channels, dtype, transposed)
        for what, size, channels, transposed in layers
        for dtype in (tf.bfloat16, tf.float32)
    ]
    return [*halved, logits(batch)]


def pictures(
    what: str, batch: int, size: int, channels: tuple[int, int], dtype: tf.DType, transposed: bool
) -> Compared:
    """A 4 × 4 convolution of images with stride 2, or its transpose, with both gradients.

    `channels`: of the kernel.
    """
    images = numbers(batch, size, size, channels[1 if transposed else 0], dtype=dtype)
    weights = numbers(4, 4, *channels, dtype=dtype)

    def passes(kernels: tf_kernels.PlainKernels) -> list[tf.Tensor]:
        layer = kernels.transposed_convolution if transposed else kernels.convolution
        with tf.GradientTape() as tape:
            tape.watch([images, weights])
            outputs = layer(images, weights, (2, 2), "same")
        return [outputs, *tape.gradient(outputs, [images, weights], output_gradients=outputs)]

    return Compared(
        f"{what}, {dtype.name}, three passes",
        lambda: passes(tf_kernels.PlainKernels()),
        lambda: passes(tf_kernels.TfCpuKernels()),
    )


def logits(batch: int) -> Compared:
    """The discriminator's last convolution."""
    images, weights = (
        numbers(batch, 15, 15, 64, dtype=tf.float32),
        numbers(4, 4, 64, 1, dtype=tf.float32),
    )

    def passes(kernels: tf_kernels.PlainKernels) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([images, weights])
            outputs = kernels.convolution(images, weights, (1, 1), ((1, 1), (1, 1)))
        return [outputs, *tape.gradient(outputs, [images, weights], output_gradients=outputs)]

    return Compared(
        "logits, 15 × 15 pixels, 64 to 1 channel, float32, three passes",
        lambda: passes(tf_kernels.PlainKernels()),
        lambda: passes(tf_kernels.TfCpuKernels()),
    )


def batch_norm(batch: int) -> Compared:
    """Of 7 × 7 images with 128 channels, as Keras writes it and fused."""
    values, gamma, beta = numbers(batch, 7, 7, 128), tf.ones([128]), tf.zeros([128])
    layer = keras.layers.BatchNormalization(dtype="mixed_bfloat16")
    layer.build(values.shape)
    return Compared(
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
        help="time all threads together, on a machine with other users",
    )
    parser.add_argument(
        "--showers", action="store_true", help="time the convolutions of CERN's 3DGAN instead"
    )
    parser.add_argument(
        "--pairs", action="store_true", help="time the convolutions of Pix2Pix instead"
    )
    options = parser.parse_args()
    clock = time.process_time if options.cpu_time else time.perf_counter
    of = of_showers if options.showers else of_pairs if options.pairs else of_digits
    compared = of(options.batch)
    print(
        table(
            ["What", "Before", "After"],
            [comparison.line(options.calls, clock) for comparison in compared],
        )
    )


if __name__ == "__main__":
    main()
