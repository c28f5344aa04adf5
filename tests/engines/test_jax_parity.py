"""The JAX engine against the TensorFlow engine: same weights, images and noise give the same numbers, gradients and checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from gan_runtime.engines import tf_probes, tf_step
from gan_runtime.workloads.dcgan_mnist import DcganMnist
from gan_runtime.workloads.mlp_gan import MlpGan
from tests.engines import same_noise
from tests.engines.jax_process import JaxProcess
from tests.engines.small_engines import MakeEngine, assert_close, random_images

pytestmark = pytest.mark.usefixtures("cores")  # before TensorFlow starts its devices

WORKLOADS = {"dcgan_mnist": DcganMnist, "mlp_gan": MlpGan}
# With plain SGD at rate 1 the weights of one step move by the gradient itself.
GRADIENTS = {"optimizer": "sgd", "learning_rate_generator": 1.0, "learning_rate_discriminator": 1.0}
SLOWLY = {"optimizer": "sgd", "learning_rate_generator": 0.1, "learning_rate_discriminator": 0.1}
# Workload, options, steps.
CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "one replica, in turn, with all that a loss can have": (
        "dcgan_mnist",
        {
            **{**SLOWLY, "momentum": 0.5, "updates": "in_turn", "discriminator_steps": 2, "generator_loss": "minimax"},
            **{"r1_weight": 1.0, "label_smoothing": 0.1, "accumulation_steps": 2},
        },
        3,
    ),
    "batch norm of each replica": ("dcgan_mnist", {**GRADIENTS, "replicas": 2}, 1),
    "batch norm of all replicas": ("dcgan_mnist", {**GRADIENTS, "replicas": 2, "batch_norm": "synchronised"}, 1),
    "adam, schedule, clipping, average": (
        "mlp_gan",
        {
            **{"learning_rate_schedule": "cosine_restarts", "restart_epochs": 1, "warmup_epochs": 1, "adam_beta_1": 0.5},
            **{"learning_rate_scaling": "sqrt", "clip_norm": 0.1, "ema_decay": 0.9, "samples_from": "ema", "replicas": 2},
        },
        7,
    ),
    "rmsprop": ("mlp_gan", {"optimizer": "rmsprop"}, 3),
}


class SameNoise:
    """See `same_noise`."""

    def __init__(self, seed: int, step: tf.Tensor, share: tf.Tensor, shares: int, phase: int = 0) -> None:  # noqa: ARG002
        self._share, self._stream = share, 100 * phase

    def normal(self, rows: int, columns: int) -> tf.Tensor:
        self._stream += 1
        return tf.slice(tf.constant(same_noise.latents(self._stream, columns)), [self._share * rows, 0], [rows, columns])

    def dropout(self, values: tf.Tensor, rate: float) -> tf.Tensor:
        self._stream += 1
        return values * tf.constant(same_noise.mask(self._stream, tuple(values.shape), rate), values.dtype)


@pytest.mark.parametrize("case", list(CASES))
def test_both_engines_train_alike_and_take_up_each_others_checkpoints(
    case: str, make: MakeEngine, monkeypatch: pytest.MonkeyPatch, jax: JaxProcess
) -> None:
    monkeypatch.setattr(tf_step, "StepNoise", SameNoise)
    monkeypatch.setattr(tf_probes, "StepNoise", SameNoise)
    workload, options, steps = CASES[case]
    engine = make(workload=WORKLOADS[workload](), **{"replicas": 1, **options})
    begin = engine.state()
    numbers, states, scores, counts, samples = jax("trained_from", workload, random_images(40), options, begin, steps)

    engine.trace()
    engine.mark()
    assert_close(numbers[0], engine.run(steps).values, 1e-4)
    assert_close(states[0], engine.state(), 1e-4)
    probe = engine.probe()
    assert_close({name: np.asarray(value) for name, value in scores.items()}, probe.scores, 1e-4)
    assert {name: count.sum() for name, count in counts.items()} == {one.name: one.counts.sum() for one in probe.histograms}
    assert np.abs(samples - engine.sample()).max() < 1e-3

    engine.load(states[0])  # a step further from the other engine's checkpoint
    assert_close(numbers[1], engine.run(1).values, 1e-4)
    assert_close(states[1], engine.state(), 2e-3)  # a step at rate 1 has left a D with large gradients


def test_a_checkpoint_of_another_workload_is_refused(make: MakeEngine, jax: JaxProcess) -> None:
    why = jax("refused", random_images(40), make(1, DcganMnist()).state())
    assert why.startswith("CheckpointError: the checkpoint does not fit this run's networks and optimizers (differs in ")


def test_the_process_with_jax_holds_no_tensorflow(jax: JaxProcess) -> None:
    assert jax("loaded") == []
