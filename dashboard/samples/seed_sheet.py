"""A sheet of generated images to pick seeds from."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dashboard import charts, palette
from gan_runtime.base.fields import CLASS_IMAGES, IMAGES, LABELS
from gan_runtime.pictures import sheet

PICKED = "picked"  # the parameter of a sheet that holds the clicked seeds
NARROWEST, WIDEST = 480, 960  # pixels of a sheet on a wide page
TITLE, MARGIN = 40, 12  # pixels above the images, and around the name of a class
DESCRIPTION = (
    "One generated image per seed, with one row per class if the networks know classes. Point at an"
    " image to read its seed, and click it to pick the seed."
)


@dataclass(frozen=True)
class SheetImages:
    """Images in the order of a grid: class by class, each with the same seeds.

    `urls`: data URLs. `height`, `width`: of one image. `classes`: their numbers in order; empty for
    a single class or none.
    """

    urls: list[str]
    height: int
    width: int
    classes: list[int]


@st.cache_data(show_spinner=False, max_entries=20)
def images_of(file: str, seeds: int) -> SheetImages | None:
    """The images of a grid of `seeds`, from the file of its arrays; None for other arrays, or too
    many for a row per class. The file never changes.
    """
    with np.load(file) as arrays:
        name = next((name for name in (IMAGES, CLASS_IMAGES) if name in arrays), "")
        images = arrays[name] if name else np.empty((0, 0, 0, 1))
        labels = arrays[LABELS] if LABELS in arrays else np.zeros(len(images))
    rows = len(images)
    if not rows or rows % seeds or (rows > seeds and seeds > sheet.MOST_COLUMNS):
        return None
    numbers = np.rint(labels[::seeds]).astype(int).ravel().tolist() if rows > seeds else []
    height, width = images.shape[1:3]
    return SheetImages(list(map(_url, sheet.pixels(images))), height, width, numbers)


def chart(
    images: SheetImages, seeds: Sequence[int], names: tuple[str, ...] = ()
) -> tuple[alt.LayerChart, int]:
    """The sheet, and its width in pixels. `names`: of all classes; a class without a name shows its
    number.
    """
    columns = len(seeds) if images.classes else sheet.whole(len(seeds)).columns
    across = min(max(images.width, NARROWEST // columns), WIDEST // columns)
    down = round(across * images.height / images.width)
    classes = [sheet.class_name(number, names) for number in images.classes]
    cells = _cells(images, seeds, columns, classes)
    picked = alt.selection_point(name=PICKED, fields=["seed"], toggle="true", empty=False)
    spaced = alt.Scale(paddingInner=sheet.GAP / across, paddingOuter=0)
    axis = alt.Axis(title=None, domain=False, ticks=False, labelLimit=sheet.WIDEST_NAME)
    encoded = alt.Chart().encode(
        x=alt.X("column:O", axis=None, scale=spaced),
        y=alt.Y("row:O", axis=axis if classes else None, scale=spaced, sort=classes),
        tooltip=[alt.Tooltip("seed:Q")],
    )
    across_cell, down_cell = (alt.ExprRef(f"bandwidth('{name}')") for name in "xy")
    drawn = encoded.mark_image(width=across_cell, height=down_cell, smooth=False).encode(
        url="url:N"
    )
    frames = encoded.mark_rect(
        fillOpacity=0, stroke=palette.DISCRIMINATOR, strokeWidth=3, cursor="pointer"
    ).encode(strokeOpacity=alt.condition(picked, alt.value(1), alt.value(0)))
    layers = charts.layered(
        cells,
        drawn,
        frames.add_params(picked),
        title="Click images to pick their seeds",
        height=cells["row"].nunique() * (down + sheet.GAP) + TITLE,
        description=DESCRIPTION,
    )
    names_across = max(map(sheet.length, classes), default=-MARGIN) + MARGIN
    return layers, columns * (across + sheet.GAP) + min(names_across, sheet.WIDEST_NAME)


def _cells(
    images: SheetImages, seeds: Sequence[int], columns: int, classes: Sequence[str]
) -> pd.DataFrame:
    """Each image with its place; a row is a class, or `columns` seeds."""
    places, rows = np.arange(len(seeds)), max(1, len(classes))
    return pd.DataFrame(
        {
            "seed": np.tile(seeds, rows),
            "column": np.tile(places % columns, rows),
            "row": np.repeat(classes, len(seeds)) if classes else places // columns,
            "url": images.urls,
        }
    )


def _url(levels: NDArray[np.uint8]) -> str:
    """One image as a data URL."""
    file = io.BytesIO()
    image = sheet.image(levels)
    kind = "png" if image.mode == "L" else "webp"
    image.save(file, format=kind, quality=90)  # a PNG has no quality
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
