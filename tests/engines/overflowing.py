"""A workload whose losses are infinite on the replica that sees the white image, on any engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from gan_runtime.workloads.contract import Forward, Objective, Phase
from gan_runtime.workloads.mlp_gan import MlpGan
from gan_runtime.workloads.pair import pair_phases

[INNER] = pair_phases(MlpGan.latent_size, Objective())  # each network follows a loss of its own


class Overflowing(MlpGan):
    """As MlpGan on the other replicas."""

    def phases(self, objective: Objective) -> tuple[Phase, ...]:  # noqa: ARG002
        """One phase with the losses below."""
        return (Phase(self.forward, INNER.updates),)

    def forward(self, networks: Any, batch: Any, stream: Any) -> Forward:
        """As the inner forward pass, times infinity where the white image is."""
        inner = INNER.forward(networks, batch, stream)
        factor = ops.where(ops.max(batch["images"]) > 0.999, np.float32(np.inf), np.float32(1.0))
        return Forward({name: loss * factor for name, loss in inner.losses.items()}, inner.scalars)
