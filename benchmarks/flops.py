"""Floating-point operations of a training step per image, from the shapes of a workload's layers.

A multiplication and an addition count as 2. A "same" convolution counts in full at the border. Only
layers with a kernel count: batch norm, activations, losses and the optimizer are below 1%.
A layer has three passes with equal operations:

    forward            outputs from inputs
    kernel gradient    from inputs and upstream gradient
    input gradient     from kernel and upstream gradient; not for the first layer of a network,
                       unless its input needs a gradient

A step that updates both networks from one forward pass (workloads/pair.py, updates=together) has:

    G                  forward, kernel and input gradients
    D on real images   forward, kernel and input gradients of D's loss
    D on fake images   forward, kernel and input gradients down to the image: one backward pass
                       serves D's loss and G's

python -m benchmarks.flops dcgan_mnist        prints {"flop_per_image": …}
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gan_runtime.engines.task import workload_of
from gan_runtime.spec import RunSpec


@dataclass(frozen=True)
class LayerShape:
    """A layer with a kernel.

    `positions`: applications of the kernel: output pixels of a convolution, INPUT pixels of a
    transposed one, 1 for a dense layer.
    """

    name: str
    kernel: tuple[int, ...]
    positions: int

    @property
    def flop(self) -> int:
        """Operations of one pass for one image."""
        return 2 * math.prod(self.kernel) * self.positions


def layer_shapes(network: Any) -> list[LayerShape]:
    """The layers with a kernel of a built keras.Sequential, from input to output."""
    return [_shape(layer) for layer in network.layers if hasattr(layer, "kernel")]


def _shape(layer: Any) -> LayerShape:
    transposed = "Transpose" in "".join(base.__name__ for base in type(layer).__mro__)
    pixels = (layer.input if transposed else layer.output).shape[1:-1]
    return LayerShape(layer.name, tuple(layer.kernel.shape), math.prod(pixels))


def step_flop_per_image(
    generator: Sequence[LayerShape], discriminator: Sequence[LayerShape]
) -> int:
    """Operations of all passes in the table above."""
    g, d = (sum(layer.flop for layer in network) for network in (generator, discriminator))
    return (3 * g - generator[0].flop) + (3 * d - discriminator[0].flop) + 3 * d


def of_workload(name: str) -> int:
    """FLOP per image and step of a workload. Loads Keras."""
    spec = RunSpec.parse({"workload": name})
    networks = workload_of(spec).networks(spec.of_workload, {})
    return step_flop_per_image(
        layer_shapes(networks["generator"]), layer_shapes(networks["discriminator"])
    )


if __name__ == "__main__":
    print(json.dumps({"flop_per_image": of_workload(sys.argv[1])}))
