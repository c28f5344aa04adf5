"""Fields of a row of a flow: a frame, the next one, the frames after that, and numbers of the flow;
and the fields that Pix2Pix reads.

The source is (ux, uy, vorticity, obstacle), the target the next frame without the obstacle, which
does not move. So a target with the source's further channels is the next source. The conversion of
frames to values is in domains/flows/lattice.py, which needs NumPy; the catalog does not.
"""

from __future__ import annotations

from typing import Any

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import SOURCE, TARGET, Field, Fields, needed
from gan_runtime.domains.flows.options import LEAST_TILE, MOST_TILE, Pix2pixOptions

# optional, (count, height, width, channels of the target): the frames after the target, in order
LATER = "later"
REYNOLDS = "reynolds"  # based on the obstacle's diameter; equal for all rows of a trajectory
LATTICE_STEP = "lattice_step"  # of the solver, of the source
# Cells of the solver; missing in data sets of version 0.2.0.
OBSTACLE_WIDTH = "obstacle_width"  # across the stream
OBSTACLE_SHIFT = "obstacle_shift"  # below the middle

FLOW_CHANNELS = ("ux", "uy", "vorticity")  # of a target; a source has the obstacle too, 0 or 1
UX, UY, VORTICITY = range(len(FLOW_CHANNELS))  # channel indexes
OBSTACLE = len(FLOW_CHANNELS)  # channel index in a source
HEIGHT, WIDTH = 80, 192  # cells of the solver, and pixels of a frame on its full grid
DIAMETER = 10.0  # of the obstacle, or side of a square: 1/8 of the height
# They change their sign when a flow is turned upside down.
ODD_CHANNELS = (UY, VORTICITY)


def flow_fields(height: int, width: int, later: int = 0) -> Fields:
    """The fields of a data set of flows. `later`: number of frames after the target."""
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
    """A row as text: "80 × 192, each with the next 3 · Reynolds number"; "" for other rows."""
    if REYNOLDS not in fields:
        return ""
    height, width, _ = fields[SOURCE].shape
    following = 1 + (fields[LATER].shape[0] if LATER in fields else 0)
    return (
        f"{height} × {width}, each with the next {'one' if following == 1 else following} ·"
        " Reynolds number"
    )


# ---- fields of Pix2Pix ---------------------------------------------------------------------------

ADVICE = "use data set karman, or paired images"


def fitted(offered: Fields) -> dict[str, Any]:
    """The largest tile, a power of two, within the sources: 128 for images of 200 × 150."""
    if SOURCE not in offered:
        return {}
    side = min(*offered[SOURCE].shape[:2], MOST_TILE)
    return {"tile": 1 << (max(side, LEAST_TILE).bit_length() - 1)}


def reads(options: Pix2pixOptions, offered: Fields) -> Fields:
    """Sources and targets of one size, at least that of a tile; later frames for unrolled steps.

    Raises:
        DatasetError: one of them is missing, too small, or does not allow the flip or the rollout
            of the options.
    """
    source = needed(
        offered,
        SOURCE,
        lambda shape: len(shape) == 3 and min(shape[:2]) >= options.tile,
        f"an image of at least {options.tile} × {options.tile}",
        f"{ADVICE}, or a smaller tile",
    )
    target = needed(
        offered,
        TARGET,
        lambda shape: len(shape) == 3 and shape[:2] == source.shape[:2],
        f"an image of {source.shape[0]} × {source.shape[1]}, as its source is,",
        ADVICE,
    )
    if options.flip == "horizontal" and (source.odd_channels or target.odd_channels):
        raise DatasetError(
            "it has a direction from left to right, which flip=horizontal inverts: use"
            " flip=vertical or none."
        )
    (*_, inputs), (*_, outputs) = source.shape, target.shape
    if outputs > inputs and options.output == "change":
        raise DatasetError(
            f"its target has {outputs} channels and its source {inputs}, so output=change is not"
            " possible: use output=image."
        )
    return {SOURCE: source, TARGET: target, **_later(options, offered, source, target)}


def _later(options: Pix2pixOptions, offered: Fields, source: Field, target: Field) -> Fields:
    if options.unrolled == 1:
        return {}
    (*_, inputs), (*_, outputs) = source.shape, target.shape
    if outputs > inputs:
        raise DatasetError(
            f"its target has {outputs} channels and its source {inputs}, so outputs cannot be"
            " inputs: use unrolled=1."
        )
    more = options.unrolled - 1
    return {
        LATER: needed(
            offered,
            LATER,
            lambda shape: shape[:1] >= (more,) and shape[1:] == target.shape,
            f"{more} × {target.size}, {more} or more frames after the target,",
            "use fewer unrolled steps, or prepare the set with more frames",
        )
    }
