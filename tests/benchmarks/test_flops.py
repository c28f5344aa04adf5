"""FLOPs of the Table 1 networks, counted manually and from the real networks."""

from __future__ import annotations

import pytest

from benchmarks import flops
from benchmarks.flops import LayerShape, layer_shapes, step_flop_per_image
from gan_runtime.workloads import dcgan_mnist

pytestmark = pytest.mark.usefixtures("cores")

# 2 · kernel height · kernel width · channels in · channels out · positions
GENERATOR = {
    "dense": 2 * 100 * 12_544,
    "up_1": 2 * 5 * 5 * 256 * 128 * 7 * 7,
    "up_2": 2 * 5 * 5 * 128 * 64 * 7 * 7,
    "up_3": 2 * 5 * 5 * 64 * 1 * 14 * 14,
}
DISCRIMINATOR = {
    "conv_1": 2 * 5 * 5 * 1 * 64 * 14 * 14,
    "conv_2": 2 * 5 * 5 * 64 * 128 * 7 * 7,
    "logit": 2 * 6_272 * 1,
}


def test_layer_flops_of_table_1_match_a_manual_count() -> None:
    networks = dcgan_mnist.networks()
    assert {layer.name: layer.flop for layer in layer_shapes(networks["generator"])} == GENERATOR
    assert {
        layer.name: layer.flop for layer in layer_shapes(networks["discriminator"])
    } == DISCRIMINATOR


def test_a_table_1_step_takes_432_million_operations_per_image() -> None:
    # G: 103,488,000 forward; three passes without the input gradient of the dense layer:
    # 307,955,200. D: 20,710,144 forward; three passes on real images without the input gradient of
    # conv_1: 61,503,232; three full passes on fake images.
    assert (
        flops.of_workload("dcgan_mnist") == 307_955_200 + 61_503_232 + 3 * 20_710_144 == 431_588_864
    )


def test_the_first_layer_of_a_network_needs_no_input_gradient() -> None:
    one_layer = [LayerShape("dense", (3, 5), 1)]  # 30 operations
    # G: forward and kernel. D on real images: forward and kernel; on fake images also the input
    # gradient, for G.
    assert step_flop_per_image(one_layer, one_layer) == 2 * 30 + 2 * 30 + 3 * 30
