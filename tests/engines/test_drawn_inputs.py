"""Inputs drawn on request: reproducible by seed and class, and the engine's outputs for them."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.catalog.dcgan import DcganOptions
from gan_runtime.data.contract import picture_set
from gan_runtime.engines.inputs import drawn_inputs, labels_of
from gan_runtime.workloads import dcgan, mlp_gan
from tests.support.engines.conditional_gan import CONDITIONAL_GAN
from tests.support.engines.showers import ENERGY, random_showers
from tests.support.engines.small_engines import MakeEngine, random_images

pytestmark = pytest.mark.usefixtures("cores")  # the workloads load Keras
CLASSES = ("cat", "dog", "fish")
LABELLED = picture_set(
    "pets", random_images(40), "test", labels=np.arange(40, dtype=np.int32) % 3, classes=CLASSES
)


def test_classes_are_drawn_equally_often_in_order() -> None:
    assert labels_of(8, 3).tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    assert labels_of(4, 3, label=2).tolist() == [2, 2, 2, 2]
    assert labels_of(2, 3).tolist() == [0, 2], "of more classes than rows a row each, evenly spread"
    of_many = labels_of(256, 1_000)
    assert (len(set(of_many.tolist())), of_many[0], of_many[-1]) == (20, 0, 999)


def test_seed_gives_the_same_latents_for_any_class_and_count() -> None:
    options = DcganOptions(latent_size=5)

    def inputs(count: int, seed: int, label: int | None = None) -> dict[str, np.ndarray]:
        return drawn_inputs(dcgan.WORKLOAD, options, LABELLED, count, seed, label)

    dogs, all_classes, more, another_seed = (
        inputs(6, 1, label=1),
        inputs(6, 1),
        inputs(50, 1),
        inputs(6, 2),
    )
    assert dogs["labels"].tolist() == [1] * 6
    assert all_classes["labels"].tolist() == [0, 0, 1, 1, 2, 2]
    assert (dogs["latents"].shape, dogs["latents"].dtype) == ((6, 5), np.float32)
    assert np.array_equal(dogs["latents"], all_classes["latents"])
    assert np.array_equal(dogs["latents"], more["latents"][:6])
    assert not np.array_equal(dogs["latents"], another_seed["latents"])
    assert len(np.unique(more["latents"], axis=0)) == 50


def test_unconditional_networks_get_only_latents() -> None:
    latents = drawn_inputs(
        mlp_gan.WORKLOAD, None, picture_set("p", random_images(3), "test"), 200, 0
    )
    assert {name: array.shape for name, array in latents.items()} == {
        "latents": (200, mlp_gan.LATENT_SIZE)
    }
    assert abs(latents["latents"].mean()) < 0.05
    assert abs(latents["latents"].std() - 1) < 0.05


def test_other_conditions_repeat_held_out_rows() -> None:
    showers = random_showers(4)
    inputs = drawn_inputs(CONDITIONAL_GAN, None, showers, 6, 0, label=2)
    energies = showers.read_held_out(4)[ENERGY] * np.float32(0.01) - np.float32(1.0)
    assert np.allclose(inputs[ENERGY], energies[[0, 1, 2, 3, 0, 1]])
    assert inputs["labels"].tolist() == [2] * 6


def test_same_seed_and_class_give_the_same_images(make: MakeEngine) -> None:
    engine = make(1, workload=dcgan.WORKLOAD, data=LABELLED, base_channels=4)
    options = DcganOptions(base_channels=4)

    def images_of(seed: int, label: int | None) -> dict[str, np.ndarray]:
        return engine.generate(drawn_inputs(dcgan.WORKLOAD, options, LABELLED, 70, seed, label))

    first, again, other = images_of(1, 2), images_of(1, 2), images_of(2, 2)
    assert first["class_images"].shape == (70, 28, 28, 1)
    assert first["labels"].tolist() == [2] * 70
    assert np.array_equal(first["class_images"], again["class_images"])
    assert np.abs(first["class_images"] - other["class_images"]).max() > 1e-4
