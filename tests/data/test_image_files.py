"""Folders and zip files of images: which files are read, skipped or refused."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import image_files, image_sources, images
from gan_runtime.data.images import ImageOptions
from tests.data.conftest import Pack, encoded
from tests.support.plain_user import without_rights


def quiet(*_: object) -> None:
    """Ignores progress."""


def sentence(path: Path) -> str:
    with pytest.raises(DatasetError) as refused, image_sources.open_source(path):
        pass
    return str(refused.value)


@pytest.mark.parametrize("way", ["pack", "spread"])
def test_names_are_sorted_and_hidden_files_are_counted(
    way: str, request: pytest.FixtureRequest
) -> None:
    hidden = {"b/._1.png": b"x", ".DS_Store": b"x", "b/Thumbs.db": b"x"}
    files = {"b/2.png": b"22", "b/1.png": b"1", "a.png": b"", **hidden}
    with image_sources.open_source(request.getfixturevalue(way)(files)) as source:
        assert source.names == ["a.png", "b/1.png", "b/2.png"]
        assert source.hidden == 3
        assert source.size("b/2.png") == 2
        with source.open("b/2.png") as file:
            assert file.read() == b"22"


@pytest.mark.parametrize("way", ["pack", "spread"])
def test_folders_of_systems_and_hidden_folders_are_skipped_by_name(
    way: str, request: pytest.FixtureRequest
) -> None:
    names = [
        "__MACOSX/ants/._1.png",
        "System Volume Information/1.png",
        "ants/#recycle/1.png",
        "ants/.ipynb_checkpoints/1.png",
        "ants/.ipynb_checkpoints/deep/2.png",
        "ants/LOST+FOUND/1.png",
    ]
    files = {"ants/1.png": encoded(), "bees/1.png": encoded()}
    source = request.getfixturevalue(way)({**files, **dict.fromkeys(names, encoded())})
    survey = images.survey(source, ImageOptions(pixels="32"), quiet)
    assert survey.summary.counts == {"ants": 1, "bees": 1}
    assert [(skip.name, skip.reason) for skip in survey.summary.skipped.first] == [
        ("System Volume Information/", "systems leave folders of this name"),
        ("__MACOSX/", "systems leave folders of this name"),
        ("ants/#recycle/", "systems leave folders of this name"),
        ("ants/.ipynb_checkpoints/", "it is a hidden folder"),
        ("ants/LOST+FOUND/", "systems leave folders of this name"),
    ]
    assert survey.summary.sentences()[:1] == [
        "5 folders skipped: system folder 4 (System Volume Information/, __MACOSX/,"
        " ants/#recycle/, …), hidden folder 1 (ants/.ipynb_checkpoints/)."
    ]


@pytest.mark.parametrize(
    "name",
    [
        "../evil.png",
        "a/../../evil.png",
        "/etc/evil.png",
        "C:/evil.png",
        "c:evil.png",
        "a\\..\\evil.png",
        "\\evil.png",
        "..",
    ],
)
def test_a_zip_with_a_path_outside_its_folder_is_refused_entirely(pack: Pack, name: str) -> None:
    path = pack({"good.png": encoded(), name: encoded()})
    assert (
        sentence(path)
        == f"photos.zip has the name {name!r}, which is outside of its folder, so it is not read:"
        " pack only the images again."
    )


def test_a_name_with_an_embedded_nul_is_refused(pack: Pack) -> None:
    path = pack({"good.pngXevil": encoded()})
    path.write_bytes(path.read_bytes().replace(b"good.pngXevil", b"good.png\0evil"))
    assert "which is outside of its folder" in sentence(path)


def test_a_zip_with_a_link_is_refused_entirely(pack: Pack) -> None:
    path = pack({"good.png": encoded(), "link.png": ("/etc/passwd",)})
    assert sentence(path).startswith("photos.zip has the link 'link.png', so it is not read")


def test_an_encrypted_zip_is_refused(pack: Pack) -> None:
    path = pack({"a.png": encoded()})
    content = bytearray(path.read_bytes())
    content[content.rfind(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    assert sentence(path) == "photos.zip is encrypted: pack the images without a password."


@pytest.mark.parametrize("keep", [10, 60, -20])
def test_a_broken_zip_gives_a_one_sentence_error(pack: Pack, keep: int) -> None:
    path = pack({"a.png": encoded(), "b.png": encoded()})
    path.write_bytes(path.read_bytes()[:keep])
    assert (
        sentence(path)
        == "photos.zip is a damaged or incomplete zip file: download it again, or pack it again."
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a zip file, or is damaged: give a folder, or a .zip that opens on this machine"),
        (encoded(), "an image, not a zip file: give a folder or a .zip of images"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive, not a zip file: unpack it and give its folder"),
        (
            b"\n<!DOCTYPE html><title>Not found",
            "a web page, not a zip file: give a folder or a .zip of images",
        ),
        (
            b"1.png".ljust(257, b"\0") + b"ustar",
            "a tar archive, not a zip file: unpack it and give its folder",
        ),
    ],
)
def test_a_file_of_another_format_is_identified(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "photos.zip").write_bytes(content)
    assert sentence(tmp_path / "photos.zip") == f"photos.zip is {said}."


def test_a_zip_over_the_size_or_file_limit_is_refused_unread(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pack({f"{number}.png": bytes(1_000) for number in range(3)})
    monkeypatch.setattr(image_files, "MAX_BYTES", 2_999)
    assert sentence(path).startswith("photos.zip unpacks to more than 0 GB, so it is not read")
    monkeypatch.setattr(image_files, "MAX_BYTES", 3_000)
    monkeypatch.setattr(image_files, "MAX_FILES", 2)
    assert sentence(path).startswith("photos.zip has 3 files, more than the limit of 2")


def test_a_member_is_read_no_further_than_its_header_declares(pack: Pack) -> None:
    path = pack({"a.png": bytes(5_000)})
    content = bytearray(path.read_bytes())
    place = content.rfind(b"PK\x01\x02") + 24
    content[place : place + 4] = struct.pack("<I", 100)
    path.write_bytes(content)
    with (
        image_sources.open_source(path) as source,
        pytest.raises(zipfile.BadZipFile, match="Bad CRC"),
    ):
        source.open("a.png").read()


def test_a_duplicate_file_name_is_reported(pack: Pack) -> None:
    path = pack({"a.png": b"1"})
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as bundle:
        bundle.writestr("a.png", b"2")
    with image_sources.open_source(path) as source:
        assert source.names == ["a.png"]
        assert [(skip.name, skip.kind) for skip in source.skipped] == [("a.png", "twice")]


def test_links_and_pipes_in_a_folder_are_skipped_by_name(spread: Pack, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.png").write_bytes(encoded())
    root = spread(
        {
            "a.png": encoded(),
            "link.png": (str(tmp_path / "elsewhere" / "secret.png"),),
            "far": ("../elsewhere",),
        }
    )
    os.mkfifo(root / "pipe.png")
    with image_sources.open_source(root) as source:
        assert source.names == ["a.png"]
        reasons = {skip.name: skip.reason for skip in source.skipped}
    assert reasons == {
        "far": "it is a link",
        "link.png": "it is a link",
        "pipe.png": "it is not a regular file",
    }


def test_a_file_replaced_by_a_link_is_not_followed(spread: Pack) -> None:
    root = spread({"a.png": encoded()})
    with image_sources.open_source(root) as source:
        (root / "a.png").unlink()
        (root / "a.png").symlink_to("/etc/passwd")
        with pytest.raises(OSError, match="symbolic"):
            source.open("a.png")


def test_a_source_that_is_neither_folder_nor_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # errors quote only the beginning of a long path
    os.mkfifo("pipe")
    assert (
        sentence(Path("pipe"))
        == "pipe is neither a folder nor a regular file: give a folder or a .zip of images."
    )
    assert (
        sentence(Path("none"))
        == "'none' cannot be read (No such file or directory): give a folder or a .zip of images."
    )


@pytest.mark.parametrize("way", ["pack", "spread"])
def test_the_content_hash_covers_names_and_bytes(way: str, request: pytest.FixtureRequest) -> None:
    def content(files: dict[str, bytes], name: str) -> str:
        with image_sources.open_source(request.getfixturevalue(way)(files, name)) as source:
            return source.content(quiet)

    first = content({"a.png": b"1", "b.png": b"2"}, "one")
    assert content({"a.png": b"1", "b.png": b"2"}, "same") == first
    assert content({"a.png": b"1", "b.png": b"3"}, "other bytes") != first
    assert content({"a.png": b"1", "c.png": b"2"}, "other name") != first


def test_unreadable_files_are_skipped_by_name_with_the_reason(spread: Pack) -> None:
    root = spread(
        {
            "ants/1.png": encoded(),
            "bees/2.png": encoded(),
            "cows/3.png": encoded(),
            "cows/4.png": encoded(),
        }
    )
    with without_rights(root / "bees", root / "cows/3.png"):
        survey = images.survey(root, ImageOptions(pixels="32"), quiet)
    assert {skip.name: skip.reason for skip in survey.summary.skipped.first} == {
        "bees/": "the folder cannot be read (Permission denied)",
        "cows/3.png": "it cannot be read (Permission denied)",
    }
    assert survey.summary.skipped.counts == {"not readable": 2}
    assert survey.summary.counts == {"ants": 1, "cows": 1}


def test_an_unreadable_source_is_reported(
    spread: Pack, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, bundle = spread({"1.png": encoded()}), pack({"1.png": encoded()})
    monkeypatch.chdir(folder.parent)  # errors quote only the beginning of a long path
    with without_rights(folder, bundle):
        assert (
            sentence(Path(folder.name))
            == f"'{folder.name}' cannot be read (Permission denied): give a folder that you can"
            " read."
        )
        assert (
            sentence(bundle)
            == "photos.zip cannot be read (Permission denied): give a folder or a .zip of images."
        )


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with an image 1,500 levels below it, which neither Path.mkdir nor shutil.rmtree
    reaches: both are recursive.
    """
    root, levels = tmp_path / "photos", range(1_500)
    root.mkdir()
    monkeypatch.chdir(root)
    for _ in levels:
        Path("n").mkdir()
        os.chdir("n")
    Path("1.png").write_bytes(encoded())
    yield root
    Path("1.png").unlink()
    for _ in levels:
        os.chdir("..")
        Path("n").rmdir()


