"""A step of two equal phases."""

from __future__ import annotations

from gan_runtime.workloads.contract import Objective, Phase
from gan_runtime.workloads.mlp_gan import MlpGan


class TwiceTheSame(MlpGan):
    """Updates both networks twice, each time from a forward pass of its own, on the same real images."""

    def phases(self, objective: Objective) -> tuple[Phase, ...]:
        """The one phase of the workload, twice."""
        (phase,) = super().phases(objective)
        return phase, phase
