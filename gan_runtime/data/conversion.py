"""A picture file → a row of bytes: turned as its EXIF says, laid on its ground, cut or fitted, resized."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

FORMATS = ("JPEG", "PNG", "WEBP")
MAX_PIXELS = (
    89_478_485  # Pillow's limit: 256 MiB of RGB; beyond it a small file may be made to fill the memory
)
GROUNDS = {"black": 0, "white": 255, "grey": 128}

# Pillow only warns between one and two times the limit.
warnings.filterwarnings("error", category=Image.DecompressionBombWarning)


@dataclass(frozen=True)
class Target:
    """What all pictures become: `pixels` a side, 1 or 3 `channels`.

    `ground`: 0 to 255, below and beside the picture.

    `cropped`: the middle square is cut out; else the whole picture is fitted in.
    """

    pixels: int
    channels: int
    ground: int
    cropped: bool

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one row."""
        return (self.pixels, self.pixels, self.channels)


class NotUsableError(Exception):
    """A picture of which no row can be made.

    `kind`: in one or two words; the text: the end of a sentence about it.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(frozen=True)
class Converted:
    """One picture as a row.

    `pixels`: uint8 (pixels, pixels, channels), 0 is black. `size`: the width and height that it had, upright. `changes`: what
    was done to it, in a few words each, for counting.
    """

    pixels: NDArray[np.uint8]
    size: tuple[int, int]
    changes: tuple[str, ...]


def converted(file: BinaryIO, target: Target) -> Converted:
    """A picture as a row. Raises NotUsableError."""
    with _opened(file) as picture:
        _check_size(*picture.size, target)
        size = _upright(picture)
        # A JPEG is decoded at a half, a fourth or an eighth of its size where twice the target is left.
        picture.draft(None, (2 * target.pixels, 2 * target.pixels))
        return Converted(_row(ImageOps.exif_transpose(picture), target), size, ())


def halves(file: BinaryIO, target: Target) -> tuple[Converted, Converted]:
    """The left and the right half of a picture. Raises NotUsableError."""
    with _opened(file) as picture:
        width, height = _upright(picture)
        if width % 2:
            raise NotUsableError("odd width", f"it is {width} pixels wide, which cannot be halved")
        _check_size(width // 2, height, target)
        whole = ImageOps.exif_transpose(picture)
        left, right = whole.crop((0, 0, width // 2, height)), whole.crop((width // 2, 0, width, height))
        size = (width // 2, height)
        return Converted(_row(left, target), size, ()), Converted(_row(right, target), size, ())


@contextlib.contextmanager
def _opened(file: BinaryIO) -> Iterator[Image.Image]:
    """A picture that is not decoded yet. Raises NotUsableError for whatever goes wrong with it, here and in the block."""
    try:
        with Image.open(file, formats=FORMATS) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise _too_large()
            yield picture
    except NotUsableError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large() from None
    except UnidentifiedImageError:
        raise NotUsableError("no picture", "it is no JPEG, PNG or WebP picture") from None
    except MemoryError:
        raise _too_large() from None
    except (
        Exception
    ):  # Pillow raises what the broken part of a file makes it raise: OSError, SyntaxError, zlib.error, …
        raise NotUsableError("damaged", "it is damaged") from None


def _upright(picture: Image.Image) -> tuple[int, int]:
    """Its width and height once it is turned as its EXIF says: from the fifth orientation on it lies on its side."""
    width, height = picture.size
    return (height, width) if picture.getexif().get(ExifTags.Base.Orientation, 1) >= 5 else (width, height)


def _check_size(width: int, height: int, target: Target) -> None:
    side = min(width, height) if target.cropped else max(width, height)
    if side < target.pixels:
        wanted = f"{target.pixels} × {target.pixels}"
        raise NotUsableError("too small", f"it has {width} × {height} pixels, fewer than {wanted}")


def _too_large() -> NotUsableError:
    return NotUsableError("too large", f"it has more than {MAX_PIXELS / 1e6:.0f} million pixels")


def _row(picture: Image.Image, target: Target) -> NDArray[np.uint8]:
    mode = "L" if target.channels == 1 else "RGB"
    flat = _flat(picture, target.ground).convert(mode)
    size, ground = (target.pixels, target.pixels), (target.ground,) * target.channels
    small = (
        ImageOps.fit(flat, size, Image.Resampling.LANCZOS)
        if target.cropped
        else ImageOps.pad(flat, size, Image.Resampling.LANCZOS, ground if target.channels > 1 else ground[0])
    )
    return np.asarray(small, np.uint8).reshape(target.shape)


def _flat(picture: Image.Image, ground: int) -> Image.Image:
    """Without transparency, 8 bits a channel."""
    if picture.mode.startswith("I"):  # 16 bits of grey, which Pillow would cut off at 255
        return Image.fromarray(
            (np.asarray(picture, np.float64).clip(0, 65_535) / 257.0).round().astype(np.uint8)
        )
    if not picture.has_transparency_data:
        return picture
    below = Image.new("RGBA", picture.size, (ground, ground, ground, 255))
    return Image.alpha_composite(below, picture.convert("RGBA"))
