"""The losses that make up a surface, on real networks."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.data.contract import picture_set
from gan_runtime.evaluation.loss_landscape import Landscape
from gan_runtime.spec import RunSpec
from gan_runtime.workloads import dcgan_mnist, mlp_gan
from gan_runtime.workloads.contract import Workload

IMAGES = np.random.RandomState(0).randint(0, 256, (16, 28, 28, 1)).astype(np.uint8)

pytestmark = pytest.mark.usefixtures("cores")  # before TensorFlow starts its devices


def landscape(workload: Workload) -> Landscape:
    return Landscape(
        RunSpec.parse({"precision": "float32"}), workload, picture_set("noise", IMAGES, "test")
    )


def test_transposed_convolutions_have_another_filter_axis() -> None:
    land = landscape(dcgan_mnist.WORKLOAD)
    assert land.filter_axes("generator") == {
        "generator/generator/dense/kernel": -1,
        "generator/generator/up_1/kernel": -2,
        "generator/generator/up_2/kernel": -2,
        "generator/generator/up_3/kernel": -2,
    }
    assert set(land.filter_axes("discriminator").values()) == {-1}


def test_losses_of_a_guessing_discriminator_are_log_2_and_2_log_2() -> None:
    land = landscape(mlp_gan.WORKLOAD)
    silent = {
        f"discriminator/{variable.path}": np.zeros(variable.shape, np.float32)
        for variable in land.networks["discriminator"].variables
    }
    land.place(silent)
    assert land.loss("generator") == pytest.approx(np.log(2.0), abs=1e-6)
    assert land.loss("discriminator") == pytest.approx(2.0 * np.log(2.0), abs=1e-6)


def test_moving_one_network_leaves_the_other_unchanged() -> None:
    land = landscape(mlp_gan.WORKLOAD)
    before = [variable.numpy() for variable in land.networks["discriminator"].variables]
    land.place(
        {
            f"generator/{variable.path}": variable.numpy() + 1.0
            for variable in land.networks["generator"].variables
        }
    )
    for variable, value in zip(land.networks["discriminator"].variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_moved_generator_changes_both_losses() -> None:
    land = landscape(mlp_gan.WORKLOAD)
    before = land.loss("discriminator"), land.loss("generator")
    assert (land.loss("discriminator"), land.loss("generator")) == before
    land.place(
        {
            f"generator/{variable.path}": variable.numpy() + 0.5
            for variable in land.networks["generator"].variables
        }
    )
    assert land.loss("discriminator") != before[0]
    assert land.loss("generator") != before[1]
