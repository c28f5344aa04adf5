"""What the arrays of a run are called in a checkpoint, and whether a checkpoint fits a run;
the same for every engine.
"""

from __future__ import annotations

from collections.abc import Mapping

from gan_runtime.base.errors import CheckpointError
from gan_runtime.catalog import WorkloadEntry
from gan_runtime.engines.contract import Arrays

RATE_FACTOR = "rate_factor"  # what alarms have left of the learning rates
AVERAGE = "average"  # owner of a moving average's arrays in a checkpoint


def average_owners(entry: WorkloadEntry) -> dict[str, str]:
    """By network that is averaged, the owner of its average's arrays: "average" of the first,
    "average_NETWORK" of others.
    """
    first, *others = entry.averages
    return {first: AVERAGE, **{name: f"{AVERAGE}_{name}" for name in others}}


def check_fit(arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises CheckpointError when names or shapes differ from `shapes`, those of the run's
    own state.
    """
    if set(arrays) != set(shapes):
        odd = sorted(set(arrays) ^ set(shapes))[:3]
        raise CheckpointError(
            "the checkpoint does not fit this run's networks and optimizers (differs in"
            f" {', '.join(odd)}): start a new run."
        )
    for name, shape in shapes.items():
        if tuple(arrays[name].shape) != shape:
            raise CheckpointError(
                f"the checkpoint's {name} has shape {arrays[name].shape}, the run's {shape}: start"
                " a new run."
            )
