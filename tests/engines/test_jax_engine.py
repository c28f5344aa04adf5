"""The JAX engine alone, in its own process: replicas, resuming, noise, precision, and kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.engines.claims import assert_eight_devices_compute_what_one_does
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.parity import HINGE, R3GAN
from tests.support.engines.showers import random_showers
from tests.support.engines.small_engines import (
    Streamed,
    assert_close,
    assert_equal,
    assert_moves_alike,
    cosine,
    moved,
    random_images,
    seed_of,
)

RATES = ("learning_rate_generator", "learning_rate_discriminator")
MLP: dict[str, Any] = {"optimizer": "sgd", **dict.fromkeys(RATES, 0.1)}


@pytest.mark.parametrize(
    ("workload", "options"),
    [
        ("tiny", {**MLP, "batch_norm": "synchronised", "clip_norm": 0.1}),
    ],
)
def test_eight_devices_match_one(workload: str, options: dict[str, Any], jax: JaxProcess) -> None:
    assert_eight_devices_compute_what_one_does(workload, random_images(16, 8), options, jax)


@pytest.mark.parametrize("replicas", [1, 2])
def test_accumulated_parts_match_the_whole_batch(replicas: int, jax: JaxProcess) -> None:
    options = {**MLP, "accumulation_steps": 4 // replicas, "replicas": replicas}
    whole, parts = (
        jax("trained", "mlp_gan", random_images(40), (3,), settings) for settings in (MLP, options)
    )
    assert_close(parts[0], whole[0], 1e-5)
    assert_close(parts[1], whole[1], 1e-5)


def test_steps_per_call_do_not_change_results(jax: JaxProcess) -> None:
    """Each step of a call uses the noise of its own step number."""
    at_once, each = (
        jax("trained", "tiny", random_images(24, 8), calls, MLP) for calls in ((4,), (1, 2, 1))
    )
    assert_close(each[0], at_once[0], 1e-6)
    assert_close(each[1], at_once[1], 1e-6)


def test_resumed_run_matches_an_uninterrupted_one(jax: JaxProcess) -> None:
    options = {"replicas": 2, "ema_decay": 0.9}
    straight, resumed = jax(
        "resumed", "tiny", random_images(24, 8), options, 2, 3
    )  # across the end of an epoch of 3 steps
    assert straight["step"] == 5
    assert_equal(resumed, straight)


@pytest.mark.parametrize("replicas", [1, 2])
def test_state_copy_is_unchanged_by_further_training(replicas: int, jax: JaxProcess) -> None:
    """The copy is saved during training."""
    options = {**MLP, "replicas": replicas}
    state, same, later = jax("state_before_and_after", "mlp_gan", random_images(40), 3, options)
    assert_equal(same, state)
    assert any(
        not np.array_equal(later[name], array) for name, array in state.items() if name != "step"
    )


def test_identical_phases_draw_different_noise(jax: JaxProcess) -> None:
    numbers, _ = jax("trained", "conditional", random_showers(16), (2,), MLP)
    draws = [numbers[f"drawn_{place}"] for place in range(4)]
    assert len(np.unique(draws)) == 8, "four phases, two steps"
    assert len(np.unique([numbers["share_0"], numbers["share_1"]])) == 4


def test_streamed_rows_train_exactly_like_resident_ones(jax: JaxProcess) -> None:
    """Bit by bit: across the end of an epoch of 3 steps, in calls of any length, and after a
    resume.
    """
    whole, options = random_showers(50), {"replicas": 2, "steps_per_loop": 4}
    calls = (1, 4, 2)
    (resident_numbers, resident), (numbers, state) = (
        jax("trained", "short_conditional", data, calls, options)
        for data in (whole, Streamed(whole))
    )
    assert_equal(numbers, resident_numbers)
    assert_equal(state, resident)
    straight, resumed = jax("resumed", "short_conditional", Streamed(whole), options, 4, 3)
    assert_equal(straight, resident)
    assert_equal(resumed, resident)


@pytest.mark.parametrize(("workload", "options"), [("tiny", R3GAN), ("spectral", HINGE)])
def test_other_losses_resume_exactly(
    jax: JaxProcess, workload: str, options: dict[str, Any]
) -> None:
    straight, resumed = jax("resumed", workload, random_images(24, 8), options, 2, 1)
    assert_equal(resumed, straight)


def test_generated_rows_of_any_count_start_with_the_sample(jax: JaxProcess) -> None:
    sample, (many, another_seed) = jax("generated", random_showers(16), 70, {"replicas": 8}, 0, 2)
    assert {name: array.shape for name, array in many.items()} == {
        "images": (70, 8, 8, 1),
        "labels": (70,),
    }
    assert_equal({name: array[:64] for name, array in many.items()}, sample)
    assert many["labels"].tolist() == [row % 3 for row in range(70)]
    alone, _ = jax("generated", random_showers(16), 70, {"replicas": 1})
    assert np.abs(alone["images"] - sample["images"]).max() < 1e-5
    grain = another_seed["images"] - many["images"]
    assert 0.1 < grain.std() < 0.2, "the noise of `show` follows the seed of a request"
    assert len(np.unique(grain[:, 0, 0, 0])) == 70


def test_averaged_generator_has_current_batch_norm_statistics(
    jax: JaxProcess,
) -> None:
    options = {**MLP, "ema_decay": 0.9, "replicas": 2}
    (_, begin), (_, state) = (
        jax("trained", "tiny", random_images(24, 8), calls, options) for calls in ((), (2,))
    )
    statistics = [name for name in state if name.startswith("average/") and "moving_" in name]
    assert len(statistics) == 2
    for name in statistics:
        assert np.array_equal(state[name], state[name.replace("average/", "generator/", 1)])
        assert not np.array_equal(state[name], begin[name])


@pytest.mark.parametrize("kind", ["plain", "cpu", "gpu"])
@pytest.mark.parametrize(("shape", "stride"), [((7, 6, 4), 1), ((14, 8, 3), 2), ((14, 1, 4), 2)])
def test_kernels_match_the_keras_layers(
    kind: str, shape: tuple[int, int, int], stride: int, jax: JaxProcess
) -> None:
    for name, pairs in jax("layers_and_kernels", kind, shape, stride).items():
        for what, (of_keras, ours) in zip(
            ("values", "by images", "by kernel", "penalty by images", "penalty by kernel"),
            pairs,
            strict=True,
        ):
            assert np.abs(of_keras - ours).max() <= 1e-4 * max(1.0, np.abs(of_keras).max()), (
                f"{name}: {what}"
            )


@pytest.mark.parametrize("name", ["convolution", "transposed_convolution"])
def test_cpu_penalty_gradients_do_not_use_the_batch_as_channels(name: str, jax: JaxProcess) -> None:
    # XLA would compute that in a plain loop over pixels.
    assert jax("layouts_of_a_penalty", name) == {"(0, 3, 1, 2)"}


def test_bfloat16_updates_float32_weights_like_float32(jax: JaxProcess) -> None:
    images = random_images(40)
    _, before = jax("trained", "mlp_gan", images, (), MLP)
    wide, narrow = (
        jax("trained", "mlp_gan", images, (2,), {**MLP, "precision": name})
        for name in ("float32", "mixed_bfloat16")
    )
    assert_close(narrow[0], wide[0], 0.02)
    assert {
        array.dtype.name for name, array in narrow[1].items() if name.startswith("generator/")
    } == {"float32"}
    for network in ("generator", "discriminator"):
        expected, result = (moved(before, state, network) for _, state in (wide, narrow))
        assert cosine(result, expected) > 0.98
        assert np.linalg.norm(result) == pytest.approx(np.linalg.norm(expected), rel=0.05)


def test_bfloat16_all_reduce_changes_training_only_slightly(
    jax: JaxProcess,
) -> None:
    wide, narrow = (
        jax(
            "trained",
            "mlp_gan",
            random_images(40),
            (3,),
            {**MLP, "replicas": 2, "all_reduce_type": name},
        )
        for name in ("float32", "bfloat16")
    )
    assert_close(narrow[0], wide[0], 0.02)
    assert narrow[0]["loss_generator"][-1] != wide[0]["loss_generator"][-1]


def test_each_loss_is_scaled_and_unscaled_for_its_own_network(jax: JaxProcess) -> None:
    """Powers of two change no float16 number unless one overflows, so any scales give the same
    step.
    """
    scales = (
        {"generator": 2.0**10, "discriminator": 2.0**10},
        {
            "generator": 2.0**8,
            "discriminator": 2.0**12,
        },
    )
    (before, expected), (_, result) = (jax("scaled", random_images(40), each) for each in scales)
    assert_moves_alike(before, result, expected, 1e-3)


@pytest.mark.parametrize("replica", [0, 1])
def test_overflow_on_one_replica_skips_all_and_lowers_the_loss_scale(
    replica: int, jax: JaxProcess
) -> None:
    images = random_images(40)
    images[0] = 255
    numbers, (begin, skipped, after) = jax("overflowed", images, seed_of(replica, 0, 8, 40))
    assert numbers["loss_scale_generator"].tolist() == [2.0**15, 2.0**14]
    weights = [name for name in begin if name.startswith(("generator/", "discriminator/"))]
    assert [name for name in weights if not np.array_equal(begin[name], skipped[name])] == []
    assert [name for name in weights if np.array_equal(skipped[name], after[name])] == []


def test_lowered_learning_rates_apply_from_the_next_call(jax: JaxProcess) -> None:
    assert jax("slowed", random_images(40))["learning_rate_generator"].tolist() == pytest.approx(
        [1e-4, 5e-5]
    )


def test_step_all_reduces_gradients_once_and_reuses_buffers(jax: JaxProcess) -> None:
    options = {"replicas": 2, "count_kernels": "yes", "precision": "mixed_bfloat16"}
    kernels = jax("kernels", "tiny", random_images(40, 8), options)
    assert kernels["exchanges"] == 2, (
        "one for all gradients of a step, one for the numbers of the call"
    )
    assert kernels["hands_over"] == 1
    assert kernels["kernels_before"] > kernels["kernels_after"] > kernels["fusions"] > 0
    plain = jax("kernels", "tiny", random_images(40, 8), {})
    assert (plain["operations"] > 100, plain["kernels_after"]) == (True, None)
