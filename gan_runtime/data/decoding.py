"""A picture file → a picture: upright, in sRGB, 8 bits a channel, at the size of the file or a part
of it.

What is written about a picture never decides whether its pixels can be used: metadata that cannot
be read is left aside, and counted (`bare`): kept are the pixels, and what changes them, which is
transparency, EXIF and a color profile. Sources: PNG, third edition, section 5; JPEG, ITU-T T.81,
annex B.
"""

from __future__ import annotations

import contextlib
import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageCms, UnidentifiedImageError
from PIL.Image import Transpose

SAME_LEVELS = 2  # of 255: profiles that change no color by more are sRGB, as many programs write it
SPACES = {"L": "GRAY", "RGB": "RGB ", "CMYK": "CMYK"}  # of a profile that fits the mode
_NO_CACHE = 0x0040  # of Little CMS: the transform is used by several threads
_SRGB = ImageCms.createProfile("sRGB")


class UnusableProfileError(Exception):
    """A profile that is damaged, or of another kind of picture."""


def in_srgb(picture: Image.Image, profile: bytes) -> Image.Image | None:
    """A picture of mode L, RGB or CMYK as RGB; None where it is in sRGB as it is.

    Raises UnusableProfileError.
    """
    try:
        transform = _transform(profile, picture.mode)
        return None if transform is None else ImageCms.applyTransform(picture, transform)
    except (ImageCms.PyCMSError, OSError, ValueError, KeyError, TypeError):
        raise UnusableProfileError from None


@lru_cache(maxsize=64)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """None where it changes nothing that can be seen."""
    of_file = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    if of_file.profile.xcolor_space != SPACES[mode]:
        raise UnusableProfileError
    transform = ImageCms.buildTransform(
        of_file, _SRGB, mode, "RGB", flags=ImageCms.Flags(_NO_CACHE)
    )
    if mode == "CMYK":
        return transform
    ramp = _ramp().convert(mode)
    changed = np.asarray(ImageCms.applyTransform(ramp, transform), np.int16)
    return transform if abs(changed - np.asarray(ramp.convert("RGB"))).max() > SAME_LEVELS else None


def _ramp() -> Image.Image:
    """RGB: greys from black to white, then each mix of six levels."""
    greys = np.arange(256).repeat(3).reshape(-1, 3)
    mixes = np.stack(np.meshgrid(*[np.arange(0, 256, 51)] * 3), axis=-1).reshape(-1, 3)
    return Image.fromarray(np.concatenate([greys, mixes])[None].astype(np.uint8))


PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
PROFILE_BYTES = (
    1 << 20
)  # Pillow unpacks no more; the profiles of cameras and screens have some kilobytes
_ADOBE, _SCAN, _COMMENT = 0xEE, 0xDA, 0xFE  # JPEG: the color transform, the pixels


def bare(content: bytes) -> bytes | None:
    """The file without the metadata that cannot be read; None for other formats, and where
    nothing can be left out.
    """
    parts = b"".join(_png(content) if content.startswith(PNG) else _jpeg(content))
    return parts if 0 < len(parts) < len(content) else None


def _png(content: bytes) -> Iterator[bytes]:
    """Chunks: length, type, data, checksum.

    Those with a capital letter are needed for the pixels.
    """
    yield PNG
    place = len(PNG)
    while place + 8 <= len(content):
        size, kind = struct.unpack_from(">I4s", content, place)
        end = place + 12 + size
        data = content[place + 8 : place + 8 + size]
        if (
            kind[:1].isupper()
            or kind in (b"tRNS", b"eXIf")
            or (kind == b"iCCP" and _can_be_unpacked(data))
        ):
            yield content[place:end]
        place = end


def _can_be_unpacked(profile: bytes) -> bool:
    _, separator, packed = profile.partition(b"\0")
    unpacking = zlib.decompressobj()
    try:
        return (
            bool(separator)
            and packed[:1] == b"\0"
            and len(unpacking.decompress(packed[1:], PROFILE_BYTES)) > 0
            and unpacking.eof
        )
    except zlib.error:
        return False


def _jpeg(content: bytes) -> Iterator[bytes]:
    """Segments before the pixels: marker, length, data."""
    if not content.startswith(JPEG):
        return
    yield JPEG
    place = len(JPEG)
    while place + 4 <= len(content):
        filler, marker, size = struct.unpack_from(">BBH", content, place)
        if filler != 0xFF or marker == _SCAN:
            break
        if _is_needed(marker, content[place + 4 : place + 2 + size]):
            yield content[place : place + 2 + size]
        place += 2 + size
    yield content[place:]


def _is_needed(marker: int, data: bytes) -> bool:
    if not (0xE0 <= marker <= 0xEF or marker == _COMMENT):
        return True
    is_profile = data.startswith(b"ICC_PROFILE\0") and len(data) > 14
    return is_profile or data.startswith(b"Exif\0\0") or (marker == _ADOBE and len(data) >= 12)


FORMATS = ("JPEG", "PNG", "WEBP")
WHITE = 65_535  # of 16 bits
# Pillow's limit: 256 MiB of RGB; beyond it a small file may be made to fill the memory
MAX_PIXELS = 89_478_485
TURNS = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}  # by the orientation of EXIF; from the fifth on the picture lies on its side

