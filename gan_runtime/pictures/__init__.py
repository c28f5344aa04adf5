"""Pictures drawn from arrays, by the name of their renderer. NumPy and Pillow alone: no framework, no run, no store.

A workload's catalog entry says which arrays are drawn by which renderer (catalog.entries.Picture). Values of images are from
-1 to 1, those of showers as in domains/showers/cell_values.py; NaN, of networks that have gone wrong, is black.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.base import disk
from gan_runtime.domains.flows import triplets
from gan_runtime.domains.showers import pictures
from gan_runtime.pictures import filmstrips, grids, labelled
from gan_runtime.pictures.sheet import OF_AN_EPOCH, Room, whole

__all__ = ["LABELS", "RENDERERS", "Renderer", "Room", "render", "save", "whole"]

LABELS = "labels"  # what a renderer takes that tells classes apart


@dataclass(frozen=True)
class Renderer:
    """One way to draw. `takes`: what its arrays hold, in their order."""

    takes: tuple[str, ...]
    draw: Callable[[tuple[NDArray[np.generic], ...], tuple[str, ...], Room], Image.Image]


RENDERERS: dict[str, Renderer] = {
    "grey_grid": Renderer(("images",), grids.grey_grid),
    "rgb_grid": Renderer(("images",), grids.rgb_grid),
    "labelled_grid": Renderer(("images", LABELS), labelled.labelled_grid),
    "triplets": Renderer(("inputs", "outputs", "targets"), triplets.triplets),
    "filmstrip": Renderer(("sequences",), filmstrips.filmstrip),
    "shower_projections": Renderer(("showers",), pictures.shower_projections),
    "shower_slices": Renderer(("showers",), pictures.shower_slices),
}


def render(
    name: str,
    arrays: tuple[NDArray[np.generic], ...],
    classes: tuple[str, ...] = (),
    room: Room = OF_AN_EPOCH,
) -> Image.Image:
    """A picture of the arrays. `classes`: what the numbers 0, 1, 2, … of labels are called; `room`: how large it may become.

    Images are float32 (N, height, width, 1 or 3), sequences (N, frames, height, width, 1 or 3), labels whole numbers (N,), showers
    (N, x, y, z, 1), frames of a flow (N, height, width, 3, or 4 with the obstacle).

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
    return renderer.draw(arrays, classes, room)


def save(picture: Image.Image, path: Path) -> None:
    """Writes a PNG; the file appears whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    with disk.whole_file(path) as aside:
        picture.save(aside, format="PNG")  # optimize=True would take twice as long for 1 % less
