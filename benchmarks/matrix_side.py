"""The machine's bfloat16 rate as a side: large operations in TensorFlow.

matmul        4096 × 4096 by 4096 × 4096
convolution   forward, 64 images of 28 × 28 × 128 by a kernel of 5 × 5 × 128 × 128, stride 1, "same"

Both are so large that launching them costs nothing, and like a training step they use all cores. A
step of this side is one operation.

python -m benchmarks.matrix_side matmul|convolution        serves turns on standard input and output
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from benchmarks.step_timer import time_steps
from benchmarks.turns import serve

SIDE = 4096
IMAGES, PIXELS, KERNEL, CHANNELS = 64, 28, 5, 128
FLOP = {
    "matmul": 2 * SIDE**3,
    "convolution": 2 * IMAGES * PIXELS**2 * KERNEL**2 * CHANNELS**2,
}
TITLES = {
    "matmul": f"matmul, {SIDE} × {SIDE} by {SIDE} × {SIDE}",
    "convolution": (
        f"convolution, {IMAGES} images of {PIXELS} × {PIXELS} × {CHANNELS}, kernel {KERNEL} ×"
        f" {KERNEL}, {CHANNELS} channels out"
    ),
}


def operation(name: str) -> Callable[[], object]:
    """A call that runs FLOP[name] operations and waits for them."""
    import tensorflow as tf

    def normal(*shape: int) -> tf.Tensor:
        return tf.cast(tf.random.normal(shape), tf.bfloat16)

    if name == "matmul":
        left, right = normal(SIDE, SIDE), normal(SIDE, SIDE)
        return lambda: tf.matmul(left, right)
    images, kernel = (
        normal(IMAGES, PIXELS, PIXELS, CHANNELS),
        normal(KERNEL, KERNEL, CHANNELS, CHANNELS),
    )
    return lambda: tf.nn.conv2d(images, kernel, 1, "SAME")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measures the machine's bfloat16 rate.")
    parser.add_argument("operation", choices=FLOP)
    call = operation(parser.parse_args().operation)
    serve(lambda steps: time_steps(call, steps))
