"""Drawn image pairs: real files, and the data set prepared from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from gan_runtime.data import preparations
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.records.home import Home
from tests.support.own_pictures import encoded

NAME = "disks"
PAIRS, PIXELS = 10, 32
TRAINED_ON = 8  # a fifth is held out


def draw_pair(number: int) -> tuple[Image.Image, Image.Image]:
    """A gray disk on black, and the same in red on blue."""
    down, across = np.mgrid[:PIXELS, :PIXELS]
    center_x, center_y, radius = np.random.default_rng(number).uniform([8, 8, 4], [24, 24, 9])
    inside = ((across - center_x) ** 2 + (down - center_y) ** 2 < radius**2)[..., np.newaxis]
    pictures = [
        np.where(inside, *colors)
        for colors in (([200] * 3, [0] * 3), ([230, 30, 30], [20, 20, 220]))
    ]
    first, second = (Image.fromarray(picture.astype(np.uint8)) for picture in pictures)
    return first, second


def side_by_side(number: int) -> Image.Image:
    whole = Image.new("RGB", (2 * PIXELS, PIXELS))
    for place, half in enumerate(draw_pair(number)):
        whole.paste(half, (place * PIXELS, 0))
    return whole


def files(layout: str) -> dict[str, bytes]:
    if layout == "folders":
        return {
            f"{folder}/{number}.png": encoded(picture, "PNG")
            for number in range(PAIRS)
            for folder, picture in zip(("a", "b"), draw_pair(number), strict=True)
        }
    return {f"{number}.png": encoded(side_by_side(number), "PNG") for number in range(PAIRS)}


def prepare(home: Home, folder: Path, layout: str = "side_by_side") -> None:
    """Prepares the data set NAME of a home from files written into `folder`."""
    for name, content in files(layout).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    options = {"layout": layout, "pixels": str(PIXELS), "held_out_percent": 20}
    preparations.prepare(
        home, PreparationRequest("picture_pairs", NAME, folder, options), lambda *_: None
    )
