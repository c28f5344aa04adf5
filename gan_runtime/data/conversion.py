"""A picture → a row of bytes: laid on its ground, cut or fitted, resized."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from gan_runtime.data.decoding import WHITE, Decoded, NotUsableError, decoded, explained

NOT_SIDE_BY_SIDE = "not side by side"
SHAPE_TOLERANCE = 0.1  # of two pictures side by side, which are about squares
GROUNDS = {"black": 0, "white": 255, "grey": 128}
FEW_COLORS = 32  # of a label map; a photo has thousands
Resample = Literal["lanczos", "nearest"]
RESAMPLING = {"lanczos": Image.Resampling.LANCZOS, "nearest": Image.Resampling.NEAREST}


@dataclass(frozen=True)
class Target:
    """What all pictures become: `pixels` a side, 1 or 3 `channels`.

    `ground`: 0 to 255, below and beside the picture.

    `cropped`: the middle square is cut out; else the whole picture is fitted in.

    `resample`: "nearest" mixes no colors, for label maps. `white`: the value of white in files of
    16 bits (bit_depth.py).
    """

    pixels: int
    channels: int
    ground: int
    cropped: bool
    resample: Resample = "lanczos"
    white: int = WHITE

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one row."""
        return (self.pixels, self.pixels, self.channels)


@dataclass(frozen=True)
class Converted:
    """One picture as a row.

    `pixels`: uint8 (pixels, pixels, channels), 0 is black. `size`: the width and height that it
    had, upright. `changes`: what was done to it, in a few words each, for counting. `mixed`: how
    many colors it had, where they are few and resizing has mixed them, as those of a label map;
    else 0.
    """

    pixels: NDArray[np.uint8]
    size: tuple[int, int]
    changes: tuple[str, ...]
    mixed: int = 0


def converted(file: BinaryIO, target: Target) -> Converted:
    """A picture as a row. Raises NotUsableError."""
    with explained():
        # Decoded small, a JPEG mixes colors: not where they are labels.
        side = 2 * target.pixels if target.resample == "lanczos" else None
        return _row(decoded(file, target.white, side), target)


def halves(
    file: BinaryIO, left: Target, right: Target, *, any_shape: bool = False
) -> tuple[Converted, Converted]:
    """The left and the right half of a picture, which is about twice as wide as high but for
    `any_shape`. Raises NotUsableError.
    """
    with explained():
        whole = decoded(file, left.white)
        width, height = whole.size
        if not any_shape and not 1 - SHAPE_TOLERANCE <= width / (2 * height) <= 1 + SHAPE_TOLERANCE:
            reason = f"it has {width} × {height} pixels, but a pair is about twice as wide as high"
            raise NotUsableError(NOT_SIDE_BY_SIDE, reason)
        if width % 2:
            raise NotUsableError("odd width", f"it is {width} pixels wide, which cannot be halved")
        half = width // 2
        first, second = (
            Decoded(
                whole.picture.crop((begin, 0, begin + half, height)), (half, height), whole.changes
            )
            for begin in (0, half)
        )
        return _row(first, left), _row(second, right)


def _row(file: Decoded, target: Target) -> Converted:
    width, height = file.size
    side = min(width, height) if target.cropped else max(width, height)
    if side < target.pixels:
        wanted = f"{target.pixels} × {target.pixels}"
        raise NotUsableError("too small", f"it has {width} × {height} pixels, fewer than {wanted}")
    mode = "L" if target.channels == 1 else "RGB"
    flat, laid = _flat(file.picture, target.ground)
    grey = "color to grey" if mode == "L" and flat.mode != "L" else ""
    small = _square(flat.convert(mode), target)
    shape = "" if width == height else "cut to a square" if target.cropped else "fitted in a square"
    resized = (
        ""
        if side == target.pixels
        else "resized"
        if target.resample == "lanczos"
        else "resized by nearest pixel"
    )
    changes = (*file.changes, *filter(None, (laid, grey, shape, resized)))
    mixed = len(flat.getcolors(FEW_COLORS) or ()) if resized == "resized" else 0
    return Converted(np.asarray(small, np.uint8).reshape(target.shape), file.size, changes, mixed)


def _square(picture: Image.Image, target: Target) -> Image.Image:
    size, ground = (target.pixels, target.pixels), (target.ground,) * target.channels
    resample = RESAMPLING[target.resample]
    if target.cropped:
        return ImageOps.fit(picture, size, resample)
    return ImageOps.pad(picture, size, resample, ground if target.channels > 1 else ground[0])


def _flat(picture: Image.Image, ground: int) -> tuple[Image.Image, str]:
    """Without transparency."""
    if picture.mode not in ("LA", "RGBA"):
        return picture, ""
    if picture.getchannel("A").getextrema() == (255, 255):
        return picture.convert(picture.mode[:-1]), ""
    below = Image.new("RGBA", picture.size, (ground, ground, ground, 255))
    return Image.alpha_composite(below, picture.convert("RGBA")), "transparency laid on the ground"
