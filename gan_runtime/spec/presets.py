"""Presets of a run's options, and `key=value` pairs of the command line."""

from __future__ import annotations

import difflib
from collections.abc import MutableMapping
from functools import partial
from typing import Any

from gan_runtime.base.errors import QUOTED_CHARACTERS, FieldError, SpecError, quoted
from gan_runtime.catalog.domain import rows_of_domains
from gan_runtime.catalog.entries import Caution, Preset
from gan_runtime.catalog.table import Table

# Huang et al. 2024, R3GAN: pairs of real and generated images, both penalties.
MODERN: dict[str, Any] = {
    "workload": "dcgan",
    "base_channels": 32,
    "loss": "relativistic",
    "r1_weight": 0.5,
    "r2_weight": 0.5,
    "replicas": 1,
    "learning_rate_generator": 1e-3,
    "learning_rate_discriminator": 1e-3,
    "adam_beta_1": 0.5,
    "samples_from": "ema",
}
RATES = (  # options that set the learning rates
    "learning_rate_generator",
    "learning_rate_discriminator",
    "learning_rate_scaling",
    "reference_batch",
)


def _of_batches(least: int, text: str, repair: dict[str, Any], *options: str) -> Caution:
    """A problem of the preset's rates with global batches from `least` on. `options`: further ones
    that have it only unchanged.
    """
    unchanged = (*RATES, "workload", "dataset", *options)
    return Caution("batch_size_global", least, unchanged, text, repair)


PRESETS: MutableMapping[str, Preset] = {
    "quick": Preset(
        title="Quick: digits in about a minute",
        summary=(
            "A small network draws the digits 0 to 9, from 1,797 images that come with the program."
            " A classifier is sure of 9 in 10 of its digits."
        ),
        values={
            **MODERN,
            "dataset": "digits",
            "batch_size_global": 32,
            "epochs": 38,
            "r1_weight": 1.0,
            "r2_weight": 0.0,  # more epochs are a better use of its time
            "steps_per_loop": 8,
            "ema_decay": 0.98,  # averages the last 50 steps, about one epoch
        },
    ),
    "paper": Preset(
        title="Paper: Table 1 on MNIST, 30 epochs, 8 cores",
        summary="The study's setting: 8 cores, bfloat16, Adam(1e-4), batch 64, 128, 256 or 512.",
        values={
            "workload": "dcgan_mnist",
            "dataset": "mnist",
            "replicas": 8,
            "precision": "mixed_bfloat16",
            "batch_size_global": 64,
            "epochs": 30,
            "weight_snapshots": "yes",
        },
        suggestions={"batch_size_global": (64, 128, 256, 512)},
        cautions=(
            _of_batches(
                256,
                "With the rates of Table 1, batches of 256 and 512 gave strokes instead of digits"
                " (30 epochs, 10,000 images). Rates scaled with the batch and Adam's beta 1 = 0.5"
                " gave digits. All 60,000 images were not tried.",
                # Goyal et al. 2017; Radford et al. 2016
                {"learning_rate_scaling": "linear", "adam_beta_1": 0.5},
                *("optimizer", "ema_decay", "adam_beta_1"),
            ),
        ),
    ),
    "modern": Preset(
        title="Modern: R3GAN's objective on MNIST",
        summary=(
            "A conditional DCGAN with relativistic pairs, both penalties and a moving average. Its"
            " rates grow with the batch. On 10,000 images a classifier is sure of 9 in 10 of its"
            " digits at batches up to 256."
        ),
        values={
            **MODERN,
            "dataset": "mnist",
            "batch_size_global": 64,
            "epochs": 30,
            "learning_rate_scaling": "linear",
            "ema_decay": 0.98,
        },
        suggestions={"batch_size_global": (64, 128, 256, 512)},
        # Measured in docs/quality.md
        cautions=(
            _of_batches(
                512,
                "At batch 512 the scaled rates are too high. On 10,000 images, in 30 epochs two of"
                " eight runs gave black images and six ignored the classes; in 240 epochs two of"
                " eight failed. The rates of batch 256 and 78 epochs (1,500 updates) repair that.",
                {"reference_batch": 128, "epochs": 78},
            ),
            _of_batches(
                256,
                "At batch 256 the scaled rates are not reliable: of three runs of 120 epochs on"
                " 10,000 images (4,700 updates), one failed after 60 epochs. With the rates of"
                " batch 128 none of three failed.",
                {"reference_batch": 128},
            ),
        ),
    ),
}
PRESETS = Table(PRESETS, "gan_runtime.presets", Preset, partial(rows_of_domains, "presets"))


def preset(name: str) -> Preset:
    """Raises SpecError with the names of all presets."""
    if name not in PRESETS:
        near = difflib.get_close_matches(name[:QUOTED_CHARACTERS], PRESETS, n=1)
        hint = f"did you mean {near[0]}?" if near else "pick one of them."
        message = f"preset is {quoted(name)}, but allowed is {', '.join(PRESETS)}: {hint}"
        raise SpecError([FieldError("preset", message)])
    return PRESETS[name]


def parse_assignments(assignments: list[str]) -> dict[str, str]:
    """["epochs=3", "seed=7"] as values for `RunSpec.parse`. Raises SpecError without a '='."""
    values: dict[str, str] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            message = f"--set {quoted(text)} has no '=': write key=value, such as epochs=3."
            raise SpecError([FieldError("set", message)])
        values[name.strip(" ")] = value.strip()
    return values
