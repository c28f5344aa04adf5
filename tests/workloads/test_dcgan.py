"""DCGAN for any images: its networks by size, the fields it reads, and the effect of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Field, Fields, labels, pictures
from gan_runtime.catalog.dcgan import DcganOptions, reads
from gan_runtime.engines.inputs import HostNoise
from gan_runtime.workloads.dcgan import WORKLOAD, Projection

pytestmark = pytest.mark.usefixtures("cores")
CLASSES = ("cat", "dog", "fish")
LABELS = np.arange(6, dtype=np.int32) % 3


def fields(side: int, channels: int, classes: tuple[str, ...] = ()) -> Fields:
    offered = {"images": pictures(side, side, channels)}
    return offered | {"labels": labels(classes)} if classes else offered


def shapes(network: Any, *kinds: str) -> list[tuple[int, ...]]:
    """The output shapes of layers whose names start with one of `kinds`."""
    return [
        tuple(layer.output.shape[1:]) for layer in network.layers if layer.name.startswith(kinds)
    ]


@pytest.fixture(autouse=True)
def plain_float32() -> None:
    """New layers compute in float32 and start from the same weights in every test."""
    import keras

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy("float32")


def test_64_pixel_networks_match_radford_et_al() -> None:
    networks = WORKLOAD.networks(DcganOptions(base_channels=128), fields(64, 3))
    generator, discriminator = networks["generator"], networks["discriminator"]
    assert shapes(generator, "reshape", "up") == [
        (4, 4, 1024),
        (8, 8, 512),
        (16, 16, 256),
        (32, 32, 128),
        (64, 64, 3),
    ]
    assert shapes(discriminator, "conv", "logit") == [
        (32, 32, 128),
        (16, 16, 256),
        (8, 8, 512),
        (4, 4, 1024),
        (1,),
    ]


@pytest.mark.parametrize(
    ("side", "channels", "classes", "norm"),
    [
        (28, 1, (), "none"),
        (32, 3, CLASSES, "batch"),
        (48, 3, CLASSES, "none"),
        (128, 1, (), "batch"),
    ],
)
def test_catalog_counts_weights_and_estimates_activations(
    side: int, channels: int, classes: tuple[str, ...], norm: str
) -> None:
    options, offered = (
        DcganOptions(base_channels=4, discriminator_norm=norm),
        fields(side, channels, classes),
    )
    networks = WORKLOAD.networks(options, offered)
    size = catalog.WORKLOADS["dcgan"].size(options, offered)
    assert size.parameters == sum(network.count_params() for network in networks.values())
    passes = {"generator": 1, "discriminator": 2}
    activations = sum(
        passes[name] * np.prod(layer.output.shape[1:])
        for name, network in networks.items()
        for layer in network.layers
    )
    assert 0.5 < size.activations_per_row / activations < 2
    assert networks["generator"].output.shape[1:] == (side, side, channels)


def test_labels_are_read_where_present_unless_ignored() -> None:
    labelled = fields(64, 3, CLASSES)
    assert set(reads(DcganOptions(), labelled)) == {"images", "labels"}
    assert set(reads(DcganOptions(labels="ignored"), labelled)) == {"images"}
    assert set(reads(DcganOptions(), fields(28, 1))) == {"images"}


@pytest.mark.parametrize(
    ("offered", "reason"),
    [
        ({"energy": Field((), "float32")}, "it has no images, only energy"),
        (fields(30, 1), "its images are 30 × 30 × 1"),
        ({"images": pictures(32, 64, 3)}, "its images are 32 × 64 × 3"),
        (fields(64, 2), "its images are 64 × 64 × 2"),
    ],
)
def test_images_that_do_not_fit_are_refused_with_the_reason(offered: Fields, reason: str) -> None:
    with pytest.raises(DatasetError) as refusal:
        reads(DcganOptions(), offered)
    assert str(refusal.value).startswith(reason)


def test_class_with_another_scale_changes_images_of_the_same_latents() -> None:
    options, offered = DcganOptions(base_channels=4), fields(28, 1, CLASSES)
    networks = WORKLOAD.networks(options, offered)
    latents = np.tile(np.random.default_rng(1).standard_normal((1, 100)).astype(np.float32), (6, 1))
    inputs = {"latents": latents, "labels": LABELS}
    equal_images = np.asarray(
        WORKLOAD.show(options, networks, inputs, HostNoise(0))["class_images"]
    )
    assert np.allclose(equal_images, equal_images[:1]), "new classes begin alike"
    norm = networks["generator"].get_layer("norm_1")
    norm.beta.assign(np.arange(3, dtype=np.float32)[:, None] * np.ones(norm.beta.shape, np.float32))
    arrays = WORKLOAD.show(options, networks, inputs, HostNoise(0))
    images = np.asarray(arrays["class_images"])
    assert np.array_equal(arrays["labels"], LABELS)
    assert np.allclose(images[:3], images[3:], atol=1e-6)
    assert not np.allclose(images[0], images[1])


def test_projection_is_summed_features_times_the_class_vector() -> None:
    projection = Projection(2, dtype="float32")
    features = np.arange(2 * 2 * 1 * 3, dtype=np.float32).reshape(
        2, 2, 1, 3
    )  # sums: (3, 5, 7), (15, 17, 19)
    projection.build([features.shape, (2,)])
    projection.vectors.assign([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]])
    labels_of_rows = np.array([0, 1], np.int32)
    assert np.asarray(projection([features, labels_of_rows])).tolist() == [[17.0], [-2.0]]


def test_grid_has_a_row_per_class_and_columns_share_a_latent() -> None:
    offered = fields(28, 1, CLASSES)
    inputs = WORKLOAD.fixed_inputs(
        DcganOptions(latent_size=5), offered, {}, np.random.RandomState(0), 64
    )
    assert inputs["labels"].tolist() == [0] * 8 + [1] * 8 + [2] * 8
    assert inputs["latents"].shape == (24, 5)
    assert np.array_equal(inputs["latents"][:8], inputs["latents"][8:16])
    assert len(np.unique(inputs["latents"][:8], axis=0)) == 8
    plain = WORKLOAD.fixed_inputs(DcganOptions(), fields(28, 1), {}, np.random.RandomState(0), 64)
    assert {name: array.shape for name, array in plain.items()} == {"latents": (64, 100)}
