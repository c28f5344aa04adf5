"""Opens a folder or a zip file of images, and says which of its files are images. A zip is read
member by member; nothing is unpacked.

An untrusted zip can name files outside its folder, consist of links, or expand without end. Any of
these refuses the whole file.

Names in a zip are bytes: UTF-8 if the zip declares it, else in the code page of the system that
packed it. Many programs (macOS, Info-ZIP) write UTF-8 without declaring it; Windows uses the code
page of its language, and some programs separate folders by backslashes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, cast

from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.data import image_files
from gan_runtime.data.contract import Progress
from gan_runtime.data.image_files import (
    UNREADABLE,
    FolderSource,
    ImageSource,
    is_hidden,
    skipped_folder,
)
from gan_runtime.data.summary import ARCHIVE, NO_IMAGE, OTHER_FORMAT, PACKING, Skip
from gan_runtime.records import run_files

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
FALLBACK = "cp437"  # of the zip format; every byte is a valid character
_SAYS_UTF8 = 0x800  # of the flags of a member
_UNICODE_NAME = 0x7075  # an extra field: the name in UTF-8, and a checksum of the legacy name
_LETTER_BEFORE_BACKSLASH = re.compile(rb"[\x80-\xff]\\")


@dataclass(frozen=True)
class MemberNames:
    """`names`: names of the members, in order. `warning`: a sentence if the names are a guess, else
    "".
    """

    names: list[str]
    warning: str = ""


def member_names(members: Sequence[zipfile.ZipInfo], code_page: str) -> MemberNames:
    """The names of all members in one code page, since one program has packed them.

    Raises:
        DatasetError: the names are not in `code_page`; or, with "auto", they can be in a code page
            where a backslash is part of a character.
    """
    unicode_names = [_name_in_unicode(member) for member in members]
    legacy = [
        _bytes(member) for member, name in zip(members, unicode_names, strict=True) if name is None
    ]
    page = _page(legacy) if code_page == AUTO else code_page
    try:
        names = [
            _bytes(member).decode(page) if name is None else name
            for member, name in zip(members, unicode_names, strict=True)
        ]
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"the name {quoted(error.object.decode(FALLBACK))} in the zip is not in {page}: use"
            " zip_names=auto, or the code page of the system that packed it."
        ) from None
    guessed = (
        [name for name in names if not name.isascii()]
        if code_page == AUTO and page == FALLBACK
        else []
    )
    return MemberNames(names, _warning(guessed))


def _page(legacy: Sequence[bytes]) -> str:
    """UTF-8 where all names are valid in it, which text in another code page rarely is. Raises
    DatasetError as `member_names`.
    """
    try:
        for name in legacy:
            name.decode("utf-8")
    except UnicodeDecodeError:
        odd = next((name for name in legacy if _LETTER_BEFORE_BACKSLASH.search(name)), None)
        if odd is not None:
            raise DatasetError(
                "the zip does not declare the code page of its names, such as"
                f" {quoted(odd.decode(FALLBACK))}: set zip_names to it, such as cp932 for Japanese"
                " or cp936 for Chinese."
            ) from None
        return FALLBACK
    return "utf-8"


def _bytes(member: zipfile.ZipInfo) -> bytes:
    """The stored bytes of a name without declared UTF-8, which Python has decoded by FALLBACK."""
    return member.orig_filename.encode(FALLBACK)


def _name_in_unicode(member: zipfile.ZipInfo) -> str | None:
    """The name if the zip declares UTF-8, else None."""
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
        f"The zip does not declare the code page of its names. {formats.count(len(guessed))} of"
        f" them, such as {quoted(guessed[0])}, are read as {FALLBACK}. If they are wrong, set"
        " zip_names to the code page of the system that packed it."
    )


CHUNK_BYTES = 1 << 20
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
    """A zip as an ImageSource. `code_page`: of the names.

    Raises:
        DatasetError: a name outside of the folder, a link, a password, a size above the limits, or
            names in another code page.
    """

    path: Path
    bundle: zipfile.ZipFile
    code_page: str = AUTO
    names: list[str] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    hidden: int = 0
    warning: str = ""
    _members: dict[str, zipfile.ZipInfo] = field(default_factory=dict)
    _skipped_folders: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        all_members = self.bundle.infolist()
        decoded = member_names(all_members, self.code_page)
        self.warning = decoded.warning
        members = [
            (name, member)
            for name, member in zip(decoded.names, all_members, strict=True)
            if _is_file(name)
        ]
        if len(members) > image_files.MAX_FILES:
            limit = formats.count(image_files.MAX_FILES)
            raise refused(
                self.path,
                f"has {formats.count(len(members))} files, more than the limit of {limit}",
            )
        if sum(member.file_size for _, member in members) > image_files.MAX_BYTES:
            raise refused(self.path, f"unpacks to more than {image_files.MAX_BYTES / 1e9:.0f} GB")
        for name, member in zip(decoded.names, all_members, strict=True):
            self._check(name, member)
        for name, member in members:
            self._sort_in(_with_slashes(name), member)
        self.names = sorted(self._members)

    def _sort_in(self, name: str, member: zipfile.ZipInfo) -> None:
        folder, _, file = name.rpartition("/")
        if skip := skipped_folder(folder):
            if skip.name not in self._skipped_folders:
                self._skipped_folders.add(skip.name)
                self.skipped.append(skip)
        elif is_hidden(file):
            self.hidden += 1
        elif name in self._members:
            self._skip(name, "twice", "the zip has another file of this name")
        elif member.compress_type not in _UNPACKED:
            method = _METHODS.get(member.compress_type, f"method {member.compress_type}")
            self._skip(name, PACKING, f"it is packed with {method}, which Python cannot unpack")
        else:
            self._members[name] = member

    def _skip(self, name: str, kind: str, reason: str) -> None:
        self.skipped.append(Skip.of(name, kind, reason))

    def _check(self, name: str, member: zipfile.ZipInfo) -> None:
        path = _with_slashes(name)
        if "\0" in path or ".." in path.split("/") or path.startswith("/") or _DRIVE.match(path):
            raise refused(self.path, f"has the name {quoted(name)}, which is outside of its folder")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise refused(self.path, f"has the link {quoted(name)}")
        if member.flag_bits & _ENCRYPTED:
            raise DatasetError(
                f"{self.path.name} is encrypted: pack the images without a password."
            )

    def open(self, name: str) -> BinaryIO:
        """Returns at most the bytes that the member's header declares."""
        return cast(BinaryIO, self.bundle.open(self._members[name]))

    def size(self, name: str) -> int:
        """Bytes of a member, as its header declares."""
        return self._members[name].file_size

    def content(self, progress: Progress) -> str:
        """A hash of the zip file, in hexadecimal."""
        digest, size = hashlib.sha256(), self.path.stat().st_size
        try:
            with self.path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    progress(min(file.tell(), size), size, "Reading the file")
                    digest.update(chunk)
        except OSError as error:
            raise DatasetError(
                f"{self.path} cannot be read ({error.strerror}): check the disk."
            ) from None
        return digest.hexdigest()


