"""What a GAN system must say about itself, so that any engine can train it.

A training step is a sequence of phases. A phase makes ONE forward pass, which gives named losses, and then changes one
or more networks, each following one of these losses. That covers:

* DCGAN: one phase, generator and discriminator updated from the same forward pass;
* equations 4 and 5 of the paper: k discriminator phases, each on real images of its own, then one generator phase;
* 3DGAN: four phases; Pix2Pix: two.

The engine turns each update into gradients, all-reduce and apply, and scales the losses for the replicas, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Tensor = Any
Networks = Mapping[str, Any]
Batch = Mapping[str, Tensor]


class Noise(Protocol):
    """Random numbers of one step on one replica, keyed by (seed, step, replica). The engine provides it."""

    def normal(self, rows: int, columns: int) -> Tensor:
        """This replica's `rows` of the global batch's standard normal draw: float32 (rows, columns)."""
        ...

    def dropout(self, values: Tensor, rate: float) -> Tensor:
        """`values` with a share `rate` set to zero and the rest scaled up; another mask on every replica."""
        ...


@dataclass(frozen=True)
class Objective:
    """What the networks are trained towards, as the options of the run say (gan_runtime/spec/objective.py).

    `real_target`: D's target for real images, 1 minus the label smoothing. `r1_weight`: gamma of the R1 penalty, 0 for none.
    `loss_scaling`: the engine multiplies each network's loss by a factor of its own, as float16 needs.
    """

    generator_loss: Literal["non_saturating", "minimax"] = "non_saturating"
    updates: Literal["together", "in_turn"] = "together"
    discriminator_steps: int = 1
    real_target: float = 1.0
    r1_weight: float = 0.0
    loss_scaling: bool = False


@dataclass(frozen=True)
class Forward:
    """The outcome of one forward pass.

    `losses`: named float32 scalars, each a plain mean over this replica's batch. `scalars`: further per-step numbers.
    """

    losses: Mapping[str, Tensor]
    scalars: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """Changes the weights of `network` along the gradient of `loss`."""

    network: str
    loss: str


@dataclass(frozen=True)
class Phase:
    """One forward pass and the updates that share it. `real_batch`: which of the step's batches of real images it sees.

    Updates of one loss share its backward pass too, and its loss scale.
    """

    forward: Callable[[Networks, Batch, Noise], Forward]
    updates: tuple[Update, ...]
    real_batch: int = 0


class Workload(Protocol):
    """One GAN system. Plain members, no base class."""

    name: str
    image_shape: tuple[int, int, int]  # (height, width, channels), values in [-1, 1]
    latent_size: int

    def phases(self, objective: Objective) -> tuple[Phase, ...]:
        """The phases of one step, in their order."""
        ...

    def networks(self) -> dict[str, Any]:
        """New, untrained keras models by name; their weights come from the framework's seed."""
        ...

    def scores(self, networks: Networks, batch: Batch, latents: Tensor) -> dict[str, Tensor]:
        """D's probability of "real", in [0, 1], per image: {"real": (B,), "fake": (B,)}; inference mode."""
        ...

    def preview(self, networks: Networks, latents: Tensor, training: bool = False) -> Tensor:
        """Images for given latents: float32 (N, height, width, channels) in [-1, 1]; `training`: batch norm over this batch."""
        ...
