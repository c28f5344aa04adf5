"""What a row of a flow holds: a frame, the next one, the frames after that, and numbers of the
flow.

The source is (ux, uy, vorticity, obstacle), the target the same flow a moment later, without the
obstacle, which stays where it is. So a target with the source's channels beyond its own is the next
source. Frames become values and back in domains/flows/lattice.py, which needs NumPy; the catalog
does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import SOURCE, TARGET, Field, Fields, needed

if TYPE_CHECKING:
    from gan_runtime.domains.flows.entry import Pix2pixOptions

# (count, height, width, channels of the target): the frames after the target, oldest first; may be
# missing
LATER = "later"
REYNOLDS = (  # of the flow, on the obstacle's diameter; the same for all rows of a trajectory
    "reynolds"
)
LATTICE_STEP = "lattice_step"  # of the solver, of the source
OBSTACLE_WIDTH = (  # across the stream, cells of the solver; sets of version 0.2.0 lack it
    "obstacle_width"
)
OBSTACLE_SHIFT = "obstacle_shift"  # so many cells lower than the middle; likewise

FLOW_CHANNELS = ("ux", "uy", "vorticity")  # of a target; a source has the obstacle too, 0 or 1
UX, UY, VORTICITY = range(len(FLOW_CHANNELS))  # their places
OBSTACLE = len(FLOW_CHANNELS)  # its place in a source
HEIGHT, WIDTH = 80, 192  # cells of the solver, and pixels of a frame on its full grid
DIAMETER = 10.0  # of the obstacle, or its side: 1/8 of the height
# Upside down, a flow goes down where it went up, and turns the other way round.
ODD_CHANNELS = (UY, VORTICITY)


def flow_fields(height: int, width: int, later: int = 0) -> Fields:
    """The fields of a data set of frames of a flow.

    `later`: how many frames after the target a row holds.
    """
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
    """A row of a flow in words: "80 × 192, each with the next 3 · Reynolds number"; "" for a
    row of something else.
    """
    if REYNOLDS not in fields:
        return ""
    height, width, _ = fields[SOURCE].shape
    following = 1 + (fields[LATER].shape[0] if LATER in fields else 0)
    return (
        f"{height} × {width}, each with the next {'one' if following == 1 else following} ·"
        " Reynolds number"
    )


# ---- offered fields ------------------------------------------------------------------------------
# What Pix2Pix reads of a data set, and which of its options follow the size of the images.

LEAST_TILE, MOST_TILE = 16, 512
ADVICE = "use data set karman, or paired images"


def fitted(offered: Fields) -> dict[str, Any]:
    """The largest tile, a power of two, for which the sources have room: 128 for images of
    200 × 150.
    """
    if SOURCE not in offered:
        return {}
    room = min(*offered[SOURCE].shape[:2], MOST_TILE)
    return {"tile": 1 << (max(room, LEAST_TILE).bit_length() - 1)}


def reads(options: Pix2pixOptions, offered: Fields) -> Fields:
    """Sources and targets of one size, not smaller than a tile; the frames after the target where
    steps are unrolled.

    Raises:
        DatasetError: one of them is missing, or too small, or may not be flipped or fed back as the
            options say.
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
            "it has a direction from left to right, which flip=horizontal would turn round: use"
            " flip=vertical or none."
        )
    (*_, given), (*_, made) = source.shape, target.shape
    if made > given and options.output == "change":
        raise DatasetError(
            f"its target has {made} channels and its source {given}, so that a change cannot be"
            " added to it: use output=image."
        )
    return {SOURCE: source, TARGET: target, **_later(options, offered, source, target)}


def _later(options: Pix2pixOptions, offered: Fields, source: Field, target: Field) -> Fields:
    if options.unrolled == 1:
        return {}
    (*_, given), (*_, made) = source.shape, target.shape
    if made > given:
        raise DatasetError(
            f"its target has {made} channels and its source {given}, so that what is made cannot be"
            " fed back: use unrolled=1."
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
