"""A zip file as a source of pictures, read member by member.

A zip from someone else may name files outside of its folder, be full of links, or grow without end:
such a file is refused as a whole.

Names in a zip are bytes: UTF-8 where it says so, else whatever the packing system used. Many
programs (macOS, Info-ZIP) write UTF-8 and do not say so; Windows writes the code page of its
language, and some programs backslashes between folders.
"""

from __future__ import annotations

import hashlib
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, cast

from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.data import picture_files
from gan_runtime.data.contract import Progress
from gan_runtime.data.picture_files import is_hidden, readable, refused
from gan_runtime.data.summary import Skip

CodePage = Literal[
    "auto",
    "cp437",
    "cp850",
    "cp866",
    "cp1250",
    "cp1251",
    "cp1252",
    "cp1253",
    "cp1254",
    "cp932",
    "cp936",
    "cp949",
    "cp950",
]
AUTO = "auto"
FALLBACK = "cp437"  # of the format itself; it has a letter for every byte
_SAYS_UTF8 = 0x800  # of the flags of a member
_UNICODE_NAME = 0x7075  # an extra field: the name in UTF-8, and a checksum of the other one
_LETTER_BEFORE_BACKSLASH = re.compile(rb"[\x80-\xff]\\")


@dataclass(frozen=True)
class MemberNames:
    """`names`: of the members, in their order.

    `warning`: a sentence where they are a guess; else empty.
    """

    names: list[str]
    warning: str = ""


def member_names(members: Sequence[zipfile.ZipInfo], code_page: str) -> MemberNames:
    """All of a zip in one code page, since one program has packed it.

    Raises:
        DatasetError: they are not in `code_page`; or under "auto", they may be of a code page in
            which a backslash is half a letter.
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
    guessed = (
        [name for name in names if not name.isascii()]
        if code_page == AUTO and page == FALLBACK
        else []
    )
    return MemberNames(names, _warning(guessed))


def _page(legacy: Sequence[bytes]) -> str:
    """UTF-8 where all are that: text in another code page hardly ever is.

    Raises DatasetError as `member_names`.
    """
    try:
        for name in legacy:
            name.decode("utf-8")
    except UnicodeDecodeError:
        odd = next((name for name in legacy if _LETTER_BEFORE_BACKSLASH.search(name)), None)
        if odd is not None:
            raise DatasetError(
                "the zip does not say in which code page its names are, such as"
                f" {quoted(odd.decode(FALLBACK))}: set zip_names to it, such as cp932 for Japanese"
                " or cp936 for Chinese."
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
        f"The zip does not say in which code page its names are: {len(guessed):,} of them, such as"
        f" {quoted(guessed[0])}, are read as {FALLBACK}. If they look garbled, set zip_names to the"
        " code page of the system that packed it."
    )


CHUNK_BYTES = 1 << 20
PACKING = "packing"  # the kind of what is packed in a way that Python cannot unpack
_ENCRYPTED = 0x1  # of the flags of a member
_DRIVE = re.compile(r"[A-Za-z]:(?! )")  # "A: cats" is a folder's name
_UNPACKED = {  # newer versions of Python know Zstandard too
    zipfile.ZIP_STORED,
    zipfile.ZIP_DEFLATED,
    zipfile.ZIP_BZIP2,
    zipfile.ZIP_LZMA,
    getattr(zipfile, "ZIP_ZSTANDARD", zipfile.ZIP_STORED),
}
_METHODS = {
    9: "Deflate64",
    20: "Zstandard",
    93: "Zstandard",
    95: "XZ",
    96: "JPEG",
    97: "WavPack",
    98: "PPMd",
}


@dataclass
class ZipSource:
    """See `picture_files.Source`. `code_page`: of the names, see `member_names`.

    Raises:
        DatasetError: a name that leads out of the folder, a link, a password, more than the limits,
            or names in another code page.
    """

    path: Path
    bundle: zipfile.ZipFile
    code_page: str = AUTO
    names: list[str] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    hidden: int = 0
    warning: str = ""
    _members: dict[str, zipfile.ZipInfo] = field(default_factory=dict)

    def __post_init__(self) -> None:
        listed = self.bundle.infolist()
        decoded = member_names(listed, self.code_page)
        self.warning = decoded.warning
        members = [
            (name, member)
            for name, member in zip(decoded.names, listed, strict=True)
            if _is_file(name)
        ]
        if len(members) > picture_files.MAX_FILES:
            limit = picture_files.MAX_FILES
            raise refused(
                self.path, f"holds {len(members):,} files, more than the {limit:,} that are read"
            )
        if sum(member.file_size for _, member in members) > picture_files.MAX_BYTES:
            raise refused(
                self.path, f"would unpack to more than {picture_files.MAX_BYTES / 1e9:.0f} GB"
            )
        for name, member in zip(decoded.names, listed, strict=True):
            self._check(name, member)
        for name, member in members:
            self._sort_in(_with_slashes(name), member)
        self.names = sorted(self._members)

    def _sort_in(self, name: str, member: zipfile.ZipInfo) -> None:
        if any(map(is_hidden, name.split("/"))):
            self.hidden += 1
        elif name in self._members:
            self._skip(name, "twice", "the zip holds another file of this name")
        elif member.compress_type not in _UNPACKED:
            method = _METHODS.get(member.compress_type, f"method {member.compress_type}")
            self._skip(name, PACKING, f"it is packed with {method}, which Python cannot unpack")
        else:
            self._members[name] = member

    def _skip(self, name: str, kind: str, reason: str) -> None:
        self.skipped.append(Skip(name=readable(name), kind=kind, reason=reason))

    def _check(self, name: str, member: zipfile.ZipInfo) -> None:
        path = _with_slashes(name)
        if "\0" in path or ".." in path.split("/") or path.startswith("/") or _DRIVE.match(path):
            raise refused(self.path, f"holds {quoted(name)}, which leads out of the folder")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise refused(self.path, f"holds the link {quoted(name)}")
        if member.flag_bits & _ENCRYPTED:
            raise DatasetError(
                f"{self.path.name} is encrypted: pack the pictures without a password."
            )

    def open(self, name: str) -> BinaryIO:
        """See Source. Never gives more than the member's header promises."""
        return cast(BinaryIO, self.bundle.open(self._members[name]))

    def size(self, name: str) -> int:
        """See Source."""
        return self._members[name].file_size

    def content(self, progress: Progress) -> str:
        """See Source: of the file as it is."""
        digest, size = hashlib.sha256(), self.path.stat().st_size
        try:
            with self.path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    progress(min(file.tell(), size), size, "Reading the file")
                    digest.update(chunk)
        except OSError as error:
            raise DatasetError(
                f"{self.path} cannot be read ({error.strerror}): look after its disk."
            ) from None
        return digest.hexdigest()


def _with_slashes(name: str) -> str:
    """Some programs of Windows write backslashes between folders."""
    return name.replace("\\", "/")


def _is_file(name: str) -> bool:
    return bool(name) and not name.endswith(("/", "\\"))
