"""The JAX engine by itself, in a process of its own: replicas, resuming, noise, precision, kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engines.jax_process import JaxProcess
from tests.engines.small_engines import assert_close, assert_equal, random_images

RATES = ("learning_rate_generator", "learning_rate_discriminator")
MLP: dict[str, Any] = {"optimizer": "sgd", **dict.fromkeys(RATES, 0.1)}


@pytest.mark.parametrize(
    ("workload", "options"),
    [
        ("mlp_gan", {**MLP, "clip_norm": 0.1}),
        ("dcgan_mnist", {"optimizer": "sgd", "batch_norm": "synchronised", **dict.fromkeys(RATES, 0.01)}),
    ],
)
def test_eight_devices_compute_what_one_computes(workload: str, options: dict[str, Any], jax: JaxProcess) -> None:
    images = random_images(8)  # with more, each device's gradients at the end of an epoch are of images of its own share
    one = jax("trained_without_dropout", workload, images, (1, 2), options)
    eight = jax("trained_without_dropout", workload, images, (1, 2), {**options, "replicas": 8})
    assert_close(eight[0], one[0], 1e-5)
    assert_close(eight[1], one[1], 1e-5)
    probed = [{name: np.asarray(value) for name, value in found[2].items()} for found in (eight, one)]
    if workload == "dcgan_mnist":  # how far images differ is looked at with the batch norm of each device's own images
        assert all(scores.pop("spread_fake") >= 0.0 for scores in probed)
    assert_close(*probed, 1e-3)


def test_parts_of_a_batch_add_up_to_the_batch(jax: JaxProcess) -> None:
    whole, parts = (jax("trained", "mlp_gan", random_images(40), (3,), {**MLP, "accumulation_steps": many}) for many in (1, 4))
    assert_close(parts[0], whole[0], 1e-5)
    assert_close(parts[1], whole[1], 1e-5)


def test_a_resumed_run_ends_where_a_straight_one_does(jax: JaxProcess) -> None:
    options = {"replicas": 2, "ema_decay": 0.9}
    straight, resumed = jax("resumed", "dcgan_mnist", random_images(24), options, 2, 3)  # over the end of an epoch of 3 steps
    assert straight["step"] == 5
    assert_equal(resumed, straight)


def test_latents_do_not_depend_on_the_replicas_and_masks_do(jax: JaxProcess) -> None:
    one, four = jax("noise", 1, 0.3), jax("noise", 4, 0.3)
    assert np.array_equal(one["normal"], four["normal"])
    assert len(np.unique(one["normal"])) == 24
    assert abs(one["many"].mean()) < 0.02
    assert abs(one["many"].std() - 1.0) < 0.02
    masks = [one[f"mask {step} {share}"] for step in (1, 2) for share in (0, 1)]
    assert all(np.isclose(np.unique(mask), [0.0, 256 / 179]).all() for mask in masks), "what is kept is scaled up"
    assert all(abs((mask > 0).mean() - 179 / 256) < 0.02 for mask in masks)
    assert len({mask.tobytes() for mask in masks}) == 4


def test_a_rate_too_small_for_a_byte_drops_nothing(jax: JaxProcess) -> None:
    assert (jax("noise", 1, 0.001)["mask 1 0"] == 1.0).all()


@pytest.mark.parametrize("kind", ["plain", "cpu"])
@pytest.mark.parametrize(("shape", "stride"), [((7, 6, 4), 1), ((14, 8, 3), 2), ((14, 1, 4), 2)])
def test_kernels_compute_what_the_layers_of_keras_compute(
    kind: str, shape: tuple[int, int, int], stride: int, jax: JaxProcess
) -> None:
    for name, pairs in jax("layers_and_kernels", kind, shape, stride).items():
        for what, (of_keras, ours) in zip(("values", "by images", "by kernel", "second"), pairs, strict=True):
            assert np.abs(of_keras - ours).max() <= 1e-4 * max(1.0, np.abs(of_keras).max()), f"{name}: {what}"


def test_bfloat16_follows_float32(jax: JaxProcess) -> None:
    wide, narrow = (
        jax("trained", "mlp_gan", random_images(40), (2,), {"precision": name}) for name in ("float32", "mixed_bfloat16")
    )
    assert_close(narrow[0], wide[0], 0.02)
    assert {array.dtype.name for name, array in narrow[1].items() if name.startswith("generator/")} == {"float32"}


def test_rounded_gradients_change_the_training_of_several_replicas_a_little(jax: JaxProcess) -> None:
    wide, narrow = (
        jax("trained", "mlp_gan", random_images(40), (3,), {**MLP, "replicas": 2, "all_reduce_type": name})
        for name in ("float32", "bfloat16")
    )
    assert_close(narrow[0], wide[0], 0.02)
    assert narrow[0]["loss_generator"][-1] != wide[0]["loss_generator"][-1]


def test_an_overflow_is_skipped_by_all_replicas_and_lowers_the_loss_scale(jax: JaxProcess) -> None:
    numbers, before, after = jax("overflowed", random_images(40), 2.0**60)
    assert numbers["loss_scale_generator"].tolist() == [2.0**60, 2.0**59]
    weights = [name for name in before if name.startswith(("generator/", "discriminator/"))]
    assert all(np.array_equal(before[name], after[name]) for name in weights)
    numbers, before, after = jax("overflowed", random_images(40), 2.0**10)
    assert numbers["loss_scale_generator"].tolist() == [2.0**10, 2.0**10]
    assert not any(np.array_equal(before[name], after[name]) for name in weights)


def test_lowered_rates_hold_from_the_next_call_on(jax: JaxProcess) -> None:
    assert jax("slowed", random_images(40))["learning_rate_generator"].tolist() == pytest.approx([1e-4, 5e-5])


def test_a_step_exchanges_its_gradients_once_and_its_buffers_are_reused(jax: JaxProcess) -> None:
    found = jax("kernels", random_images(40), {"replicas": 2, "count_kernels": "yes", "precision": "mixed_bfloat16"})
    assert found["exchanges"] == 2, "one for all gradients of a step, one for the numbers of the call"
    assert found["hands_over"] == 1
    assert found["kernels_before"] > found["kernels_after"] > found["fusions"] > 0
    plain = jax("kernels", random_images(40), {})
    assert (plain["operations"] > 100, plain["kernels_after"]) == (True, None)
