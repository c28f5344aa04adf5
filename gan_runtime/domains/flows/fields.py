"""What a row of a flow holds: a frame, the next one, the frames after that, and numbers of the flow.

The source is (ux, uy, vorticity, obstacle), the target the same flow a moment later, without the obstacle, which stays where
it is. So a target with the source's channels beyond its own is the next source. Frames become values and back in
domains/flows/solver_frames.py, which needs NumPy; the catalog does not.
"""

from __future__ import annotations

from gan_runtime.base.fields import SOURCE, TARGET, Field, Fields

LATER = "later"  # (count, height, width, channels of the target): the frames after the target, oldest first; may be missing
REYNOLDS = "reynolds"  # of the flow, on the obstacle's diameter; the same for all rows of a trajectory
LATTICE_STEP = "lattice_step"  # of the solver, of the source
OBSTACLE_WIDTH = "obstacle_width"  # across the stream, cells of the solver; sets of version 0.2.0 lack it
OBSTACLE_SHIFT = "obstacle_shift"  # so many cells lower than the middle; likewise

FLOW_CHANNELS = ("ux", "uy", "vorticity")  # of a target; a source has the obstacle too, 0 or 1
UX, UY, VORTICITY = range(len(FLOW_CHANNELS))  # their places
OBSTACLE = len(FLOW_CHANNELS)  # its place in a source
HEIGHT, WIDTH = 80, 192  # cells of the solver, and pixels of a frame on its full grid
DIAMETER = 10.0  # of the obstacle, or its side: 1/8 of the height
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


def _flow(*shape: int) -> Field:
    return Field(shape, dtype="float16", odd_channels=ODD_CHANNELS)


def describe(fields: Fields) -> str:
    """A row of a flow in words: "80 × 192, each with the next 3 · Reynolds number"; "" for a row of something else."""
    if REYNOLDS not in fields:
        return ""
    height, width, _ = fields[SOURCE].shape
    following = 1 + (fields[LATER].shape[0] if LATER in fields else 0)
    return (
        f"{height} × {width}, each with the next {'one' if following == 1 else following} · Reynolds number"
    )
