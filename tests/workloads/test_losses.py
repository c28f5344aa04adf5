"""Losses on logits: literal values, plain means, no overflow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from keras import ops

from gan_runtime.catalog.pairs import PairOptions
from gan_runtime.engines.inputs import HostNoise
from gan_runtime.workloads.losses import (
    LOSSES,
    PairLoss,
    bce_fake,
    bce_real,
    generator_over_discriminator,
    minimax_generator,
    probability_real,
    r1_penalty,
)
from gan_runtime.workloads.pair import UnconditionalPair
from gan_runtime.workloads.step_context import step_scope
from tests.support.engines.step_contexts import alone

pytestmark = pytest.mark.usefixtures("cores")
LN_2 = 0.6931471805599453


def logits(*values: float) -> np.ndarray:
    return np.asarray(values, np.float32)[:, None]


def test_undecided_discriminator_costs_log_two() -> None:
    assert float(bce_real(logits(0.0))) == pytest.approx(LN_2, abs=1e-7)
    assert float(bce_fake(logits(0.0))) == pytest.approx(LN_2, abs=1e-7)


@pytest.mark.parametrize(
    ("logit", "real", "fake"),
    [(1.0, 0.3132617, 1.3132617), (-2.0, 2.126928, 0.126928), (3.0, 0.0485874, 3.0485874)],
)
def test_losses_are_the_cross_entropy_of_the_sigmoid(
    logit: float, real: float, fake: float
) -> None:
    assert float(bce_real(logits(logit))) == pytest.approx(real, abs=1e-6)
    assert float(bce_fake(logits(logit))) == pytest.approx(fake, abs=1e-6)


def test_a_loss_is_the_plain_mean_over_the_batch() -> None:
    assert float(bce_real(logits(0.0, 1.0, -2.0))) == pytest.approx(
        (LN_2 + 0.3132617 + 2.126928) / 3, abs=1e-6
    )


def test_extreme_logits_stay_finite() -> None:
    assert float(bce_real(logits(-1_000.0))) == 1_000.0
    assert float(bce_real(logits(1_000.0))) == 0.0
    assert float(bce_fake(logits(1_000.0))) == 1_000.0
    assert math.isfinite(float(bce_fake(logits(-1_000.0))))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_low_precision_logits_give_float32_losses(dtype: str) -> None:
    from keras import ops

    low = ops.cast(logits(0.0, 1.0), dtype)
    loss = bce_real(low)
    assert np.asarray(loss).dtype == np.float32
    assert float(loss) == pytest.approx((LN_2 + 0.3132617) / 2, abs=1e-6)


def test_the_probability_of_real_is_one_number_per_image() -> None:
    probabilities = np.asarray(probability_real(logits(0.0, 1.0, -200.0)))
    assert probabilities.shape == (3,)
    assert probabilities.tolist() == pytest.approx([0.5, 0.7310586, 0.0], abs=1e-6)


@pytest.mark.parametrize(("logit", "loss"), [(0.0, -LN_2), (1.0, -1.3132617), (-2.0, -0.126928)])
def test_minimax_is_the_logarithm_of_one_minus_d(logit: float, loss: float) -> None:
    assert float(minimax_generator(logits(logit))) == pytest.approx(loss, abs=1e-6)


def test_minimax_gradient_vanishes_for_a_sure_discriminator() -> None:
    import tensorflow as tf

    sure_of_fake = tf.constant(logits(-8.0))
    slopes = []
    for loss in (minimax_generator, bce_real):
        with tf.GradientTape() as tape:
            tape.watch(sure_of_fake)
            value = loss(sure_of_fake)
        slopes.append(tape.gradient(value, sure_of_fake).numpy().item())
    assert slopes == pytest.approx([-0.00033535, -0.99966465], rel=1e-5)


@pytest.mark.parametrize(
    ("target", "logit", "loss"), [(0.9, 0.0, LN_2), (0.9, 1.0, 0.4132617), (0.5, 3.0, 1.5485874)]
)
def test_smoothed_target_penalizes_certainty(target: float, logit: float, loss: float) -> None:
    assert float(bce_real(logits(logit), target)) == pytest.approx(loss, abs=1e-6)


def test_smoothed_loss_is_lowest_at_the_target() -> None:
    at_target = math.log(0.9 / 0.1)
    best = float(bce_real(logits(at_target), 0.9))
    assert best == pytest.approx(0.3250830, abs=1e-6)
    assert best < min(float(bce_real(logits(at_target + step), 0.9)) for step in (-0.1, 0.1))


def test_r1_penalty_is_half_the_mean_squared_norm() -> None:
    slopes = np.asarray([[[3.0, 4.0]], [[0.0, 1.0]]], np.float32)
    assert float(r1_penalty(slopes)) == pytest.approx((25.0 + 1.0) / 4.0)


@pytest.mark.parametrize(
    ("kind", "logit", "expected"),
    [
        (
            "non_saturating",
            0.0,
            -1.0,
        ),  # G's gradient -sigmoid(-l), D's sigmoid(l): equal and opposite where D is undecided
        ("non_saturating", 2.0, -math.exp(-2.0)),
        ("non_saturating", -2.0, -math.exp(2.0)),
        ("minimax", 2.0, -1.0),
    ],
)
def test_ratio_of_generator_to_discriminator_gradients(
    kind: str, logit: float, expected: float
) -> None:
    assert float(generator_over_discriminator(logits(logit), kind)[0, 0]) == pytest.approx(
        expected, rel=1e-5
    )


def both(name: str, real: np.ndarray, fake: np.ndarray) -> tuple[float, float]:
    """The discriminator's and the generator's loss, from the table."""
    loss, options = LOSSES[name], PairOptions()
    return float(loss.discriminator(real, fake, options)), float(
        loss.generator(real, fake, options)
    )


def test_a_hinge_stops_at_its_margin() -> None:
    of_d, of_g = both("hinge", logits(2.0, 0.5), logits(-3.0, 0.25))
    assert of_d == pytest.approx((0.0 + 0.5) / 2 + (0.0 + 1.25) / 2)
    assert of_g == pytest.approx((3.0 - 0.25) / 2)


def test_relativistic_loss_compares_real_with_generated_images() -> None:
    of_d, of_g = both("relativistic", logits(1.0, 0.0), logits(0.0, 2.0))
    assert of_d == pytest.approx((0.3132617 + 2.126928) / 2, abs=1e-6)
    assert of_g == pytest.approx((1.3132617 + 0.126928) / 2, abs=1e-6)
    shifted = both("relativistic", logits(101.0, 100.0), logits(100.0, 102.0))
    assert shifted == pytest.approx((of_d, of_g), abs=1e-5), (
        "a number added to all logits changes nothing"
    )
    real, fake = (
        np.asarray(scores) for scores in LOSSES["relativistic"].scores(logits(1.0), logits(0.0))
    )
    assert (real[0], fake[0]) == pytest.approx((0.7310586, 0.2689414))


def test_only_cross_entropy_shares_one_backward_pass() -> None:
    assert [name for name, loss in LOSSES.items() if loss.one_pass] == ["cross_entropy"]


def test_custom_loss_can_be_added_to_the_table() -> None:
    """Least squares (Mao et al. 2017), with an options record that allows it."""

    class Wider(PairOptions):
        loss: str = "least_squares"  # type: ignore[assignment]

    squares = PairLoss(
        lambda real, fake, _: ops.mean((real - 1.0) ** 2) + ops.mean(fake**2),
        lambda _, fake, __: ops.mean((fake - 1.0) ** 2),
    )
    pair = UnconditionalPair(2, dict, losses={**LOSSES, "least_squares": squares})
    (phase,) = pair.program(Wider(), {}).phases
    networks = {
        "generator": lambda latents, training: 0.0 * latents + 0.5,  # noqa: ARG005
        "discriminator": lambda images, training: ops.reshape(images[:, 0], (-1, 1)),  # noqa: ARG005
    }
    with step_scope(alone(HostNoise(0))):
        losses = phase.forward(
            networks, {"images": np.full((3, 2), 0.25, np.float32)}, HostNoise(0)
        ).losses
    assert float(losses["loss_discriminator"]) == pytest.approx(0.75**2 + 0.5**2)
    assert float(losses["loss_generator"]) == pytest.approx(0.25)
