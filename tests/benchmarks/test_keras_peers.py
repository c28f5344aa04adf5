"""The plain Keras peers train the same networks as our runs: same weights and outputs, and a step
that learns.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.image_set import CLASSES, PIXELS
from gan_runtime.base.fields import labels, pictures
from gan_runtime.catalog.dcgan import DcganOptions

pytestmark = pytest.mark.usefixtures("cores")
ROWS = 4
FIELDS = {"images": pictures(PIXELS, PIXELS, 3), "labels": labels(tuple("abcdefghij"))}
NETWORKS = ("generator", "discriminator")


@pytest.fixture(scope="module", autouse=True)
def float32() -> Iterator[None]:
    """Seeds the weights and sets float32, which later tests use as well."""
    import keras

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy("float32")
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture(scope="module")
def both(cores: int, float32: None) -> dict[str, tuple[Any, Any]]:  # noqa: ARG001
    """Pairs of our network and the peer network by name, both with the peer's weights."""
    from benchmarks import keras_conditional
    from gan_runtime.workloads import dcgan

    ours = dcgan.networks(DcganOptions(), FIELDS)
    peers = dict(zip(NETWORKS, keras_conditional.networks(), strict=True))
    pairs = {name: (ours[name], peer) for name, peer in peers.items()}
    random = np.random.default_rng(1)
    for our_network, peer in pairs.values():
        for weight, its_weight in zip(by_shape(our_network), by_shape(peer), strict=True):
            its_weight.assign(its_weight + 0.1 * random.standard_normal(its_weight.shape))
            weight.assign(its_weight)
    return pairs


def by_shape(network: Any) -> list[Any]:
    """The trainable weights sorted by shape; equal shapes keep the order of the layers."""
    return sorted(network.trainable_variables, key=lambda weight: tuple(weight.shape))


def inputs() -> dict[str, list[np.ndarray]]:
    """A batch for each network."""
    random = np.random.default_rng(2)
    classes = random.integers(0, CLASSES, ROWS).astype(np.int32)
    latents = random.standard_normal((ROWS, 100)).astype(np.float32)
    images = random.uniform(-1.0, 1.0, (ROWS, PIXELS, PIXELS, 3)).astype(np.float32)
    return {"generator": [latents, classes], "discriminator": [images, classes]}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_conditional_peer_has_the_same_weight_shapes_as_our_networks(
    both: dict[str, tuple[Any, Any]], name: str
) -> None:
    ours, peer = (by_shape(network) for network in both[name])
    assert [weight.shape for weight in ours] == [weight.shape for weight in peer]
    assert sum(math.prod(weight.shape) for weight in peer) > 4_000_000


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    "training", [False, True]
)  # in this order: training changes the batch norm statistics
def test_the_conditional_peer_matches_the_outputs_of_our_networks(
    both: dict[str, tuple[Any, Any]], name: str, training: bool
) -> None:
    ours, peer = (np.asarray(network(inputs()[name], training=training)) for network in both[name])
    assert np.ptp(peer) > 0.1
    assert np.abs(ours - peer).max() < 1e-4 * np.abs(peer).max()


@pytest.mark.parametrize("name", NETWORKS)
def test_the_class_changes_the_conditional_peer_output(
    both: dict[str, tuple[Any, Any]], name: str
) -> None:
    peer, (values, classes) = both[name][1], inputs()[name]
    change = np.asarray(peer([values, classes])) - np.asarray(
        peer([values, (classes + 1) % CLASSES])
    )
    assert np.abs(change).reshape(ROWS, -1).max(axis=1).min() > 1e-3


def small_networks() -> tuple[Any, Any]:
    """Replacements for the networks of Table 1, which take seconds to trace."""
    import keras
    from keras import layers

    generator = [keras.Input((100,)), layers.Dense(784, "tanh"), layers.Reshape((28, 28, 1))]
    discriminator = [keras.Input((28, 28, 1)), layers.Flatten(), layers.Dense(1)]
    return keras.Sequential(generator), keras.Sequential(discriminator)


@pytest.mark.parametrize("module", ["keras_loop", "keras_conditional"])
def test_a_peer_step_updates_every_weight_of_both_networks(
    monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    peer = importlib.import_module(f"benchmarks.{module}")
    networks = small_networks() if module == "keras_loop" else peer.networks()
    monkeypatch.setattr(peer, "networks", lambda: networks)
    weights = [weight for network in networks for weight in network.trainable_variables]
    before = [np.array(weight) for weight in weights]
    step = peer.make_step("float32", ROWS)
    assert math.isfinite(step())
    assert math.isfinite(step())
    moved = [
        np.abs(np.array(weight) - old).max() for weight, old in zip(weights, before, strict=True)
    ]
    assert min(moved) > 1e-6
