"""Pictures drawn from arrays, by the name of their renderer.

NumPy and Pillow alone: no framework, no run, no store.

A workload's catalog entry says which arrays are drawn by which renderer (catalog.entries.Picture).
Values of images are from -1 to 1, those of a domain as its own renderers say; NaN, of networks that
have gone wrong, is black.
"""

from __future__ import annotations

import importlib
from collections.abc import MutableMapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.base import disk
from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.catalog.entries import Renderer
from gan_runtime.catalog.table import Table
from gan_runtime.pictures.sheet import OF_AN_EPOCH, Room, whole

__all__ = ["LABELS", "RENDERERS", "Room", "render", "save", "whole"]

LABELS = "labels"  # what a renderer takes that tells classes apart


RENDERERS: MutableMapping[str, Renderer] = {
    "grey_grid": Renderer(("images",), "gan_runtime.pictures.grids:grey_grid"),
    "rgb_grid": Renderer(("images",), "gan_runtime.pictures.grids:rgb_grid"),
    "labelled_grid": Renderer(("images", LABELS), "gan_runtime.pictures.labelled:labelled_grid"),
    "filmstrip": Renderer(("sequences",), "gan_runtime.pictures.grids:filmstrip"),
    **{name: renderer for domain in DOMAINS for name, renderer in domain.renderers.items()},
}
RENDERERS = Table(RENDERERS, "gan_runtime.renderers", Renderer)  # and those of installed packages


def render(
    name: str,
    arrays: tuple[NDArray[np.generic], ...],
    classes: tuple[str, ...] = (),
    room: Room = OF_AN_EPOCH,
) -> Image.Image:
    """A picture of the arrays.

    `classes`: what the numbers 0, 1, 2, … of labels are called; `room`: how large it may become.

    Images are float32 (N, height, width, 1 or 3), sequences (N, frames, height, width, 1 or 3),
    labels whole numbers (N,).

    Raises:
        ValueError: no such renderer, or arrays that it does not draw.
    """
    if name not in RENDERERS:
        raise ValueError(f"there is no renderer '{name}': use {', '.join(RENDERERS)}.")
    renderer = RENDERERS[name]
    if len(arrays) != len(renderer.takes):
        wanted = ", ".join(renderer.takes)
        raise ValueError(
            f"{name} draws {len(renderer.takes)} arrays ({wanted}), but was given {len(arrays)}."
        )
    module, _, function = renderer.draw.partition(":")
    picture: Image.Image = getattr(importlib.import_module(module), function)(arrays, classes, room)
    return picture


def save(picture: Image.Image, path: Path) -> None:
    """Writes a PNG; the file appears whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    with disk.whole_file(path) as aside:
        picture.save(aside, format="PNG")  # optimize=True would take twice as long for 1 % less
