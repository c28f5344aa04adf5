"""Converts an image file to a row of bytes: bit depth, background, cropping or fitting to a square,
and size.

Scanners and cameras store 10, 12 or 14 bits in 16-bit files, which would come out nearly black. The
brightest value of all files determines the bit depth, so that a dark image among bright ones stays
dark.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from gan_runtime.base import formats
from gan_runtime.data import decoding
from gan_runtime.data.contract import Progress
from gan_runtime.data.decoding import (
    WHITE,
    DecodedImage,
    NotUsableError,
    as_not_usable,
    decode,
    read_image,
)
from gan_runtime.data.image_files import MAX_FILE_BYTES, UNREADABLE, ImageSource
from gan_runtime.data.summary import NOT_READABLE, NOT_SIDE_BY_SIDE

SHAPE_TOLERANCE = 0.1  # for two images side by side, each about a square
GROUNDS = {"black": 0, "white": 255, "gray": 128}
CONTRAST_PIXELS = 32  # sides at which contrast is measured
LEAST_CONTRAST = 0.25  # of the contrast on the best ground; less is lost
LEAST_LOST = 0.1  # share of the transparent images that gives a warning
FEW_COLORS = 32  # most colors of a label map; a photo has thousands
Resample = Literal["lanczos", "nearest"]
RESAMPLING = {"lanczos": Image.Resampling.LANCZOS, "nearest": Image.Resampling.NEAREST}


@dataclass(frozen=True)
class Target:
    """The shape of a row: `pixels` per side, 1 or 3 `channels`. `ground`: background behind and
    around the image, 0 to 255. `cropped`: whether to crop to the center square instead of fitting
    the whole image. `resample`: "nearest" mixes no colors, for label maps. `white`: the value of
    white in 16-bit files.
    """

    pixels: int
    channels: int
    ground: int
    cropped: bool
    resample: Resample = "lanczos"
    white: int = WHITE

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of a row."""
        return (self.pixels, self.pixels, self.channels)


@dataclass(frozen=True)
class ConvertedImage:
    """An image as a row.

    `pixels`: uint8 (pixels, pixels, channels), 0 is black. `size`: width and height of the upright
    file. `changes`: short texts, for counting. `mixed`: the number of colors if resizing mixes the
    few colors of a label map, else 0. `contrasts`: of a transparent image on each of GROUNDS, as
    the standard deviation of its brightness; empty for an opaque image.
    """

    pixels: NDArray[np.uint8]
    size: tuple[int, int]
    changes: tuple[str, ...]
    mixed: int = 0
    contrasts: tuple[float, ...] = ()


def convert(file: BinaryIO, target: Target) -> ConvertedImage:
    """An image as a row. Raises NotUsableError."""
    with as_not_usable():
        # A JPEG decoded at a smaller size mixes colors, which must not happen to labels.
        side = 2 * target.pixels if target.resample == "lanczos" else None
        return _row(decode(file, target.white, side), target)


def convert_halves(
    file: BinaryIO, left: Target, right: Target, *, any_shape: bool = False
) -> tuple[ConvertedImage, ConvertedImage]:
    """The left and the right half of an image, which is about twice as wide as high, unless
    `any_shape`. Raises NotUsableError.
    """
    with as_not_usable():
        whole = decode(file, left.white)
        width, height = whole.size
        if not any_shape and not 1 - SHAPE_TOLERANCE <= width / (2 * height) <= 1 + SHAPE_TOLERANCE:
            reason = f"it has {width} × {height} pixels, but a pair is about twice as wide as high"
            raise NotUsableError(NOT_SIDE_BY_SIDE, reason)
        if width % 2:
            raise NotUsableError("odd width", f"it is {width} pixels wide, which cannot be halved")
        half = width // 2
        first, second = (
            DecodedImage(
                whole.image.crop((begin, 0, begin + half, height)), (half, height), whole.changes
            )
            for begin in (0, half)
        )
        return _row(first, left), _row(second, right)


def _row(file: DecodedImage, target: Target) -> ConvertedImage:
    width, height = file.size
    side = min(width, height) if target.cropped else max(width, height)
    if side < target.pixels:
        least = f"{target.pixels} × {target.pixels}"
        raise NotUsableError("too small", f"it has {width} × {height} pixels, fewer than {least}")
    mode = "L" if target.channels == 1 else "RGB"
    flat, laid = _flat(file.image, target.ground)
    gray = "color to gray" if mode == "L" and flat.mode != "L" else ""
    small = _square(flat.convert(mode), target)
    shape = "" if width == height else "cut to a square" if target.cropped else "fitted in a square"
    resized = (
        ""
        if side == target.pixels
        else "resized"
        if target.resample == "lanczos"
        else "resized by nearest pixel"
    )
    changes = (*file.changes, *filter(None, (laid, gray, shape, resized)))
    mixed = len(flat.getcolors(FEW_COLORS) or ()) if resized == "resized" else 0
    pixels = np.asarray(small, np.uint8).reshape(target.shape)
    contrasts = _contrasts(file.image) if laid else ()
    return ConvertedImage(pixels, file.size, changes, mixed, contrasts)


def _square(image: Image.Image, target: Target) -> Image.Image:
    size, ground = (target.pixels, target.pixels), (target.ground,) * target.channels
    resample = RESAMPLING[target.resample]
    if target.cropped:
        return ImageOps.fit(image, size, resample)
    return ImageOps.pad(image, size, resample, ground if target.channels > 1 else ground[0])


