"""What Pix2Pix reads of a data set, and which of its options follow the size of the images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import SOURCE, TARGET, Field, Fields, needed
from gan_runtime.domains.flows.fields import LATER

if TYPE_CHECKING:
    from gan_runtime.domains.flows.entry import Pix2pixOptions

LEAST_TILE, MOST_TILE = 16, 512
ADVICE = "use data set karman, or pairs of pictures"


def fitted(offered: Fields) -> dict[str, Any]:
    """The largest tile, a power of two, for which the sources have room: 128 for images of 200 × 150."""
    if SOURCE not in offered:
        return {}
    room = min(*offered[SOURCE].shape[:2], MOST_TILE)
    return {"tile": 1 << (max(room, LEAST_TILE).bit_length() - 1)}


def reads(options: Pix2pixOptions, offered: Fields) -> Fields:
    """Sources and targets of one size, not smaller than a tile; the frames after the target where steps are unrolled.

    Raises:
        DatasetError: one of them is missing, or too small, or may not be flipped or fed back as the options say.
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
            "it has a direction from left to right, which flip=horizontal would turn round: use flip=vertical or none."
        )
    (*_, given), (*_, made) = source.shape, target.shape
    if made > given and options.output == "change":
        raise DatasetError(
            f"its target has {made} channels and its source {given}, so that a change cannot be added to it: use output=image."
        )
    return {SOURCE: source, TARGET: target, **_later(options, offered, source, target)}


def _later(options: Pix2pixOptions, offered: Fields, source: Field, target: Field) -> Fields:
    if options.unrolled == 1:
        return {}
    (*_, given), (*_, made) = source.shape, target.shape
    if made > given:
        raise DatasetError(
            f"its target has {made} channels and its source {given}, so that what is made cannot be fed back: use unrolled=1."
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
