"""What a row of pictures in pairs holds: one to start from, the one to make of it, and of films the frames after that.

Two kinds of sets have these fields. Frames of a flow past an obstacle: the source is (ux, uy, vorticity, obstacle), the target the same
flow a moment later, without the obstacle, which stays where it is. So a target with the source's channels beyond its own is the next
source. Pairs of pictures: both are bytes. Frames become values and back in domains/flows/solver_frames.py, which needs NumPy; the catalog does not.
"""

from __future__ import annotations

from gan_runtime.base.fields import Field, Fields, pictures

SOURCE = "source"  # (height, width, channels)
TARGET = "target"  # (height, width, channels), no more of them than the source has
LATER = "later"  # (count, height, width, channels of the target): the frames after the target, oldest first; may be missing
REYNOLDS = "reynolds"  # of the flow, on the obstacle's diameter; the same for all rows of a trajectory
LATTICE_STEP = "lattice_step"  # of the solver, of the source
OBSTACLE_WIDTH = "obstacle_width"  # across the stream, cells of the solver; sets of version 0.2.0 lack it
OBSTACLE_SHIFT = "obstacle_shift"  # so many cells lower than the middle; likewise

FLOW_CHANNELS = ("ux", "uy", "vorticity")  # of a target; a source has the obstacle too, 0 or 1
UX, UY, VORTICITY = range(len(FLOW_CHANNELS))  # their places
OBSTACLE = len(FLOW_CHANNELS)  # its place in a source
# Upside down, a flow goes down where it went up, and turns the other way round.
ODD_CHANNELS = (UY, VORTICITY)


def flow_fields(height: int, width: int, later: int = 0) -> Fields:
    """The fields of a data set of frames of a flow. `later`: how many frames after the target a row holds."""
    channels = len(FLOW_CHANNELS)
    rows = {
        SOURCE: _flow(height, width, channels + 1),
        TARGET: _flow(height, width, channels),
        REYNOLDS: Field((), dtype="float32"),
        LATTICE_STEP: Field((), dtype="int32", unit="steps"),
        OBSTACLE_WIDTH: Field((), dtype="float32", unit="cells"),
        OBSTACLE_SHIFT: Field((), dtype="float32", unit="cells"),
    }
    return {**rows, LATER: _flow(later, height, width, channels)} if later else rows


def pair_fields(height: int, width: int, source_channels: int = 3, target_channels: int = 3) -> Fields:
    """The fields of a data set of picture pairs. Channels: 1 is grey, 3 is red, green, blue."""
    return {
        SOURCE: pictures(height, width, source_channels),
        TARGET: pictures(height, width, target_channels),
    }


def _flow(*shape: int) -> Field:
    return Field(shape, dtype="float16", odd_channels=ODD_CHANNELS)