def test_folders_may_be_nested_deeper_than_the_recursion_limit(deep: Path) -> None:
    with image_sources.open_source(deep) as source:
        assert source.names == ["n/" * 1_500 + "1.png"]
        with source.open(source.names[0]) as file:
            assert file.read() == encoded()


@pytest.mark.parametrize("way", ["pack", "spread"])
def test_images_are_recognized_by_their_contents(way: str, request: pytest.FixtureRequest) -> None:
    files = {
        "a.jfif": encoded(form="JPEG"),
        "b": encoded(form="WEBP"),
        "c.txt": encoded(),
        "d.png": b"hello",
        "e.jpg": b"PK\3\4",
    }
    with image_sources.open_source(request.getfixturevalue(way)(files)) as source:
        contents = image_sources.sort_files(source, quiet)
    assert contents.images == ["a.jfif", "b", "c.txt"]
    assert [(skip.name, skip.kind, skip.reason) for skip in contents.skips] == [
        ("d.png", "no image", "it is text, no image (labels come from folders only)"),
        ("e.jpg", "archive", "it is a zip file"),
    ]


@pytest.mark.parametrize(
    ("content", "kind", "reason"),
    [
        (
            b"BM\x36\0\0\0\0\0\0\0\x36\0",
            "other format",
            "it is a BMP image, not a JPEG, PNG or WebP",
        ),
        (b"BM,4,0,0\n", "no image", "it is text, no image (labels come from folders only)"),
        (
            b"file_name,text\n1.png,a cat\n",
            "no image",
            "it is text, no image (labels come from folders only)",
        ),
        (b"\0\0\0\x1cftypavif", "other format", "it is an AVIF image, not a JPEG, PNG or WebP"),
        (b"II*\0\x08\0", "other format", "it is a TIFF or raw image, not a JPEG, PNG or WebP"),
        (b"GIF89a", "other format", "it is a GIF image, not a JPEG, PNG or WebP"),
        (b"", "no image", "it is empty, no image"),
        (b"\1\2\3\4", "no image", "it is not a JPEG, PNG or WebP image"),
    ],
)
def test_the_kind_of_a_skipped_file_is_named(
    spread: Pack, content: bytes, kind: str, reason: str
) -> None:
    with image_sources.open_source(spread({"1.jpg": content})) as source:
        [skip] = image_sources.sort_files(source, quiet).skips
    assert (skip.kind, skip.reason) == (kind, reason)


def test_a_folder_of_links_says_how_to_get_the_files(spread: Pack) -> None:
    """As in the cache of Hugging Face, whose snapshots are links to blobs."""
    source = spread({"train/1.png": ("../../blobs/2b",), "README.md": b"# Cats"})
    with pytest.raises(DatasetError) as refused:
        images.survey(source, ImageOptions(), quiet)
    assert str(refused.value).endswith(
        "train/1.png: it is a link: give the files themselves, which `cp -rL FOLDER COPY` makes of"
        " links."
    )
