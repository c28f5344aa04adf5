"""Truth, prediction and their difference as films of palette bytes, and such a film as one picture. NumPy and Pillow only."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dashboard.flow import colors, quantities
from dashboard.flow.colors import Bytes
from dashboard.flow.quantities import Quantity

FRAMES_PER_S = 12  # of the films, in the browser and as files


@dataclass(frozen=True)
class Panel:
    """One of the films that run side by side. `places`: (frames, height, width), each pixel's place in `colors.PALETTE`."""

    title: str
    scale: Quantity
    places: Bytes


def panels(
    truth: NDArray[np.floating],
    predicted: NDArray[np.floating],
    obstacle: NDArray[np.bool_],
    quantity: Quantity,
) -> tuple[Panel, ...]:
    """`truth`, `predicted`: frames (K, height, width, channels) as networks see them; `obstacle`: (height, width)."""
    real, made = quantity.of(truth), quantity.of(predicted)
    films = (
        ("Flow", quantity, real),
        ("Prediction", quantity, made),
        ("Prediction − flow", quantities.difference(quantity), made - real),
    )
    return tuple(Panel(title, scale, _places(values, scale, obstacle)) for title, scale, values in films)


def _places(values: NDArray[np.floating], scale: Quantity, obstacle: NDArray[np.bool_]) -> Bytes:
    found = colors.places(values, scale.low, scale.high, scale.signed)
    found[:, obstacle] = colors.OF_OBSTACLE
    return found


def across(panel: Panel) -> int:
    """How many frames stand beside each other in the panel's one picture, so that it is about square: browsers refuse long ones."""
    count, height, width = panel.places.shape
    return max(1, math.ceil(math.sqrt(count * height / width)))


def sheet(panel: Panel) -> str:
    """All frames of a panel in one PNG, in rows of `across`, as an address that holds it."""
    count, height, width = panel.places.shape
    columns = across(panel)
    rows = -(-count // columns)
    whole = np.full((rows * columns, height, width), colors.OF_WHITE, np.uint8)
    whole[:count] = panel.places
    # (rows, columns, height, width) → (rows, height, columns, width) → (rows · height, columns · width)
    pixels = (
        whole.reshape(rows, columns, height, width).swapaxes(1, 2).reshape(rows * height, columns * width)
    )
    picture, file = Image.fromarray(pixels), io.BytesIO()
    picture.putpalette(colors.PALETTE.tobytes())
    picture.save(file, format="PNG", compress_level=3)  # level 9 takes ten times as long for a tenth less
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
