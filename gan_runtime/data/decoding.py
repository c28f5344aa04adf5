"""An image file → an image: upright, in sRGB, 8 bits a channel, at the size of the file or smaller.

Metadata never decides whether pixels can be used: metadata that cannot be read is removed, and
counted (`without_metadata`). What changes pixels stays: transparency, EXIF and a color profile.
Sources: PNG, third edition, section 5; JPEG, ITU-T T.81, annex B.
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

SAME_LEVELS = 2  # of 255; a profile that changes no color by more counts as sRGB
SPACES = {"L": "GRAY", "RGB": "RGB ", "CMYK": "CMYK"}  # color space of the profile for each mode
_NO_CACHE = 0x0040  # flag of Little CMS, since several threads use the transform
_SRGB = ImageCms.createProfile("sRGB")


class UnusableProfileError(Exception):
    """A color profile that is damaged, or of another color space."""


def in_srgb(image: Image.Image, profile: bytes) -> Image.Image | None:
    """An image of mode L, RGB or CMYK as RGB; None where it is in sRGB already.

    Raises UnusableProfileError.
    """
    try:
        transform = _transform(profile, image.mode)
        return None if transform is None else ImageCms.applyTransform(image, transform)
    except (ImageCms.PyCMSError, OSError, ValueError, KeyError, TypeError):
        raise UnusableProfileError from None


@lru_cache(maxsize=64)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """The transform to sRGB; None if it changes nothing visible."""
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
    """RGB: grays from black to white, then all mixes of six levels."""
    grays = np.arange(256).repeat(3).reshape(-1, 3)
    mixes = np.stack(np.meshgrid(*[np.arange(0, 256, 51)] * 3), axis=-1).reshape(-1, 3)
    return Image.fromarray(np.concatenate([grays, mixes])[None].astype(np.uint8))


PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
PROFILE_BYTES = (
    1 << 20
)  # Pillow unpacks no more; the profiles of cameras and screens have some kilobytes
_ADOBE, _SCAN, _COMMENT = 0xEE, 0xDA, 0xFE  # JPEG: the color transform, the pixels


def without_metadata(content: bytes) -> bytes | None:
    """The file without unreadable metadata; None for other formats, or if nothing can
    be removed.
    """
    parts = b"".join(_png(content) if content.startswith(PNG) else _jpeg(content))
    return parts if 0 < len(parts) < len(content) else None


def _png(content: bytes) -> Iterator[bytes]:
    """A PNG without optional chunks. A chunk has length, type, data and checksum; a capital letter
    marks required chunks.
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
WHITE = 65_535  # the value of white in 16 bits
# Pillow's limit: 256 MiB of RGB. A small file can expand beyond it and fill the memory.
MAX_PIXELS = 89_478_485
TURNS = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}  # by EXIF orientation; from 5 on, width and height are swapped

# Pillow only warns between one and two times the limit.
warnings.filterwarnings("error", category=Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")  # about odd metadata


class NotUsableError(Exception):
    """An image that cannot become a row. `kind`: one or two words. The message ends a sentence
    about the image.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(frozen=True)
class DecodedImage:
    """An image and its changes as short texts, for counting. `size`: width and height of the
    upright file; the image can be decoded smaller. `is_deep`: the file has 16 bits a channel.
    """

    image: Image.Image
    size: tuple[int, int]
    changes: tuple[str, ...] = ()
    is_deep: bool = False

    def changed(self, image: Image.Image, change: str) -> DecodedImage:
        """A copy with another image and one more change, unless that is ""."""
        return replace(self, image=image, changes=(*self.changes, *filter(None, (change,))))


def decode(file: BinaryIO, white: int = WHITE, side: int | None = None) -> DecodedImage:
    """The image of a file as L, LA, RGB or RGBA.

    `white`: the value of white in a 16-bit file. `side`: the least side of a JPEG, which is then
    decoded at a half, a fourth or an eighth of its size. Raises any error of Pillow: use it within
    `as_not_usable`.
    """
    return _in_srgb(_in_8_bits(_upright(read_image(file, side)), white))


def read_image(file: BinaryIO, side: int | None = None) -> DecodedImage:
    """The image as stored. A file that Pillow cannot open is tried again without its unreadable
    metadata. Raises as `decode`.
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
        content = without_metadata(file.read())
        if content is None:
            raise
        without = _loaded(io.BytesIO(content), side)
        return without.changed(without.image, "unreadable metadata ignored")


@contextlib.contextmanager
def as_not_usable() -> Iterator[None]:
    """Raises NotUsableError for any error of an image in the block."""
    try:
        yield
    except NotUsableError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning, MemoryError):
        raise _too_large() from None
    except UnidentifiedImageError:
        raise NotUsableError("no image", "it is not a JPEG, PNG or WebP image") from None
    except Exception:
        # Pillow raises OSError, SyntaxError, zlib.error and others, by the damaged part.
        raise NotUsableError("damaged", "it is damaged") from None


