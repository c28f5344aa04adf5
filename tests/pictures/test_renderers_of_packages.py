"""A package adds a renderer through an entry point."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gan_runtime import pictures
from gan_runtime.catalog.entries import Renderer
from gan_runtime.catalog.table import Table

MODULE = """
from PIL import Image
from gan_runtime.catalog.entries import Renderer

DOTS = Renderer(("dots",), "dots_pictures:draw")

def draw(arrays, classes, limits):
    return Image.fromarray(arrays[0])
"""
POINTS = "[gan_runtime.renderers]\ndots = dots_pictures:DOTS\n"


def test_a_renderer_from_a_package_draws_an_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dots_pictures.py").write_text(MODULE, encoding="utf-8")
    package = tmp_path / "dots-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: dots\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    built_in = {"grey_grid": pictures.RENDERERS["grey_grid"]}
    monkeypatch.setattr(pictures, "RENDERERS", Table(built_in, "gan_runtime.renderers", Renderer))
    assert list(pictures.RENDERERS) == ["grey_grid", "dots"]
    assert pictures.render("dots", (np.full((3, 5), 7, np.uint8),)).size == (5, 3)
