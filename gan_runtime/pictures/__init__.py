"""Renderers: arrays to images, by name. NumPy and Pillow alone: no framework, run or database.

A workload's catalog entry names the renderer of each array (`catalog.entries.Picture`). Values of
images are from -1 to 1; a domain's renderers define their own. NaN is black.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.base import disk
from gan_runtime.base.importing import loaded
from gan_runtime.catalog.domain import rows_of_domains
from gan_runtime.catalog.entries import Renderer
from gan_runtime.catalog.table import Table
from gan_runtime.pictures.sheet import OF_AN_EPOCH, SheetLimits, whole

__all__ = ["LABELS", "RENDERERS", "SheetLimits", "render", "save", "save_film", "whole"]

FILM_PIXELS, FRAME_MS = 256, 120  # about the longer side, at least; between two images
LABELS = "labels"  # name of the labels among the arrays of a renderer

RENDERERS: MutableMapping[str, Renderer] = {
    "grey_grid": Renderer(("images",), "gan_runtime.pictures.sheet:grey_grid"),
    "rgb_grid": Renderer(("images",), "gan_runtime.pictures.sheet:rgb_grid"),
    "labelled_grid": Renderer(("images", LABELS), "gan_runtime.pictures.sheet:labelled_grid"),
    "filmstrip": Renderer(("sequences",), "gan_runtime.pictures.sheet:filmstrip"),
}
RENDERERS = Table(
    RENDERERS, "gan_runtime.renderers", Renderer, partial(rows_of_domains, "renderers")
)


def render(
    name: str,
    arrays: tuple[NDArray[np.generic], ...],
    classes: tuple[str, ...] = (),
    limits: SheetLimits = OF_AN_EPOCH,
) -> Image.Image:
    """Draws the arrays: images float32 (N, height, width, 1 or 3), sequences (N, frames, height,
    width, 1 or 3), labels whole numbers (N,).

    `classes`: the names of the labels 0, 1, 2, …

    Raises:
        ValueError: no such renderer, or arrays that it does not draw.
    """
    if name not in RENDERERS:
        raise ValueError(f"there is no renderer '{name}': use {', '.join(RENDERERS)}.")
    renderer = RENDERERS[name]
    if len(arrays) != len(renderer.takes):
        names = ", ".join(renderer.takes)
        raise ValueError(
            f"{name} draws {len(renderer.takes)} arrays ({names}), but got {len(arrays)}."
        )
    picture: Image.Image = loaded(renderer.draw)(arrays, classes, limits)
    return picture


def save(picture: Image.Image, path: Path) -> None:
    """Writes a PNG, whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    with disk.whole_file(path) as temporary:
        picture.save(temporary, format="PNG")  # optimize=True would take twice as long for 1% less


def save_film(images: list[Image.Image], path: Path, columns: int = 0) -> None:
    """Writes a GIF that repeats: to the last image and back, through rows of `columns` images like
    a snake. Small images are enlarged.
    """
    if columns:
        rows = [images[begin : begin + columns] for begin in range(0, len(images), columns)]
        snake = [row[::-1] if place % 2 else row for place, row in enumerate(rows)]
        images = [image for row in snake for image in row]
    scale = max(1, FILM_PIXELS // max(images[0].size))
    size = (images[0].width * scale, images[0].height * scale)
    first, *others = [
        image.resize(size, Image.Resampling.NEAREST) for image in images + images[-2:0:-1]
    ]
    with disk.whole_file(path) as temporary:
        first.save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=others,
            duration=FRAME_MS,
            loop=0,
        )
