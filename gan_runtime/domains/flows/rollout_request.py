"""A rollout as forms and the command `flow` ask for it."""

from __future__ import annotations

from dataclasses import dataclass

from gan_runtime.domains.flows.evaluation import (
    MOST_CORES,
    USUAL_STEPS,
    RolloutOptions,
    usual_overlap,
    usual_steps,
)
from gan_runtime.engines.tiling.stopwatch import Blend, Way
from gan_runtime.training.checkpoints import Which

__all__ = ["MOST_CORES", "USUAL_BLEND", "USUAL_STEPS", "Wanted", "usual_overlap", "usual_steps"]

USUAL_BLEND: Blend = "hann"


@dataclass(frozen=True)
class Wanted:
    """The run and the values of `RolloutOptions`."""

    run_id: str
    checkpoint: Which = "newest"
    steps: int = USUAL_STEPS
    ways: tuple[Way, ...] = ("map_reduce",)
    cores: int = 1
    overlap: int = 0
    blend: Blend = "none"
    trajectory: int = 0
    start: int = 0
    epoch: int | None = None

    @property
    def state(self) -> str:
        """What an answer calls the weights: "newest", "best", "epoch 3"."""
        return RolloutOptions(checkpoint=self.checkpoint, epoch=self.epoch).state
