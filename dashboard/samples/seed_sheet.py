"""A sheet of generated images to pick seeds from."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dashboard import charts, palette
from gan_runtime.pictures import sheet

PICKED = "picked"  # the parameter of a sheet that holds the clicked seeds
NARROWEST, WIDEST = 480, 960  # pixels of a sheet on a wide page
CLASS_NAME, TITLE = 20, 40  # pixels
SHEET_DESCRIPTION = (
    "One generated image per seed, with one row per class if the networks know classes. Point at an"
    " image to read its seed, and click it to pick the seed."
)


def sheet_of_seeds(
    images: NDArray[np.floating], seeds: Sequence[int], classes: Sequence[str] = ()
) -> tuple[alt.LayerChart, int]:
    """A sheet of images, and its width in pixels. `images`: values (classes · seeds, height, width,
    channels), class by class.
    """
    columns = len(seeds) if classes else sheet.whole(len(seeds)).columns
    height, width = images.shape[1:3]
    across = min(max(width, NARROWEST // columns), WIDEST // columns)
    down = round(across * height / width)
    cells = _cells(images, seeds, columns, classes)
    picked = alt.selection_point(name=PICKED, fields=["seed"], toggle="true", empty=False)
    spaced = alt.Scale(paddingInner=sheet.GAP / across, paddingOuter=0)
    names = alt.Axis(title=None, domain=False, ticks=False) if classes else None
    encoded = alt.Chart().encode(
        x=alt.X("column:O", axis=None, scale=spaced),
        y=alt.Y("row:N" if classes else "row:O", axis=names, scale=spaced, sort=list(classes)),
        tooltip=[alt.Tooltip("seed:Q"), alt.Tooltip("row:N", title="class")][: 2 if classes else 1],
    )
    across_cell, down_cell = (alt.ExprRef(f"bandwidth('{axis}')") for axis in "xy")
    drawn = encoded.mark_image(width=across_cell, height=down_cell, smooth=False).encode(
        url="url:N"
    )
    frames = encoded.mark_rect(
        fillOpacity=0, stroke=palette.DISCRIMINATOR, strokeWidth=3, cursor="pointer"
    ).encode(strokeOpacity=alt.condition(picked, alt.value(1), alt.value(0)))
    chart = charts.layered(
        cells,
        drawn,
        frames.add_params(picked),
        title="Click images to pick their seeds",
        height=cells["row"].nunique() * (down + sheet.GAP) + TITLE,
        description=SHEET_DESCRIPTION,
    )
    return chart, columns * (across + sheet.GAP) + CLASS_NAME * bool(classes)


def _cells(
    images: NDArray[np.floating], seeds: Sequence[int], columns: int, classes: Sequence[str]
) -> pd.DataFrame:
    """Each image with its place; a row is a class, or `columns` seeds."""
    places = np.arange(len(seeds))
    return pd.DataFrame(
        {
            "seed": np.tile(seeds, max(1, len(classes))),
            "column": np.tile(places % columns, max(1, len(classes))),
            "row": np.repeat(classes, len(seeds)) if classes else places // columns,
            "url": [_url(levels) for levels in sheet.pixels(images)],
        }
    )


def _url(levels: NDArray[np.uint8]) -> str:
    """One image as a data URL."""
    file = io.BytesIO()
    image = sheet.image(levels)
    kind = "png" if image.mode == "L" else "webp"
    image.save(file, format=kind, quality=90)  # a PNG has no quality
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
