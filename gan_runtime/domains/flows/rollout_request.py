"""What the job is asked for that feeds a model with its own pictures. Loads no framework, so that pages can ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gan_runtime.engines.tiling.ways import Blend, Way
from gan_runtime.records.flow import KEPT
from gan_runtime.training.checkpoints import Which

# Simulated cores that the job's process has with JAX, whatever is asked for: XLA shares out its threads by their number, and with that its sums.
MOST_CORES = 8
# Frames that are predicted where nobody says how many: four shedding periods of the default flows, of which two must be there for a frequency.
USUAL_STEPS = 100
USUAL_BLEND: Blend = "hann"


@dataclass(frozen=True)
class Wanted:
    """The options of the job. `steps`: how often the model is fed with its own picture; 1 for pairs of pictures, which lead to nothing.
    `ways`: see engines/tiling/ways.py. `cores`: simulated ones, over which the way "map_reduce" shares the tiles. `overlap`: pixels that
    neighboring tiles share. `trajectory`: which of those held out, from 0; `start`: the frame in it that is given. `epoch`: of the weights
    that the run has kept, which then stand in place of the checkpoint's."""

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
        """What a record calls the weights: "newest", "best", "epoch 3"."""
        return self.checkpoint if self.epoch is None else f"{KEPT}{self.epoch}"


def usual_steps(there: int) -> int:
    """Steps where nobody says how many. `there`: frames that the true flow has after the given one."""
    return max(1, min(USUAL_STEPS, there))


def usual_overlap(tile: int | None) -> int:
    """Pixels that tiles share where nobody says how many, merged under Hann's window: three quarters, so that each pixel is seen by a tile in
    which it is not near a border. `tile`: side of the tiles; None where a network sees whole pictures."""
    return 0 if tile is None else 3 * tile // 4


def is_usual(wanted: Wanted, there: int) -> bool:
    """Whether it asks what everybody asks of a data set, so that its scores can be compared with those of other runs: the first trajectory, from
    its first frame on, as many steps as where nobody says how many, of a checkpoint and not of an epoch of one's choice. `there`: steps that this
    trajectory has in all."""
    return wanted.epoch is None and (wanted.trajectory, wanted.start, wanted.steps) == (
        0,
        0,
        usual_steps(there),
    )


def of_options(options: dict[str, Any]) -> Wanted:
    """As it stands in the folder of a job: JSON has lists where the record has tuples."""
    return Wanted(**{**options, "ways": tuple(options["ways"])})
