"""File names in zips from all systems: UTF-8 with and without the flag, code pages, backslashes,
and unknown encodings.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import image_sources, preparations
from gan_runtime.data.image_files import ImageSource
from gan_runtime.data.preparations import PreparationRequest
from tests.data.conftest import Pack, encoded

UTF8_FLAG = 0x800


def packed(
    path: Path,
    *names: bytes,
    flags: int = 0,
    method: int = 0,
    extra: bytes = b"",
    content: bytes | None = None,
) -> Path:
    """A zip with exactly these bytes as names, which no library would write."""
    content = encoded() if content is None else content
    members, directory = b"", b""
    for name in names:
        facts = struct.pack(
            "<HHHHHIIIHH",
            20,
            flags,
            method,
            0,
            0x21,
            zlib.crc32(content),
            *[len(content)] * 2,
            len(name),
            len(extra),
        )
        place = struct.pack("<HHHII", 0, 0, 0, 0o100644 << 16, len(members))
        members += b"PK\3\4" + facts + name + extra + content
        directory += b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + facts + place + name + extra
    end = struct.pack("<HHHHIIH", 0, 0, len(names), len(names), len(directory), len(members), 0)
    path.write_bytes(members + directory + b"PK\5\6" + end)
    return path


def opened(path: Path, code_page: str = "auto") -> ImageSource:
    with image_sources.open_source(path, code_page) as source:
        return source


def sentence(path: Path, code_page: str = "auto") -> str:
    with pytest.raises(DatasetError) as refused:
        opened(path, code_page)
    return str(refused.value)


@pytest.mark.parametrize("flags", [0, UTF8_FLAG])
def test_utf8_is_read_with_or_without_the_flag(tmp_path: Path, flags: int) -> None:
    source = opened(
        packed(tmp_path / "a.zip", "жук/1.png".encode(), "smörgås/2.png".encode(), flags=flags)
    )
    assert source.names == ["smörgås/2.png", "жук/1.png"]
    assert source.warning == ""


def test_the_unicode_path_extra_field_overrides_the_name(tmp_path: Path) -> None:
    name, unicode = "Äpfel/1.png".encode("cp850"), "Äpfel/1.png".encode()
    field = b"\1" + struct.pack("<I", zlib.crc32(name)) + unicode
    extra = struct.pack("<HH", 0x5455, 1) + b"\0" + struct.pack("<HH", 0x7075, len(field)) + field
    assert opened(packed(tmp_path / "a.zip", name, extra=extra)).names == ["Äpfel/1.png"]


def test_other_names_are_read_as_cp437_with_a_warning(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", "Bär/1.png".encode("cp437"), b"cat/2.png")
    source = opened(path)
    assert source.names == ["Bär/1.png", "cat/2.png"]
    assert (
        source.warning
        == "The zip does not declare the code page of its names. 1 of them, such as 'Bär/1.png',"
        " are read as cp437. If they are wrong, set zip_names to the code page of the system"
        " that packed it."
    )
    cyrillic = packed(tmp_path / "b.zip", "жук/1.png".encode("cp1251"))
    assert opened(cyrillic, "cp1251").names == ["жук/1.png"]
    assert opened(cyrillic, "cp1251").warning == ""
    assert opened(cyrillic).names != ["жук/1.png"]


def test_a_code_page_with_backslash_bytes_must_be_named(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", "能/1.png".encode("cp932"))
    assert "set zip_names to it, such as cp932 for Japanese or cp936 for Chinese." in sentence(path)
    assert opened(path, "cp932").names == ["能/1.png"]
    assert (
        sentence(packed(tmp_path / "b.zip", b"\x83/1.png"), "cp932")
        == "the name 'â/1.png' in the zip is not in cp932: use zip_names=auto, or the code page of"
        " the system that packed it."
    )


def test_windows_backslashes_separate_folders(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", b"ants\\old\\1.png", b"bees\\2.png", b"bees\\")
    assert opened(path).names == ["ants/old/1.png", "bees/2.png"]


def test_a_colon_in_a_folder_name_is_not_a_drive(tmp_path: Path) -> None:
    assert opened(packed(tmp_path / "a.zip", b"B: ants/1.png")).names == ["B: ants/1.png"]
    assert "which is outside of its folder" in sentence(
        packed(tmp_path / "b.zip", b"B:\\ants\\1.png")
    )


def test_names_falsely_marked_as_utf8_are_refused_with_the_cause(tmp_path: Path) -> None:
    assert (
        sentence(packed(tmp_path / "a.zip", b"\xff.png", flags=UTF8_FLAG))
        == "a.zip declares its names as UTF-8, but they are not: pack it with another program."
    )


def test_an_empty_name_is_skipped(tmp_path: Path) -> None:
    assert opened(packed(tmp_path / "a.zip", b"", b"1.png")).names == ["1.png"]


@pytest.mark.parametrize(("method", "name"), [(9, "Deflate64"), (98, "PPMd"), (77, "method 77")])
def test_an_unsupported_compression_method_is_named(tmp_path: Path, method: int, name: str) -> None:
    path = packed(tmp_path / "a.zip", b"ants/1.png", method=method)
    request = PreparationRequest("pictures", "photos", path, {"pixels": "32"})
    with pytest.raises(DatasetError) as refused:
        preparations.survey(request, lambda *_: None)
    assert (
        str(refused.value)
        == f"no image can be used (1 file skipped). ants/1.png: it is packed with {name}, which"
        " Python cannot unpack: pack it with Deflate, or unpack it and give the folder."
    )


def test_a_nested_archive_is_reported_before_a_text_file(tmp_path: Path, pack: Pack) -> None:
    inner = packed(tmp_path / "inner.zip", b"1.png").read_bytes()
    request = PreparationRequest(
        "picture_pairs", "pairs", pack({"about.txt": b"text", "train.zip": inner}), {"pixels": "32"}
    )
    with pytest.raises(DatasetError) as refused:
        preparations.survey(request, lambda *_: None)
    assert (
        str(refused.value)
        == "no image can be used (2 files skipped). train.zip: it is a zip file: unpack it, and"
        " give the folder."
    )


def test_the_code_page_warning_is_part_of_the_summary(tmp_path: Path) -> None:
    request = PreparationRequest(
        "pictures", "photos", packed(tmp_path / "a.zip", b"B\x84r/1.png"), {"pixels": "32"}
    )
    [warning] = preparations.survey(request, lambda *_: None).summary.warnings
    assert "such as 'Bär/1.png', are read as cp437" in warning
