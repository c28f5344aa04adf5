"""A PNG or JPEG file without the metadata that cannot be read: what is written about a picture never decides over its pixels.

Kept are the pixels, and of the metadata what changes them: transparency, EXIF, a color profile. Sources: PNG, third edition, section 5;
JPEG, ITU-T T.81, annex B.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
PROFILE_BYTES = 1 << 20  # Pillow unpacks no more; the profiles of cameras and screens have some kilobytes
_ADOBE, _SCAN, _COMMENT = 0xEE, 0xDA, 0xFE  # JPEG: the color transform, the pixels


def bare(content: bytes) -> bytes | None:
    """The file without the metadata that cannot be read; None for other formats, and where nothing can be left out."""
    parts = b"".join(_png(content) if content.startswith(PNG) else _jpeg(content))
    return parts if 0 < len(parts) < len(content) else None


def _png(content: bytes) -> Iterator[bytes]:
    """Chunks: length, type, data, checksum. Those with a capital letter are needed for the pixels."""
    yield PNG
    place = len(PNG)
    while place + 8 <= len(content):
        size, kind = struct.unpack_from(">I4s", content, place)
        end = place + 12 + size
        data = content[place + 8 : place + 8 + size]
        if kind[:1].isupper() or kind in (b"tRNS", b"eXIf") or (kind == b"iCCP" and _can_be_unpacked(data)):
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
