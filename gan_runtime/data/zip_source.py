"""A zip file as a source of pictures, read member by member.

A zip from someone else may name files outside of its folder, be full of links, or grow without end: such a file is refused as a whole.
"""

from __future__ import annotations

import hashlib
import re
import stat
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.data import picture_files, zip_names
from gan_runtime.data.contract import Progress
from gan_runtime.data.picture_files import is_hidden, readable, refused
from gan_runtime.data.summary import Skip

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
_METHODS = {9: "Deflate64", 20: "Zstandard", 93: "Zstandard", 95: "XZ", 96: "JPEG", 97: "WavPack", 98: "PPMd"}


@dataclass
class ZipSource:
    """See `picture_files.Source`. `code_page`: of the names, see `zip_names`.

    Raises:
        DatasetError: a name that leads out of the folder, a link, a password, more than the limits, or names in another code page.
    """

    path: Path
    bundle: zipfile.ZipFile
    code_page: str = zip_names.AUTO
    names: list[str] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    hidden: int = 0
    warning: str = ""
    _members: dict[str, zipfile.ZipInfo] = field(default_factory=dict)

    def __post_init__(self) -> None:
        listed = self.bundle.infolist()
        decoded = zip_names.member_names(listed, self.code_page)
        self.warning = decoded.warning
        members = [
            (name, member) for name, member in zip(decoded.names, listed, strict=True) if _is_file(name)
        ]
        if len(members) > picture_files.MAX_FILES:
            limit = picture_files.MAX_FILES
            raise refused(self.path, f"holds {len(members):,} files, more than the {limit:,} that are read")
        if sum(member.file_size for _, member in members) > picture_files.MAX_BYTES:
            raise refused(self.path, f"would unpack to more than {picture_files.MAX_BYTES / 1e9:.0f} GB")
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
            raise DatasetError(f"{self.path.name} is encrypted: pack the pictures without a password.")

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
