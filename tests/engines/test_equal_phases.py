"""Noise goes by the place of a phase in its step: two equal phases draw their own, those of today's workloads draw as ever."""

from __future__ import annotations

import itertools

import pytest
import tensorflow as tf

from gan_runtime.engines.tf_distribute import TfEngine
from gan_runtime.workloads.contract import Objective, Workload
from gan_runtime.workloads.dcgan_mnist import DcganMnist
from gan_runtime.workloads.mlp_gan import MlpGan
from tests.engines.equal_phases import TwiceTheSame
from tests.engines.jax_process import JaxProcess
from tests.engines.small_engines import BATCH, MakeEngine, random_images


def loss(engine: TfEngine, place: int, step: int = 3) -> float:
    zero, images = tf.constant(0), tf.constant(random_images(BATCH))
    _, numbers = engine._step.gradients(place, images, tf.constant(step), zero, zero, engine._step.loss_scales())
    return float(numbers["loss_generator"])


@pytest.mark.usefixtures("cores")
def test_two_equal_phases_draw_different_noise(make: MakeEngine) -> None:
    engine = make(1, TwiceTheSame())
    assert engine._step.phases[0] == engine._step.phases[1]
    assert loss(engine, 0) == loss(engine, 0)
    assert loss(engine, 0) != loss(engine, 1)


def test_two_equal_phases_draw_different_noise_on_jax(jax: JaxProcess) -> None:
    first, again, second = jax("losses_of_phases", random_images(BATCH), (0, 0, 1))
    assert first == again
    assert first != second


@pytest.mark.parametrize("workload", [DcganMnist(), MlpGan()])
def test_phases_of_todays_workloads_differ_so_that_stored_runs_go_on_with_the_same_draws(workload: Workload) -> None:
    """Up to now the place was that of the first equal phase."""
    together = [
        Objective(loss_scaling=scaled, r1_weight=weight) for scaled, weight in itertools.product((False, True), (0.0, 10.0))
    ]
    in_turn = [Objective(updates="in_turn", discriminator_steps=steps) for steps in (1, 2, 5)]
    for objective in (*together, *in_turn):
        phases = workload.phases(objective)
        assert [phases.index(phase) for phase in phases] == list(range(len(phases)))
