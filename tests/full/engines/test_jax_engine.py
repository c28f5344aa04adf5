"""The JAX engine alone on larger networks and more devices: replicas, and the all-reduces of a
step.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.showers import random_showers
from tests.support.engines.small_engines import (
    assert_close,
    random_images,
)

RATES = ("learning_rate_generator", "learning_rate_discriminator")
MLP: dict[str, Any] = {"optimizer": "sgd", **dict.fromkeys(RATES, 0.1)}


@pytest.mark.parametrize("replicas", [2, 8])
def test_labels_and_energies_are_split_across_replicas_like_images(
    replicas: int, jax: JaxProcess
) -> None:
    showers, options = random_showers(32), {**MLP, "batch_size_global": 16}
    alone, shared = (
        jax("trained_and_probed", showers, (1, 2), {**options, **settings})
        for settings in ({}, {"replicas": replicas, "accumulation_steps": 16 // replicas // 2})
    )
    for result, expected in zip(shared, alone, strict=True):
        assert_close(result, expected, 1e-5)
    of_classes = {f"score/margin/{name}" for name in ("up", "down", "strange")}
    assert set(alone[2]) == {"energy", "gap", "variance", *of_classes}
    assert alone[2]["energy"] == pytest.approx(
        showers.resident["energy"].mean() * 0.01 - 1.0, abs=1e-5
    )


def test_dcgan_step_all_reduces_gradients_once_and_reuses_buffers(jax: JaxProcess) -> None:
    kernels = jax(
        "kernels",
        "dcgan_mnist",
        random_images(40),
        {"replicas": 2, "count_kernels": "yes", "precision": "mixed_bfloat16"},
    )
    assert kernels["exchanges"] == 2, (
        "one for all gradients of a step, one for the numbers of the call"
    )
    assert kernels["hands_over"] == 1
    assert kernels["kernels_before"] > kernels["kernels_after"] > kernels["fusions"] > 0
    plain = jax("kernels", "dcgan_mnist", random_images(40), {})
    assert (plain["operations"] > 100, plain["kernels_after"]) == (True, None)
