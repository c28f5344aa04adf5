"""Named starting points for a run, and the reading of `key=value` pairs from the command line."""

from __future__ import annotations

import difflib

from gan_runtime.base.errors import QUOTED_CHARACTERS, FieldError, SpecError, quoted
from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.catalog.entries import Caution, Preset

PRESETS: dict[str, Preset] = {
    "quick": Preset(
        title="Quick: digits in about a minute",
        summary=(
            "The paper's DCGAN on the embedded digits: small batches, higher rates, Adam with beta"
            " 1 = 0.5, and the images of the generator's moving average show digits in about a"
            " minute."
        ),
        values={
            "workload": "dcgan_mnist",
            "dataset": "digits",
            "replicas": 1,
            "batch_size_global": 32,
            "epochs": 15,
            "steps_per_loop": 8,
            "learning_rate_generator": 5e-4,
            "learning_rate_discriminator": 5e-4,
            "adam_beta_1": 0.5,
            "ema_decay": 0.98,  # of the last 50 steps, about one epoch
            "samples_from": "ema",
        },
    ),
    "paper": Preset(
        title="Paper: Table 1 on MNIST, 30 epochs, 8 cores",
        summary=(
            "The study's setting: eight cores, bfloat16, Adam(1e-4). Batch 64, 128, 256 or 512."
        ),
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
        caution=Caution(
            option="batch_size_global",
            least=256,
            alike=(
                "workload",
                "dataset",
                "optimizer",
                "learning_rate_generator",
                "learning_rate_discriminator",
                "ema_decay",
            ),
            text=(
                "With the rate and momentum of Table 1, batches of 256 and 512 showed strokes and"
                " no digits after 30 epochs on 10,000 images (docs/dcgan.md); on all 60,000 this"
                " was not tried. A rate that grows with the batch and Adam's beta 1 = 0.5 showed"
                " digits."
            ),
            repair={
                "learning_rate_scaling": "linear",
                "adam_beta_1": 0.5,
            },  # Goyal et al. 2017; Radford et al. 2016
        ),
    ),
    **{name: preset for domain in DOMAINS for name, preset in domain.presets.items()},
}


def preset(name: str) -> Preset:
    """The preset of that name. Raises SpecError, naming the presets there are."""
    if name not in PRESETS:
        near = difflib.get_close_matches(name[:QUOTED_CHARACTERS], PRESETS, n=1)
        hint = f"did you mean {near[0]}?" if near else "pick one of them."
        raise SpecError(
            [
                FieldError(
                    "preset",
                    f"preset is {quoted(name)}, but allowed is {', '.join(PRESETS)}: {hint}",
                )
            ]
        )
    return PRESETS[name]


def parse_assignments(assignments: list[str]) -> dict[str, str]:
    """`["epochs=3", "seed=7"]` as values for `RunSpec.parse`.

    Raises SpecError when an item has no '='.
    """
    values: dict[str, str] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise SpecError(
                [
                    FieldError(
                        "set",
                        f"--set {quoted(text)} has no '=': write it as key=value, such as"
                        " epochs=3.",
                    )
                ]
            )
        values[name.strip(" ")] = value.strip()
    return values