def _flat(image: Image.Image, ground: int) -> tuple[Image.Image, str]:
    """Removes transparency; returns the image and the change as text."""
    if image.mode not in ("LA", "RGBA"):
        return image, ""
    if image.getchannel("A").getextrema() == (255, 255):
        return image.convert(image.mode[:-1]), ""
    below = Image.new("RGBA", image.size, (ground, ground, ground, 255))
    return Image.alpha_composite(below, image.convert("RGBA")), "transparency laid on the ground"


def _contrasts(image: Image.Image) -> tuple[float, ...]:
    size = (CONTRAST_PIXELS, CONTRAST_PIXELS)
    small = np.asarray(image.convert("LA").resize(size, Image.Resampling.BOX), np.float32)
    light, opaque = small[..., 0], small[..., 1] / 255
    return tuple(
        float(np.std(light * opaque + ground * (1 - opaque))) for ground in GROUNDS.values()
    )


def ground_warning(contrasts: Sequence[tuple[float, ...]], ground: str) -> str:
    """The warning when transparent images vanish on the ground, such as black ink on black; "" when
    they do not, or no ground is better. `contrasts`: of all images.
    """
    of_images = np.array(list(filter(None, contrasts))).reshape(-1, len(GROUNDS))
    is_lost = of_images < LEAST_CONTRAST * of_images.max(axis=1, keepdims=True)
    lost = dict(zip(GROUNDS, is_lost.sum(axis=0).tolist(), strict=True))
    contrast = dict(zip(GROUNDS, of_images.sum(axis=0).tolist(), strict=True))
    best = min(GROUNDS, key=lambda name: (lost[name], -contrast[name]))
    if best == ground or lost[ground] <= LEAST_LOST * len(of_images):
        return ""
    return (
        f"{formats.count(lost[ground])} of {formats.quantity(len(of_images), 'transparent image')}"
        f" can hardly be seen on the {ground} background: use ground={best}."
    )


WHITES = (255, 1_023, 4_095, 16_383, WHITE)
HEADER = struct.Struct(">8sI4sIIB")  # start of a PNG, up to the bits per channel
FILES_AT_ONCE = 512  # files between two calls of `progress`, which can cancel


def white_of(files: ImageSource, progress: Progress) -> tuple[int, str]:
    """The value of white in the 16-bit files, and a warning where it is not WHITE; WHITE without
    such files.
    """
    brightest = 0
    for number, name in enumerate(files.names):
        if number % FILES_AT_ONCE == 0:
            progress(0, len(files.names), "Checking the files")
        brightest = max(brightest, _brightest(files, name))
        if brightest > WHITES[-2]:
            return WHITE, ""
    if not brightest:
        return WHITE, ""
    white = next(white for white in WHITES if white >= brightest)
    bits = white.bit_length()
    return (
        white,
        (
            f"No value of the 16-bit images is above {formats.count(brightest)}. They are read as"
            f" {bits} bits, with white at {formats.count(white)}."
        ),
    )


def _brightest(files: ImageSource, name: str) -> int:
    """The largest value of a 16-bit file; 0 for other or unreadable files."""
    try:
        with files.open(name) as file:
            head = file.read(HEADER.size)
            if not _is_deep(head) or files.size(name) > MAX_FILE_BYTES:
                return 0
            file.seek(0)
            with as_not_usable():
                image = read_image(file).image
                if image.mode.startswith("I"):
                    return int(np.asarray(image).max())
                colors = image.convert("L" if image.mode == "LA" else "RGB")
                return 256 * int(np.asarray(colors).max()) + 255  # Pillow keeps the upper 8 bits
    except (NotUsableError, *UNREADABLE):
        return 0


def _is_deep(head: bytes) -> bool:
    if len(head) < HEADER.size:
        return False
    signature, _, kind, _, _, bits = HEADER.unpack(head)
    return bool(signature == decoding.PNG and kind == b"IHDR" and bits == 16)


# Decoding releases Python's lock. Each thread can hold an image of 89 million pixels.
THREADS = min(4, os.cpu_count() or 1)
IMAGES_AT_ONCE = 128  # images between two calls of `progress`
Element = TypeVar("Element")
Row = TypeVar("Row")


def read_in_parts(
    items: Sequence[Element], read: Callable[[Element], Row], progress: Progress, noun: str
) -> Iterator[list[tuple[Element, Row]]]:
    """Each item with its row, in parts of IMAGES_AT_ONCE, in order. `noun`: such as "file"."""
    with ThreadPoolExecutor(THREADS) as threads:
        for done in range(0, len(items), IMAGES_AT_ONCE):
            of = formats.quantity(len(items), noun)
            progress(done, len(items), f"Converting {formats.count(done)} of {of}")
            part = items[done : done + IMAGES_AT_ONCE]
            yield list(zip(part, threads.map(read, part), strict=True))


def convert_file(files: ImageSource, name: str, convert: Callable[[BinaryIO], Row]) -> Row:
    """The result of `convert` for a file. Raises NotUsableError for any problem with the file."""
    try:
        if files.size(name) > MAX_FILE_BYTES:
            limit = formats.size(MAX_FILE_BYTES)
            raise NotUsableError("too large", f"its file has more than {limit}")
        with files.open(name) as file:
            return convert(file)
    except OSError as error:
        raise NotUsableError(
            NOT_READABLE, f"it cannot be read ({error.strerror or error})"
        ) from None
    except UNREADABLE:
        raise NotUsableError("damaged", "it cannot be read") from None