def refused(path: Path, reason: str) -> DatasetError:
    """The error for a zip that is refused as a whole."""
    return DatasetError(f"{path.name} {reason}, so it is not read: pack only the images again.")


def _with_slashes(name: str) -> str:
    """The name with slashes, since some Windows programs separate folders by backslashes."""
    return name.replace("\\", "/")


def _is_file(name: str) -> bool:
    return bool(name) and not name.endswith(("/", "\\"))


ADVICE = "give a folder or a .zip of images"
FILES_AT_ONCE = 512  # files between two calls of `progress`, which can cancel


@contextlib.contextmanager
def open_source(path: Path, code_page: str = AUTO) -> Iterator[ImageSource]:
    """The files of a folder or a zip file.

    `code_page`: of the names in a zip.

    Raises:
        DatasetError: the path is neither, cannot be read, or is a zip that is damaged or refused.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have that name"
        raise DatasetError(f"{quoted(str(path))} cannot be read ({reason}): {ADVICE}.") from None
    if stat.S_ISDIR(mode):
        yield FolderSource(path)
        return
    if not stat.S_ISREG(mode):  # opening a pipe would block
        raise DatasetError(f"{path} is neither a folder nor a regular file: {ADVICE}.")
    with contextlib.ExitStack() as stack:
        try:
            bundle = stack.enter_context(run_files.open_zip(path, image_files.MAX_MEMBERS))
        except run_files.CrowdedZipError:
            limit = formats.count(image_files.MAX_MEMBERS)
            raise refused(path, f"has more than {limit} files and folders") from None
        except UNREADABLE as error:
            raise _no_zip(path, error) from None
        yield ZipSource(path, bundle, code_page)


def _no_zip(path: Path, error: Exception) -> DatasetError:
    """The error for a file that cannot be opened as a zip."""
    if isinstance(error, OSError) and error.strerror:
        return DatasetError(f"{path.name} cannot be read ({error.strerror}): {ADVICE}.")
    if isinstance(error, UnicodeDecodeError):
        return DatasetError(
            f"{path.name} declares its names as UTF-8, but they are not: pack it with another"
            " program."
        )
    kind = ""
    with contextlib.suppress(OSError), path.open("rb") as file:
        kind = image_files.kind_of(file)
    if kind == image_files.ZIP:
        return DatasetError(
            f"{path.name} is a damaged or incomplete zip file: download it again, or pack it again."
        )
    if kind:
        advice = "unpack it and give its folder" if image_files.holds_files(kind) else ADVICE
        return DatasetError(f"{path.name} is {kind}, not a zip file: {advice}.")
    return DatasetError(
        f"{path.name} is not a zip file, or is damaged: give a folder, or a .zip that opens on this"
        " machine."
    )


@dataclass(frozen=True)
class Contents:
    """The files of a source by their first bytes.

    `images`: sorted; includes files that cannot be read, whose kind is unknown.
    """

    images: list[str]
    skips: list[Skip]


def sort_files(files: ImageSource, progress: Progress) -> Contents:
    """Reads the first bytes of each file."""
    images, skips = [], []
    for number, name in enumerate(files.names):
        if number % FILES_AT_ONCE == 0:
            progress(
                number,
                len(files.names),
                f"Checking {formats.count(number)} of {formats.quantity(len(files.names), 'file')}",
            )
        kind = _kind(files, name)
        if kind == image_files.IMAGE:
            images.append(name)
        else:
            skips.append(_skip(name, kind))
    return Contents(images, skips)


def _skip(name: str, kind: str) -> Skip:
    """The skip of a file that is no image."""
    if image_files.holds_files(kind):
        return Skip.of(name, ARCHIVE, f"it is {kind}")
    if kind in image_files.OTHER_FORMATS:
        return Skip.of(name, OTHER_FORMAT, f"it is {kind}, not a JPEG, PNG or WebP")
    if kind in (image_files.TEXT, image_files.JSON, image_files.XML):
        return Skip.of(name, NO_IMAGE, f"it is {kind}, no image (labels come from folders only)")
    reason = f"it is {kind}, no image" if kind else "it is not a JPEG, PNG or WebP image"
    return Skip.of(name, NO_IMAGE, reason)


def _kind(files: ImageSource, name: str) -> str:
    try:
        with files.open(name) as file:
            header = file.read(image_files.HEADER_BYTES)
    except UNREADABLE:  # skipped with the reason when it is converted
        return image_files.IMAGE
    if not header:
        return image_files.EMPTY
    kind = image_files.kind_of(io.BytesIO(header))
    return kind or (image_files.TEXT if image_files.is_text(header) else "")