# Pillow only warns between one and two times the limit.
warnings.filterwarnings("error", category=Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")  # about odd metadata


class NotUsableError(Exception):
    """A picture of which no row can be made.

    `kind`: in one or two words; the text: the end of a sentence about it.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(frozen=True)
class Decoded:
    """A picture and what was done to it, in a few words each, for counting.

    `size`: width and height of the file, upright; the picture may be decoded smaller. `is_deep`:
    the file has 16 bits a channel.
    """

    picture: Image.Image
    size: tuple[int, int]
    changes: tuple[str, ...] = ()
    is_deep: bool = False

    def changed(self, picture: Image.Image, change: str) -> Decoded:
        """With another picture; the change is empty where there is none."""
        return replace(self, picture=picture, changes=(*self.changes, *filter(None, (change,))))


def decoded(file: BinaryIO, white: int = WHITE, side: int | None = None) -> Decoded:
    """The picture of a file as L, LA, RGB or RGBA.

    `white`: the value of white in a file of 16 bits. `side`: a JPEG is decoded at a half, a fourth
    or an eighth of its size where so many pixels are left. Raises NotUsableError, or as
    `explained`.
    """
    return _in_srgb(_in_8_bits(_upright(read(file, side)), white))


def read(file: BinaryIO, side: int | None = None) -> Decoded:
    """As the file has it.

    What Pillow cannot open is tried once more without the metadata that cannot be read. Raises as
    `explained`.
    """
    try:
        return _loaded(file, side)
    except (
        NotUsableError,
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
        MemoryError,
    ):
        raise
    except Exception:
        file.seek(0)
        content = bare(file.read())
        if content is None:
            raise
        without = _loaded(io.BytesIO(content), side)
        return without.changed(without.picture, "unreadable metadata ignored")


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Raises NotUsableError for whatever goes wrong with a picture in the block."""
    try:
        yield
    except NotUsableError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning, MemoryError):
        raise _too_large() from None
    except UnidentifiedImageError:
        raise NotUsableError("no picture", "it is no JPEG, PNG or WebP picture") from None
    except Exception:
        # Pillow raises what the broken part of a file makes it raise: OSError, SyntaxError,
        # zlib.error, …
        raise NotUsableError("damaged", "it is damaged") from None


def _loaded(file: BinaryIO, side: int | None) -> Decoded:
    picture = Image.open(file, formats=FORMATS)
    if picture.width * picture.height > MAX_PIXELS:
        raise _too_large()
    size, is_deep = picture.size, ";16" in str(getattr(picture, "tile", ""))
    frames = "first of several frames" if getattr(picture, "is_animated", False) else ""
    if side is not None:
        picture.draft(None, (side, side))
    picture.load()
    return Decoded(picture, size, is_deep=is_deep).changed(picture, frames)


def _too_large() -> NotUsableError:
    return NotUsableError("too large", f"it has more than {MAX_PIXELS / 1e6:.0f} million pixels")


def _upright(file: Decoded) -> Decoded:
    """Turned as its EXIF says, where that is one of the eight numbers."""
    try:
        orientation = file.picture.getexif().get(ExifTags.Base.Orientation)
    except Exception:  # damaged in one of many ways: it says nothing, and the pixels are whole
        orientation = None
    if not isinstance(orientation, int) or orientation not in TURNS:
        return file
    width, height = file.size
    turned = file.changed(file.picture.transpose(TURNS[orientation]), "turned by EXIF")
    return replace(turned, size=(height, width) if orientation >= 5 else (width, height))


def _in_8_bits(file: Decoded, white: int) -> Decoded:
    if not file.is_deep:
        return file
    bits = white.bit_length()
    change = "16 bits to 8" if white == WHITE else f"{bits} bits in 16 to 8"
    if file.picture.mode.startswith("I"):  # grey, which Pillow would cut off at 255
        level = (np.arange(WHITE + 1).clip(0, white) * (255.0 / white)).round().astype(np.uint8)
        grey = Image.fromarray(level[np.asarray(file.picture).clip(0, WHITE)])
        grey.info = file.picture.info
        return file.changed(grey, change)
    if white != WHITE:  # of colors Pillow keeps the upper 8 bits
        raise NotUsableError(
            "bits",
            f"it has {bits} bits in 16-bit colors, of which the upper 8 are read: save it with 8"
            " bits",
        )
    return file.changed(file.picture, change)


def _in_srgb(file: Decoded) -> Decoded:
    """As L, LA, RGB or RGBA, the colors by the profile of the file."""
    picture = _plain(file.picture)
    profile = file.picture.info.get("icc_profile")
    if not profile:
        return file.changed(*_without_profile(picture))
    colors = (
        picture.convert("L")
        if picture.mode == "LA"
        else picture.convert("RGB")
        if picture.mode == "RGBA"
        else picture
    )
    try:
        changed = in_srgb(colors, profile)
    except UnusableProfileError:
        plain, change = _without_profile(picture)
        return file.changed(plain, change).changed(plain, "unusable color profile ignored")
    if changed is None:
        return file.changed(picture, "")
    if picture is not colors:
        changed.putalpha(picture.getchannel("A"))
    return file.changed(changed, "color profile to sRGB")


def _plain(picture: Image.Image) -> Image.Image:
    """As L, LA, RGB, RGBA or CMYK: palettes and single transparent colors are written out."""
    is_grey = picture.mode in ("1", "L", "LA")
    if picture.mode == "CMYK":
        return picture
    if picture.has_transparency_data:
        return picture.convert("LA" if is_grey else "RGBA")
    return picture.convert("L" if is_grey else "RGB")


def _without_profile(picture: Image.Image) -> tuple[Image.Image, str]:
    return (
        (picture.convert("RGB"), "print colors to RGB") if picture.mode == "CMYK" else (picture, "")
    )
