"""Named starting points for a run, and the reading of `key=value` pairs from the command line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gan_runtime.base.errors import QUOTED_CHARACTERS, FieldError, SpecError, quoted


@dataclass(frozen=True)
class Caution:
    """What was seen to go wrong with a preset from `least` of `option` on while `alike` is untouched, and what repairs it."""

    option: str
    least: float
    alike: tuple[str, ...]
    text: str
    repair: dict[str, Any]

    def concerns(self, chosen: Mapping[str, Any], preset: Mapping[str, Any]) -> bool:
        """Whether it was seen at these values of all options, flat; `preset`: those that the preset gives them."""
        untouched = all(chosen.get(name) == preset[name] for name in (*self.alike, *self.repair))
        return untouched and chosen[self.option] >= self.least


@dataclass(frozen=True)
class Preset:
    """A named starting point. `suggestions`: values worth trying, offered as buttons beside the field."""

    title: str
    summary: str
    values: dict[str, Any]
    suggestions: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    caution: Caution | None = None


PRESETS: dict[str, Preset] = {
    "quick": Preset(
        title="Quick: digits in about a minute",
        summary="The paper's DCGAN on the embedded digits: small batches, higher rates, Adam with beta 1 = 0.5, and the images of the generator's moving average show digits in about a minute.",
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
        summary="The study's setting: eight cores, bfloat16, Adam(1e-4). Batch 64, 128, 256 or 512.",
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
            text="With the rate and momentum of Table 1, batches of 256 and 512 showed strokes and no digits after 30 epochs on "
            "10,000 images (docs/dcgan.md); on all 60,000 this was not tried. A rate that grows with the batch and Adam's beta 1 = "
            "0.5 showed digits.",
            repair={
                "learning_rate_scaling": "linear",
                "adam_beta_1": 0.5,
            },  # Goyal et al. 2017; Radford et al. 2016
        ),
    ),
    "showers": Preset(
        title="Showers: CERN's 3DGAN, cut down for two cores",
        summary="Networks with 4 channels on showers of 17 × 17 × 25 cells, which are simulated here first: small batches, rates that fall, and "
        "few random numbers a shower give showers within minutes (docs/3dgan.md).",
        values={
            "workload": "shower_3dgan",
            "dataset": "showers_tiny",
            "size": "tiny",
            "replicas": 1,
            "latent_size": 16,  # decision 42; with 254 random numbers the mean shower drowns in noise for a thousand steps
            "angle_gain": 6.0,  # measured angles of the tiny grid differ by 0.17 rad, so now by 1
            "norm_momentum": 0.9,  # else D judges what G made a hundred updates ago
            "batch_size_global": 8,  # nearly as many showers a second as with 64, and eight times the updates
            "epochs": 6,
            "learning_rate_schedule": "cosine_restarts",  # one cycle: the last weights do not oscillate
            "restart_epochs": 6,
            "steps_per_loop": 25,
            "profile_steps": 5,
            "weight_snapshots": "yes",  # for the Physics page, epoch by epoch
        },
    ),
    "karman": Preset(
        title="Kármán street: KIT's Pix2Pix, cut down for two cores",
        summary="A small U-Net learns the next frame of a flow past an obstacle, 40 × 96 pixels, which is simulated here first: minutes of "
        "training. Fed back into itself it makes a film (docs/pix2pix.md).",
        values={
            "workload": "pix2pix",
            "dataset": "karman_small",
            "size": "small",
            "tile": 32,  # of 40 × 96 pixels
            "replicas": 1,
            "batch_size_global": 32,
            "epochs": 90,
            "learning_rate_generator": 1e-3,
            "learning_rate_schedule": "cosine_restarts",  # one cycle: the last weights do not oscillate
            "restart_epochs": 90,
            "output": "change",  # from frame to frame little changes
            "weight_l1": 4000.0,  # a frame has one right successor: D may only sharpen it
            "dropout": 0.0,  # noise without use
            "norm_momentum": 0.99,  # films are made by the stored statistics
            "flip": "vertical",
            "input_noise": 0.02,  # films are fed with their own errors
            "unrolled": 3,
            "steps_per_loop": 10,
            "weight_snapshots": "yes",  # to iterate epoch by epoch
        },
    ),
}


def preset(name: str) -> Preset:
    """The preset of that name. Raises SpecError, naming the presets there are."""
    if name not in PRESETS:
        near = difflib.get_close_matches(name[:QUOTED_CHARACTERS], PRESETS, n=1)
        hint = f"did you mean {near[0]}?" if near else "pick one of them."
        raise SpecError(
            [FieldError("preset", f"preset is {quoted(name)}, but allowed is {', '.join(PRESETS)}: {hint}")]
        )
    return PRESETS[name]


def parse_assignments(assignments: list[str]) -> dict[str, str]:
    """`["epochs=3", "seed=7"]` as values for `RunSpec.parse`. Raises SpecError when an item has no '='."""
    values: dict[str, str] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise SpecError(
                [
                    FieldError(
                        "set", f"--set {quoted(text)} has no '=': write it as key=value, such as epochs=3."
                    )
                ]
            )
        values[name.strip(" ")] = value.strip()
    return values
