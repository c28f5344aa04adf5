"""Images of a few pixels, in folders and in zip files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

Color = tuple[int, ...]
RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def encoded(
    color: Color = RED, size: tuple[int, int] = (40, 40), form: str = "PNG", **options: object
) -> bytes:
    """An image of one color."""
    buffer = io.BytesIO()
    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[len(color)]
    Image.new(mode, size, color if len(color) > 1 else color[0]).save(buffer, form, **options)
    return buffer.getvalue()


Pack = Callable[..., Path]


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    """`pack({"cats/1.png": b"…"})` writes a zip file; a link is `(target,)`."""

    def write(members: dict[str, bytes | tuple[str]], name: str = "photos.zip") -> Path:
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as bundle:
            for member, content in members.items():
                info = zipfile.ZipInfo(member)
                info.external_attr = (0o120777 if isinstance(content, tuple) else 0o100644) << 16
                bundle.writestr(info, content[0] if isinstance(content, tuple) else content)
        return path

    return write


@pytest.fixture
def spread(tmp_path: Path) -> Pack:
    """`spread({"cats/1.png": b"…"})` writes a folder; a link is `(target,)`."""

    def write(files: dict[str, bytes | tuple[str]], name: str = "photos") -> Path:
        root = tmp_path / name
        for file, content in files.items():
            path = root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, tuple):
                path.symlink_to(content[0])
            else:
                path.write_bytes(content)
        return root

    return write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """GAN_DATA_DIR: an empty folder, with no Keras cache next to it."""
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("GAN_DATA_DIR", str(path))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    return path
