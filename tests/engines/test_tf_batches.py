"""Batches with any fields, and programs with any phases, in the TensorFlow engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from gan_runtime.base.fields import Fields
from gan_runtime.engines.inputs import RowOrder, fixed_inputs
from gan_runtime.engines.tf.engine import TfEngine
from gan_runtime.engines.tf.inputs import distributed_batches
from gan_runtime.workloads.contract import Program
from tests.support.engines.conditional_gan import (
    CONDITIONAL_GAN,
    SHORT_CONDITIONAL_GAN,
    ConditionalGan,
)
from tests.support.engines.showers import ENERGY, random_showers
from tests.support.engines.small_engines import (
    MakeEngine,
    Streamed,
    assert_close,
    assert_equal,
    keep_alive,
    trained,
)

pytestmark = pytest.mark.usefixtures("cores")
SHOWERS = random_showers(40)


def conditional(make: MakeEngine, replicas: int = 1, **options: Any) -> TfEngine:
    return make(replicas, CONDITIONAL_GAN, data=SHOWERS, **options)


def short(make: MakeEngine, replicas: int = 1, parts: int = 1, **options: Any) -> TfEngine:
    return make(replicas, SHORT_CONDITIONAL_GAN, data=SHOWERS, accumulation_steps=parts, **options)


def test_each_batch_of_a_step_has_all_fields_of_its_rows(make: MakeEngine) -> None:
    engine = conditional(make)
    numbers = RowOrder(1, engine.task.plan).rows(0, 1)[0]
    assert numbers.shape == (2, 8), "two batches a step"
    batches = distributed_batches(engine.strategy, engine.spec, engine.task.plan, SHOWERS, 0)
    rows = next(keep_alive(batches))
    for place, phase in enumerate(engine.task.program.phases[:2]):
        batch, expected = engine.step.batch_of(rows, phase), SHOWERS.read(numbers[place])
        assert {name: array.dtype for name, array in batch.items()} == {
            "images": tf.uint8,
            "labels": tf.int32,
            "energy": tf.float32,
        }
        assert all(np.array_equal(batch[name], expected[name]) for name in expected)


@pytest.mark.parametrize(("replicas", "parts"), [(1, 4), (2, 1)])
def test_three_field_batches_train_alike_in_parts_and_on_two_replicas(
    make: MakeEngine, replicas: int, parts: int
) -> None:
    whole, other = short(make), short(make, replicas, parts)
    assert_close(trained(other, 3), trained(whole, 3), 1e-5)
    assert_close(other.state(), whole.state(), 1e-5)


def test_three_field_run_resumes_exactly(make: MakeEngine) -> None:
    first, second = (short(make, ema_decay=0.9) for _ in range(2))
    trained(first, 1)
    second.load(first.state())
    assert_equal(trained(second, 2), first.run(2).values)  # into the second epoch
    assert_equal(second.state(), first.state())


def test_step_results_on_two_replicas_are_reproducible(make: MakeEngine) -> None:
    """The gradient of a critic's loss does not depend on its value, so only a control dependency
    keeps the loss from being computed with the new weights.
    """
    engine = short(make, 2)
    begin = engine.state()
    expected = trained(engine, 1, 3)
    for _ in range(5):
        engine.load(begin)
        assert_equal(
            {name: np.concatenate(runs) for name, runs in _runs(engine, 1, 3).items()}, expected
        )


def _runs(engine: TfEngine, *calls: int) -> dict[str, list[np.ndarray]]:
    runs = [engine.run(steps).values for steps in calls]
    return {name: [values[name] for values in runs] for name in runs[0]}


@pytest.mark.parametrize("replicas", [1, 2])
def test_streamed_rows_train_exactly_like_resident_ones(make: MakeEngine, replicas: int) -> None:
    resident = short(make, replicas)
    streamed = make(replicas, SHORT_CONDITIONAL_GAN, data=Streamed(SHOWERS))
    expected = trained(resident, 1, 3)
    assert_equal(trained(streamed, 1, 3), expected)
    assert_equal(streamed.state(), resident.state())


class Repeating(ConditionalGan):
    """A GAN whose program runs one phase twice."""

    def program(self, options: Any, fields: Fields) -> Program:
        phase = super().program(options, fields).phases[0]
        return Program((phase, replace(phase, name="again")))


def test_identical_phases_draw_different_noise(make: MakeEngine) -> None:
    engine = make(1, Repeating(), data=SHOWERS)
    rows = {name: tf.constant(array[:8]) for name, array in SHOWERS.resident.items()}
    zero, scales = tf.constant(0), engine.step.loss_scales()
    losses = [
        float(engine.step.gradients(place, rows, zero, zero, zero, scales)[1]["loss_critic"])
        for place in (0, 1, 0)
    ]
    assert losses[0] == losses[2] != losses[1]


@pytest.mark.parametrize("replicas", [1, 2])
def test_probed_gradients_are_per_phase(make: MakeEngine, replicas: int) -> None:
    probe = conditional(make, replicas).probe()
    phases = {
        "discriminator": ("critic_0", "critic_1"),
        "generator": ("generator_0", "generator_1"),
    }
    norms = {
        network: [probe.scores[f"gradient_norm_{network}@{phase}"] for phase in names]
        for network, names in phases.items()
    }
    assert sum(name.startswith("gradient_norm_") for name in probe.scores) == 4
    assert all(0.0 < first != second > 0.0 for first, second in norms.values())
    histograms = {histogram.name for histogram in probe.histograms}
    assert {
        "gradient@critic_1/discriminator",
        "gradient@generator_0/generator/pixels",
    } <= histograms
    assert not [name for name in histograms if name.startswith("gradient/")]


@pytest.mark.parametrize("replicas", [1, 2])
def test_judged_values_without_declared_ends_are_binned_by_range(
    make: MakeEngine, replicas: int
) -> None:
    probe = conditional(make, replicas).probe()
    assert probe.scores["energy"] == pytest.approx(
        (SHOWERS.resident[ENERGY] * 0.01 - 1.0).mean(), abs=1e-5
    )
    (margin,) = [histogram for histogram in probe.histograms if histogram.name == "score/margin"]
    assert (len(margin.counts), margin.counts.sum()) == (40, 40)
    assert margin.counts[0] > 0
    assert margin.counts[-1] > 0
    rows_of = np.bincount(SHOWERS.resident["labels"])
    means = [probe.scores[f"score/margin/{name}"] for name in ("up", "down", "strange")]
    assert rows_of @ means / 40 == pytest.approx(probe.scores["gap"], abs=1e-5)
    middle = (margin.edges[:-1] + margin.edges[1:]) / 2
    width = margin.edges[1] - margin.edges[0]
    assert (margin.counts * middle).sum() / 40 == pytest.approx(probe.scores["gap"], abs=width / 2)


def test_sample_has_every_array_for_the_fixed_inputs(make: MakeEngine) -> None:
    images = conditional(make, replicas=3, batch_size_global=6).sample()
    assert images["images"].shape == (64, 8, 8, 1)
    assert images["labels"].tolist() == [number % 3 for number in range(64)]


def test_shown_noise_follows_the_row_and_the_request_seed(make: MakeEngine) -> None:
    """For any seed of the run, any replicas, and any chunks of rows."""
    engine, shared = conditional(make), conditional(make, replicas=3, batch_size_global=6)
    inputs = fixed_inputs(CONDITIONAL_GAN, None, SHOWERS, 70)
    alone = [engine.generate(inputs, seed)["images"] for seed in (0, 2)]
    assert np.abs(shared.generate(inputs)["images"] - alone[0]).max() < 1e-5
    assert np.array_equal(engine.sample()["images"], alone[0][:64])
    grain = alone[1] - alone[0]
    assert 0.1 < grain.std() < 0.2
    assert len(np.unique(grain[:, 0, 0, 0])) == 70


def test_step_updates_each_network_as_often_as_its_program(make: MakeEngine) -> None:
    engine = make(1, Repeating(), data=SHOWERS)
    assert engine.updates() == {"discriminator": 2}
    before = engine.state()
    trained(engine, 3)
    state = engine.state()
    assert [int(state[name]) for name in state if name.endswith("iteration")] == [6]
    assert_equal(
        {name: array for name, array in state.items() if name.startswith("generator/")},
        {name: array for name, array in before.items() if name.startswith("generator/")},
    )
