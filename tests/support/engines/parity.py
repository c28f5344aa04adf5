"""Workloads, options and rows for comparing the steps of both engines.

Needs Keras but no engine.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from gan_runtime import catalog
from gan_runtime.data.contract import DataSet, picture_set
from gan_runtime.workloads.contract import Workload
from tests.support.engines.conditional_gan import CONDITIONAL_GAN
from tests.support.engines.showers import random_showers
from tests.support.engines.small_engines import random_images, side_of
from tests.support.engines.three_ways import CASES as THREE
from tests.support.engines.three_ways import PAIR, rates
from tests.support.engines.tiny_gan import SPECTRAL_GAN, TINY_GAN

SEED = 3
# In addition to the catalog's workloads.
WORKLOADS: dict[str, Workload] = {
    "tiny": TINY_GAN,
    "spectral": SPECTRAL_GAN,
    "conditional": CONDITIONAL_GAN,
}
# With plain SGD at rate 1, a step moves the weights by the gradient itself.
GRADIENTS = {"optimizer": "sgd", **rates(1.0, *PAIR)}
CALMLY = {"optimizer": "sgd", **rates(0.005, *PAIR)}
SLOWLY = {"optimizer": "sgd", **rates(0.1, *PAIR)}
# Everything that reaches a step through its options alone.
SCHEDULED = {
    **{"learning_rate_schedule": "cosine_restarts", "restart_epochs": 1, "warmup_epochs": 1},
    **{"adam_beta_1": 0.5, "adam_beta_2": 0.99, "learning_rate_scaling": "sqrt", "clip_norm": 0.1},
    **{"ema_decay": 0.9, "samples_from": "ema", "replicas": 2},
}
EVERY_TERM = {
    **{**SLOWLY, "momentum": 0.5, "updates": "in_turn", "discriminator_steps": 2},
    **{
        "generator_loss": "minimax",
        "r1_weight": 1.0,
        "label_smoothing": 0.1,
        "accumulation_steps": 2,
    },
}
# R3GAN's loss (Huang et al. 2024) on a schedule: pairs of images, R1 and R2, Adam without momentum;
# and a hinge loss with spectral norms.
R3GAN = {
    **{"loss": "relativistic", "r1_weight": 2.0, "r2_weight": 2.0, "penalty_end": 0.1, "epochs": 1},
    **{"adam_beta_1": 0.0, "adam_beta_2": 0.9, "updates": "in_turn"},
}
# The same on images that are augmented before D sees them (Zhao et al. 2020). Nothing is cut out:
# in a rectangle of zeros, while biases are 0, the engines differ in the slope of LeakyReLU.
# tests/full/engines/test_modern_objective.py starts with other biases.
MODERN = {"loss": "relativistic", "r1_weight": 2.0, "r2_weight": 0.5}
CHANGED = {**MODERN, "augmentation": "color_translation"}
# A number added to all logits does not change their differences, and within the margins of a hinge
# both halves cancel.
BIAS = ("discriminator/discriminator/logit/bias",)
HINGE = {**SLOWLY, "loss": "hinge"}


@dataclass(frozen=True)
class Case:
    """A workload, its options, and the number of compared steps.

    `random_arrays`: arrays for which `show` draws noise with the engine's own generator.
    """

    workload: str
    options: dict[str, Any]
    steps: int
    still: tuple[str, ...] = ()
    random_arrays: tuple[str, ...] = ()

    @property
    def spec_options(self) -> dict[str, Any]:
        """All options, including the seed."""
        return {"replicas": 1, "seed": SEED, **self.options}

    @property
    def unmoved(self) -> tuple[str, ...]:
        """The weights that no gradient moves."""
        return self.still or (THREE[self.workload].unmoved if self.workload in THREE else ())


# On networks of a few hundred weights, which compile in a second.
SMALL: dict[str, Case] = {
    "one replica, in turn, with all that a loss can have": Case("tiny", EVERY_TERM, 3),
    "two replicas, each with its own batch norm and its share in two parts": Case(
        "tiny",
        {**SLOWLY, "replicas": 2, "accumulation_steps": 2, "ema_decay": 0.9, "samples_from": "ema"},
        3,
    ),
    "batch norm of all replicas": Case(
        "tiny", {**GRADIENTS, "replicas": 2, "batch_norm": "synchronised"}, 1
    ),
    "adam, schedule, clipping, average": Case("tiny", SCHEDULED, 7),
    "layers that store something in each pass, and two phases of D": Case(
        "spectral", {**SLOWLY, "updates": "in_turn", "discriminator_steps": 2, "replicas": 2}, 3
    ),
    "relativistic pairs, with both penalties on a schedule": Case(
        "tiny", {**R3GAN, "optimizer": "sgd", **rates(0.1, *PAIR)}, 3, BIAS
    ),
    "relativistic pairs of changed pictures": Case(
        "tiny", {**SLOWLY, **CHANGED, "replicas": 2}, 3, BIAS
    ),
    "hinge with spectral norms, both networks from one pass": Case(
        "spectral", {**HINGE, "replicas": 2}, 3, BIAS
    ),
    "rmsprop": Case("tiny", {"optimizer": "rmsprop"}, 3),
    "rmsprop of TensorFlow 2": Case(
        "tiny", {"optimizer": "rmsprop", "rmsprop_epsilon": "outside"}, 3
    ),
    "labels and energies, a gradient within a gradient, four phases": Case(
        "conditional",
        {**CALMLY, "replicas": 2, "accumulation_steps": 2},
        3,
        random_arrays=("images",),
    ),
}
# Workloads of the catalog and of the guide.
LARGE: dict[str, Case] = {
    "the networks of the paper": Case("dcgan_mnist", GRADIENTS, 1),
    "pictures of three classes with the modern objective": Case(
        "dcgan",
        {**SLOWLY, **MODERN, "base_channels": 4, "latent_size": 8, "replicas": 2},
        2,
        ("discriminator/logit/bias",),
    ),
    "dense networks, adam, schedule, clipping, average": Case("mlp_gan", SCHEDULED, 7),
    "pictures of three classes, with batch norm of all replicas in both networks": Case(
        "dcgan",
        {
            # At rate 1 the images of the second step are black and white, where tanh has no
            # gradient.
            **{**SLOWLY, "base_channels": 4, "latent_size": 8, "discriminator_norm": "batch"},
            **{"replicas": 2, "batch_norm": "synchronised"},
        },
        1,
    ),
    "pictures of three classes, with one way back for both networks": Case(
        "dcgan", {**SLOWLY, "base_channels": 4, "latent_size": 8, "replicas": 2}, 2
    ),
    "the guide's five steps of a critic, each on pictures and even draws of its own": Case(
        "wgan_gp", {"optimizer": "sgd", **rates(0.005, "generator", "critic"), "replicas": 2}, 3
    ),
}
# The probe of a case takes as long as all its steps, and few probes differ.
PROBED = (
    "two replicas, each with its own batch norm and its share in two parts",
    "labels and energies, a gradient within a gradient, four phases",
)
# Both engines match the stored steps of every small case, so few of these also run in both.
LIVE = {case: SMALL[case] for case in PROBED} | LARGE


def workload_of(case: Case) -> Workload:
    """The workload of a case."""
    name = case.workload
    return WORKLOADS.get(name) or importlib.import_module(catalog.WORKLOADS[name].module).WORKLOAD


def rows_of(case: Case) -> DataSet:
    """At least 40 rows for the workload of a case."""
    if case.workload == "conditional":
        return random_showers(40)
    if case.workload in THREE:
        return THREE[case.workload].data
    return picture_set("random", random_images(40, side_of(workload_of(case))), "test")
