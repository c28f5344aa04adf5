"""The names in a zip as text. A zip stores bytes: UTF-8 where it says so, else whatever the packing system used.

Many programs (macOS, Info-ZIP) write UTF-8 and do not say so; Windows writes the code page of its language, and some programs
backslashes between folders.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gan_runtime.base.errors import DatasetError, quoted

CodePage = Literal[
    "auto", "cp437", "cp850", "cp866", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp932", "cp936", "cp949", "cp950"
]  # fmt: skip
AUTO = "auto"
FALLBACK = "cp437"  # of the format itself; it has a letter for every byte
_SAYS_UTF8 = 0x800  # of the flags of a member
_UNICODE_NAME = 0x7075  # an extra field: the name in UTF-8, and a checksum of the other one
_LETTER_BEFORE_BACKSLASH = re.compile(rb"[\x80-\xff]\\")


@dataclass(frozen=True)
class MemberNames:
    """`names`: of the members, in their order. `warning`: a sentence where they are a guess; else empty."""

    names: list[str]
    warning: str = ""


def member_names(members: Sequence[zipfile.ZipInfo], code_page: str) -> MemberNames:
    """All of a zip in one code page, since one program has packed it.

    Raises:
        DatasetError: they are not in `code_page`; or under "auto", they may be of a code page in which a backslash is half a letter.
    """
    known = [_name_in_unicode(member) for member in members]
    legacy = [_bytes(member) for member, name in zip(members, known, strict=True) if name is None]
    page = _page(legacy) if code_page == AUTO else code_page
    try:
        names = [
            _bytes(member).decode(page) if name is None else name
            for member, name in zip(members, known, strict=True)
        ]
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"the name {quoted(error.object.decode(FALLBACK))} in the zip is not in {page}: "
            "use zip_names=auto, or the code page of the system that packed it."
        ) from None
    guessed = [name for name in names if not name.isascii()] if code_page == AUTO and page == FALLBACK else []
    return MemberNames(names, _warning(guessed))


def _page(legacy: Sequence[bytes]) -> str:
    """UTF-8 where all are that: text in another code page hardly ever is. Raises DatasetError as `member_names`."""
    try:
        for name in legacy:
            name.decode("utf-8")
    except UnicodeDecodeError:
        odd = next((name for name in legacy if _LETTER_BEFORE_BACKSLASH.search(name)), None)
        if odd is not None:
            raise DatasetError(
                f"the zip does not say in which code page its names are, such as {quoted(odd.decode(FALLBACK))}: "
                "set zip_names to it, such as cp932 for Japanese or cp936 for Chinese."
            ) from None
        return FALLBACK
    return "utf-8"


def _bytes(member: zipfile.ZipInfo) -> bytes:
    """As stored in a zip that does not say UTF-8, which Python reads as its fallback."""
    return member.orig_filename.encode(FALLBACK)


def _name_in_unicode(member: zipfile.ZipInfo) -> str | None:
    """The name where the zip says that it is UTF-8; None where it does not."""
    if member.flag_bits & _SAYS_UTF8:
        return member.orig_filename
    extra = member.extra
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        content, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == _UNICODE_NAME and content[1:5] == struct.pack("<I", zlib.crc32(_bytes(member))):
            return content[5:].decode("utf-8", "replace")
    return None


def _warning(guessed: Sequence[str]) -> str:
    if not guessed:
        return ""
    return (
        f"The zip does not say in which code page its names are: {len(guessed):,} of them, such as {quoted(guessed[0])}, are read as "
        f"{FALLBACK}. If they look garbled, set zip_names to the code page of the system that packed it."
    )
