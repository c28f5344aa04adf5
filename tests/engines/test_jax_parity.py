"""The JAX engine against the TensorFlow engine: same weights, images and noise give the same numbers, gradients and checkpoints."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from gan_runtime import catalog
from gan_runtime.data.contract import DataSet, picture_set
from gan_runtime.engines.tf import probes as tf_probes
from gan_runtime.engines.tf import sampler as tf_sampler
from gan_runtime.engines.tf import step as tf_step
from gan_runtime.workloads import dcgan_mnist
from gan_runtime.workloads.contract import Workload
from tests.support.engines import same_noise
from tests.support.engines.conditional_gan import CONDITIONAL_GAN
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.showers import random_showers
from tests.support.engines.small_engines import (
    MakeEngine,
    assert_close,
    assert_counts_alike,
    assert_moves_alike,
    random_images,
    side_of,
)
from tests.support.engines.three_ways import CASES as THREE
from tests.support.engines.three_ways import PAIR, rates
from tests.support.engines.tiny_gan import SPECTRAL_GAN, TINY_GAN

pytestmark = pytest.mark.usefixtures("cores", "with_the_guides")  # before TensorFlow starts its devices

# Beside those of the catalog.
WORKLOADS: dict[str, Workload] = {"tiny": TINY_GAN, "spectral": SPECTRAL_GAN, "conditional": CONDITIONAL_GAN}
# With plain SGD at rate 1 the weights of one step move by the gradient itself.
GRADIENTS = {"optimizer": "sgd", **rates(1.0, *PAIR)}
CALMLY = {"optimizer": "sgd", **rates(0.005, *PAIR)}
SLOWLY = {"optimizer": "sgd", **rates(0.1, *PAIR)}
# Workload, options, steps.
CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "one replica, in turn, with all that a loss can have": (
        "tiny",
        {
            **{
                **SLOWLY,
                "momentum": 0.5,
                "updates": "in_turn",
                "discriminator_steps": 2,
                "generator_loss": "minimax",
            },
            **{"r1_weight": 1.0, "label_smoothing": 0.1, "accumulation_steps": 2},
        },
        3,
    ),
    "two replicas, each with its own batch norm and its share in two parts": (
        "tiny",
        {**SLOWLY, "replicas": 2, "accumulation_steps": 2, "ema_decay": 0.9, "samples_from": "ema"},
        3,
    ),
    "batch norm of all replicas": ("tiny", {**GRADIENTS, "replicas": 2, "batch_norm": "synchronised"}, 1),
    "the networks of the paper": ("dcgan_mnist", GRADIENTS, 1),
    "adam, schedule, clipping, average": (
        "mlp_gan",
        {
            **{
                "learning_rate_schedule": "cosine_restarts",
                "restart_epochs": 1,
                "warmup_epochs": 1,
                "adam_beta_1": 0.5,
                "adam_beta_2": 0.99,
            },
            **{
                "learning_rate_scaling": "sqrt",
                "clip_norm": 0.1,
                "ema_decay": 0.9,
                "samples_from": "ema",
                "replicas": 2,
            },
        },
        7,
    ),
    "layers that store something in each pass, and two phases of D": (
        "spectral",
        {**SLOWLY, "updates": "in_turn", "discriminator_steps": 2, "replicas": 2},
        3,
    ),
    "rmsprop": ("tiny", {"optimizer": "rmsprop"}, 3),
    "rmsprop of TensorFlow 2": ("tiny", {"optimizer": "rmsprop", "rmsprop_epsilon": "outside"}, 3),
    "labels and energies, a gradient within a gradient, four phases": (
        "conditional",
        {**CALMLY, "replicas": 2, "accumulation_steps": 2},
        3,
    ),
    "pictures of three classes, with batch norm of all replicas in both networks": (
        "dcgan",
        {
            # At rate 1 the pictures of the second step are black and white, where tanh has no gradient.
            **{**SLOWLY, "base_channels": 4, "latent_size": 8, "discriminator_norm": "batch"},
            **{"replicas": 2, "batch_norm": "synchronised"},
        },
        1,
    ),
    "pictures of three classes, with one way back for both networks": (
        "dcgan",
        {**SLOWLY, "base_channels": 4, "latent_size": 8, "replicas": 2},
        2,
    ),
    "the guide's five steps of a critic, each on pictures and even draws of its own": (
        "wgan_gp",
        {"optimizer": "sgd", **rates(0.005, "generator", "critic"), "replicas": 2},
        3,
    ),
}


class SameNoise:
    """See `same_noise`."""

    def __init__(self, seed: int, step: tf.Tensor, share: tf.Tensor, shares: int, place: int = 0) -> None:  # noqa: ARG002
        self._seed, self._step, self._share, self._stream = seed, step, share, 100 * place

    def normal(self, rows: int, *shape: int) -> tf.Tensor:
        return self._own_rows(same_noise.normal, rows, shape)

    def uniform(self, rows: int, *shape: int) -> tf.Tensor:
        return self._own_rows(same_noise.uniform, rows, shape)

    def _own_rows(self, table_of: Any, rows: int, shape: tuple[int, ...]) -> tf.Tensor:
        self._stream += 1
        table = tf.gather(tf.constant(table_of(self._seed, self._stream, shape)), self._step)
        return tf.slice(table, [self._share * rows, *[0] * len(shape)], [rows, *shape])

    def dropout(self, values: tf.Tensor, rate: float) -> tf.Tensor:
        self._stream += 1
        if rate == 0.0:  # a table of ones for each unit of a large network would take longer than its step
            return values
        table = tf.constant(same_noise.kept(self._seed, self._stream, tuple(values.shape), rate))
        kept = tf.gather_nd(table, [self._step, self._share])
        return values * tf.cast(tf.cast(kept, tf.float32) / (1.0 - rate), values.dtype)


def _workload(name: str) -> Workload:
    return WORKLOADS.get(name) or importlib.import_module(catalog.WORKLOADS[name].module).WORKLOAD


def _set_of(workload: str) -> DataSet:
    if workload == "conditional":
        return random_showers(40)
    if workload in THREE:
        return THREE[workload].data
    return picture_set("random", random_images(40, side_of(_workload(workload))), "test")


@pytest.mark.parametrize("case", list(CASES))
def test_both_engines_train_alike_and_take_up_each_others_checkpoints(
    case: str, make: MakeEngine, monkeypatch: pytest.MonkeyPatch, jax: JaxProcess
) -> None:
    for module in (tf_step, tf_probes, tf_sampler):
        monkeypatch.setattr(module, "StepNoise", SameNoise)
    workload, options, steps = CASES[case]
    data, unmoved = _set_of(workload), THREE[workload].unmoved if workload in THREE else ()
    engine = make(workload=_workload(workload), data=data, **{"replicas": 1, "seed": 3, **options})
    begin = engine.state()
    numbers, states, probe, samples = jax(
        "trained_from", workload, data, {"seed": 3, **options}, begin, steps
    )

    engine.trace()
    engine.mark()
    assert_close(numbers[0], engine.run(steps).values, 1e-4)
    assert_moves_alike(begin, states[0], engine.state(), 1e-3, unmoved)
    own = engine.probe()
    assert_close({name: np.asarray(value) for name, value in probe.scores.items()}, own.scores, 1e-4)
    assert len(own.histograms) == len(probe.histograms)
    for of_jax, of_tensorflow in zip(probe.histograms, own.histograms, strict=True):
        assert_counts_alike(of_jax, of_tensorflow, 1e-3)
    assert_close(samples, engine.sample(), 1e-3)

    engine.load(states[0])  # a step further from the other engine's checkpoint
    assert_close(numbers[1], engine.run(1).values, 1e-4)
    assert_moves_alike(states[0], states[1], engine.state(), 1e-3, unmoved)


def test_a_checkpoint_of_another_workload_is_refused(make: MakeEngine, jax: JaxProcess) -> None:
    why = jax("refused", random_images(40), make(1, dcgan_mnist.WORKLOAD).state())
    assert why.startswith(
        "CheckpointError: the checkpoint does not fit this run's networks and optimizers (differs in "
    )


def test_the_process_with_jax_holds_no_tensorflow(jax: JaxProcess) -> None:
    assert jax("loaded") == []
