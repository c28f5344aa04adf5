"""Sample grids: a record names a file; only a whole PNG in the run's own samples folder is read."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import pytest

from gan_runtime.base.errors import PictureError
from gan_runtime.records import image_files
from gan_runtime.records.run_folder import RunDir
from tests.support.small_pictures import png


def made_of(width: int, height: int, pixels: bytes) -> bytes:
    """A PNG with valid checksums and arbitrary pixel data."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run_dir = RunDir(tmp_path / "quick-0001")
    run_dir.samples.mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(png())
    return run_dir


def test_a_grid_in_the_samples_folder_is_read(run: RunDir) -> None:
    (run.samples / "epoch-00001.png").write_bytes(png())
    assert image_files.read_grid(run, "samples/epoch-00001.png") == png()


@pytest.mark.parametrize(
    "file",
    [
        *(
            "/etc/passwd",
            "../secret.png",
            "samples/../../secret.png",
            "samples/a/b.png",
            "samples/.png",
            "spec.json",
            "",
        ),
        *(
            "samples/epoch-1.gif",
            "samples/epoch-1.png\n",
            "samples/epoch-٣.png",
            f"samples/{'x' * 5_000}.png",
            "samples/\0.png",
        ),
    ],
)
def test_an_unsafe_file_name_is_refused_before_opening(run: RunDir, file: str) -> None:
    with pytest.raises(
        PictureError, match="its name is not that of a PNG file in the run's samples folder"
    ):
        image_files.read_grid(run, file)


def test_missing_files_links_folders_and_pipes_are_refused(run: RunDir) -> None:
    (run.samples / "link.png").symlink_to(run.path.parent / "secret.png")
    (run.samples / "folder.png").mkdir()
    os.mkfifo(run.samples / "pipe.png")
    for name, reason in (
        ("none", "the file is missing"),
        ("link", "it cannot be read"),
        ("folder", "it is not a regular file|it cannot be read"),
        ("pipe", "it is not a regular file"),
    ):
        with pytest.raises(PictureError, match=reason):
            image_files.read_grid(run, f"samples/{name}.png")


def test_a_samples_folder_that_is_a_link_is_not_followed(run: RunDir, tmp_path: Path) -> None:
    run.samples.rmdir()
    run.samples.symlink_to(tmp_path)
    with pytest.raises(PictureError, match="it cannot be read"):
        image_files.read_grid(run, "samples/secret.png")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a PNG image"),
        (b"no picture at all", "not a PNG image"),
        (png()[:-20], "a damaged PNG image"),
        (png()[:60] + bytes([png()[60] ^ 1]) + png()[61:], "a damaged PNG image"),
        (made_of(8, 8, b"no pixels, with the right checksum"), "a damaged PNG image"),
        (
            made_of(30_000, 30_000, b""),
            r"it has 30000 × 30000 pixels, but at most 4,096 a side are allowed",
        ),
        (b"\0" * (image_files.MAX_GRID_BYTES + 1), "it has more than 20,000,000 bytes"),
    ],
)
def test_invalid_or_oversized_images_are_refused(run: RunDir, content: bytes, reason: str) -> None:
    (run.samples / "epoch-00001.png").write_bytes(content)
    with pytest.raises(PictureError, match=reason):
        image_files.read_grid(run, "samples/epoch-00001.png")


def test_an_image_of_the_maximum_size_is_accepted() -> None:
    image_files.check_grid(png(image_files.MAX_SIDE, image_files.MAX_SIDE))