def _loaded(file: BinaryIO, side: int | None) -> DecodedImage:
    image = Image.open(file, formats=FORMATS)
    if image.width * image.height > MAX_PIXELS:
        raise _too_large()
    size, is_deep = image.size, ";16" in str(getattr(image, "tile", ""))
    frames = "first of several frames" if getattr(image, "is_animated", False) else ""
    if side is not None:
        image.draft(None, (side, side))
    image.load()
    return DecodedImage(image, size, is_deep=is_deep).changed(image, frames)


def _too_large() -> NotUsableError:
    return NotUsableError("too large", f"it has more than {MAX_PIXELS / 1e6:.0f} million pixels")


def _upright(file: DecodedImage) -> DecodedImage:
    """Rotated by its EXIF orientation, where that is valid."""
    try:
        orientation = file.image.getexif().get(ExifTags.Base.Orientation)
    except Exception:  # EXIF is damaged, but the pixels can be intact
        orientation = None
    if not isinstance(orientation, int) or orientation not in TURNS:
        return file
    width, height = file.size
    turned = file.changed(file.image.transpose(TURNS[orientation]), "turned by EXIF")
    return replace(turned, size=(height, width) if orientation >= 5 else (width, height))


def _in_8_bits(file: DecodedImage, white: int) -> DecodedImage:
    if not file.is_deep:
        return file
    bits = white.bit_length()
    change = "16 bits to 8" if white == WHITE else f"{bits} bits in 16 to 8"
    if file.image.mode.startswith("I"):  # gray, which Pillow would clip at 255
        level = (np.arange(WHITE + 1).clip(0, white) * (255.0 / white)).round().astype(np.uint8)
        values = np.asarray(file.image).clip(0, WHITE)
        gray = Image.fromarray(level[values])
        gray.info = {**file.image.info}
        transparent = gray.info.pop("transparency", None)
        if isinstance(transparent, int):  # one of 65,536 values, which 8 bits no longer tell apart
            alpha = np.where(values == transparent, 0, 255).astype(np.uint8)
            gray.putalpha(Image.fromarray(alpha))
        return file.changed(gray, change)
    if white != WHITE:  # Pillow keeps the upper 8 bits of colors
        raise NotUsableError(
            "bits",
            f"it has {bits} bits in 16-bit colors, and only the upper 8 are read: save it with 8"
            " bits",
        )
    colors = file.image.copy()
    transparent = colors.info.get("transparency")
    if isinstance(transparent, tuple):
        colors.info["transparency"] = tuple(level >> 8 for level in transparent)
    return file.changed(colors, change)


def _in_srgb(file: DecodedImage) -> DecodedImage:
    """The image as L, LA, RGB or RGBA, with colors converted by the file's profile."""
    image = _plain(file.image)
    profile = file.image.info.get("icc_profile")
    if not profile:
        return file.changed(*_without_profile(image))
    colors = (
        image.convert("L")
        if image.mode == "LA"
        else image.convert("RGB")
        if image.mode == "RGBA"
        else image
    )
    try:
        changed = in_srgb(colors, profile)
    except UnusableProfileError:
        plain, change = _without_profile(image)
        return file.changed(plain, change).changed(plain, "unusable color profile ignored")
    if changed is None:
        return file.changed(image, "")
    if image is not colors:
        changed.putalpha(image.getchannel("A"))
    return file.changed(changed, "color profile to sRGB")


def _plain(image: Image.Image) -> Image.Image:
    """The image as L, LA, RGB, RGBA or CMYK, without palettes and transparent colors."""
    is_gray = image.mode in ("1", "L", "LA")
    if image.mode == "CMYK":
        return image
    if image.has_transparency_data:
        return image.convert("LA" if is_gray else "RGBA")
    return image.convert("L" if is_gray else "RGB")


def _without_profile(image: Image.Image) -> tuple[Image.Image, str]:
    return (image.convert("RGB"), "print colors to RGB") if image.mode == "CMYK" else (image, "")
