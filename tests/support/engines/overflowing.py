"""A workload whose losses are infinite on the replica that sees the white image, on any engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from keras import ops

from gan_runtime.base.fields import Fields
from gan_runtime.catalog.pairs import PairOptions
from gan_runtime.workloads import mlp_gan
from gan_runtime.workloads.contract import Batch, Forward, Networks, Noise, Program
from gan_runtime.workloads.pair import UnconditionalPair


@dataclass(frozen=True)
class Overflowing(UnconditionalPair):
    """Like the fully connected GAN on the other replicas; each network follows its own loss."""

    def program(self, options: PairOptions, fields: Fields) -> Program:
        """One phase with the losses of the pair, times infinity where the white image is."""
        (phase,) = super().program(options, fields).phases

        def forward(networks: Networks, batch: Batch, noise: Noise) -> Forward:
            inner = phase.forward(networks, batch, noise)
            factor = ops.where(
                ops.max(batch["images"]) > 0.999, np.float32(np.inf), np.float32(1.0)
            )
            return Forward(
                {name: loss * factor for name, loss in inner.losses.items()}, inner.scalars
            )

        return Program((replace(phase, forward=forward),))


OVERFLOWING = Overflowing(mlp_gan.LATENT_SIZE, mlp_gan.networks)
