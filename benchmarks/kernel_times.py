"""What the kernels of our own gain on this machine's CPU: TensorFlow's operation and ours, each alone.

In bfloat16, but for the convolutions that are products of spectra, which are so in float32 only; those with both their gradients.

The shapes are those of Table 1 at batch 256. Each figure is the least of so many calls, which others at work disturb
least. Prints the table of docs/training.md, "What makes it fast".

python -m benchmarks.kernel_times [--batch 256] [--calls 20] [--cpu-time]
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
from gan_runtime.engines.tf import kernels as tf_kernels

KERNEL = 5
Clock = Callable[[], float]


@dataclass(frozen=True)
class Compared:
    """`flop`: operations of a call, for a rate; 0: its time is what counts."""

    what: str
    before: Callable[[], Any]
    after: Callable[[], Any]
    flop: int = 0

    def line(self, calls: int, clock: Clock) -> list[str]:
        """What it is, before, after."""
        both = (least_seconds(call, calls, clock) for call in (self.before, self.after))
        return [self.what, *(self._shown(seconds) for seconds in both)]

    def _shown(self, seconds: float) -> str:
        return f"{self.flop / seconds / 1e9:,.0f} GFLOP/s" if self.flop else f"{1e3 * seconds:.1f} ms"


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
    """Standard normal."""
    return tf.cast(tf.random.stateless_normal(shape, (1, 2)), dtype)


def filter_gradient(batch: int, stride: int, size: int, channels_in: int, channels_out: int) -> Compared:
    """Of a "same" convolution of `size` × `size` images."""
    small = size // stride
    images, upstream = numbers(batch, size, size, channels_in), numbers(batch, small, small, channels_out)
    kernel = numbers(KERNEL, KERNEL, channels_in, channels_out)
    strides = [1, stride, stride, 1]

    def plain() -> tf.Tensor:
        return tf.raw_ops.Conv2DBackpropFilter(
            input=images, filter_sizes=kernel.shape, out_backprop=upstream, strides=strides, padding="SAME"
        )

    flop = 2 * batch * small**2 * KERNEL**2 * channels_in * channels_out
    return Compared(
        f"filter gradient, stride {stride}, {channels_in} to {channels_out} channels",
        plain,
        lambda: tf_kernels.filter_gradient(images, upstream, kernel, (stride, stride), "same"),
        flop,
    )


def to_one_channel(batch: int) -> Compared:
    """The generator's last transposed convolution."""
    images, kernel = numbers(batch, 14, 14, 64), numbers(KERNEL, KERNEL, 1, 64)
    ours, plain = tf_kernels.CpuKernels(), tf_kernels.PlainKernels()
    return Compared(
        "transposed convolution to one channel",
        lambda: plain.transposed_convolution(images, kernel, (2, 2), "same"),
        lambda: ours.transposed_convolution(images, kernel, (2, 2), "same"),
    )


def by_spectra(what: str, batch: int, stride: int, size: int, channels: tuple[int, int]) -> Compared:
    """A convolution of `size` × `size` images, or its transpose to them, with its gradients by images and kernel."""
    images = numbers(batch, size, size, channels[0], dtype=tf.float32)
    outcome = numbers(batch, size // stride, size // stride, channels[1], dtype=tf.float32)
    kernel = numbers(KERNEL, KERNEL, *channels, dtype=tf.float32)
    is_transposed = what.startswith("transposed")
    values, upstream = (outcome, images) if is_transposed else (images, outcome)

    def passes(kernels: tf_kernels.PlainKernels) -> list[tf.Tensor]:
        layer = kernels.transposed_convolution if is_transposed else kernels.convolution
        with tf.GradientTape() as tape:
            tape.watch([values, kernel])
            found = layer(values, kernel, (stride, stride), "same")
        return [found, *tape.gradient(found, [values, kernel], output_gradients=upstream)]

    between = channels[::-1] if is_transposed else channels
    return Compared(
        f"{what}, stride {stride}, {between[0]} to {between[1]} channels, float32, three passes",
        lambda: passes(tf_kernels.PlainKernels()),
        lambda: passes(tf_kernels.CpuKernels(spectral_saving=0.0)),  # also where it does not pay
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
        "--cpu-time", action="store_true", help="of all threads together, for a machine that others use too"
    )
    given = parser.parse_args()
    clock = time.process_time if given.cpu_time else time.perf_counter
    compared = [
        filter_gradient(given.batch, 1, 7, 128, 256),
        filter_gradient(given.batch, 2, 14, 64, 128),
        to_one_channel(given.batch),
        batch_norm(given.batch),
        by_spectra("transposed convolution", given.batch, 1, 7, (128, 256)),
        by_spectra("transposed convolution", given.batch, 2, 14, (64, 128)),
        by_spectra("convolution", given.batch, 2, 14, (64, 128)),
    ]
    print(table(["What", "Before", "After"], [one.line(given.calls, clock) for one in compared]))


if __name__ == "__main__":
    main()
