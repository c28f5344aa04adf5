"""Truth, prediction and difference as films of palette indices, and a film as one image.

NumPy and Pillow only.

A pixel is one number in units of the flow, on a scale that never changes. Two scales, the obstacle
and some grays share ONE palette of 256 colors, so that a frame is one byte per pixel in the
browser, in a GIF and in an MP4. Signed colors are those of all images of flows
(the images of an epoch).
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime.domains.flows import lattice as flow_frames
from gan_runtime.domains.flows.fields import UX, UY, VORTICITY
from gan_runtime.domains.flows.pictures import ANCHORS as SIGNED
from gan_runtime.domains.flows.pictures import STONE

LEVELS = 113  # of each scale; odd, so that zero has the middle color
GRAYS = 28  # from white to ink, for text
# viridis at equal distances: brightness grows with the value, also for color-blind users.
UNSIGNED = (
    "#440154",
    "#472d7b",
    "#3b528b",
    "#2c728e",
    "#21918c",
    "#28ae80",
    "#5ec962",
    "#addc30",
    "#fde725",
)
WHITE, INK = "#ffffff", "#31333f"
OF_OBSTACLE, OF_WHITE = 2 * LEVELS, 2 * LEVELS + 1
Bytes = NDArray[np.uint8]


def palette_places(values: NDArray[np.floating], low: float, high: float, signed: bool) -> Bytes:
    """The palette index of each number, (…) → (…), clipped at the ends; NaN gets the middle."""
    share = np.clip((values.astype(np.float32) - low) / (high - low), 0.0, 1.0)
    levels = np.rint(np.nan_to_num(share, nan=0.5) * (LEVELS - 1)).astype(np.uint8)
    return levels if signed else levels + np.uint8(LEVELS)


def gradient(signed: bool) -> str:
    """The scale as a CSS gradient, left to right."""
    return f"linear-gradient(to right, {', '.join(SIGNED if signed else UNSIGNED)})"


def _between(anchors: tuple[str, ...], levels: int) -> NDArray[np.float64]:
    """Colors (levels, 3) from 0 to 255, interpolated linearly between the anchors."""
    corners = np.array(
        [[int(color[begin : begin + 2], 16) for begin in (1, 3, 5)] for color in anchors], float
    )
    at = np.linspace(0.0, len(anchors) - 1.0, levels)
    return np.stack(
        [np.interp(at, np.arange(len(anchors)), corners[:, part]) for part in range(3)], axis=1
    )


def _palette() -> Bytes:
    """(256, 3): the signed scale, the unsigned scale, the obstacle, and grays from white to ink;
    the rest is black.
    """
    parts = [
        _between(SIGNED, LEVELS),
        _between(UNSIGNED, LEVELS),
        _between((STONE,), 1),
        _between((WHITE, INK), GRAYS),
    ]
    colors = np.rint(np.concatenate(parts)).astype(np.uint8)
    return np.concatenate([colors, np.zeros((256 - len(colors), 3), np.uint8)])


PALETTE = _palette()


Pixels = NDArray[np.floating]


@dataclass(frozen=True)
class FlowQuantity:
    """A quantity of the flow. `unit`: as a page writes it; `plain`: in letters of every font.

    `of`: (..., height, width) from network frames (..., height, width, channels). `low`, `high`:
    values of the first and the last color. `signed`: zero has the middle color. `text`: a sentence.
    """

    name: str
    title: str
    unit: str
    plain: str
    low: float
    high: float
    signed: bool
    text: str
    of: Callable[[Pixels], Pixels]


def _channel(number: int) -> Callable[[Pixels], Pixels]:
    def of(frames: Pixels) -> Pixels:
        physical: Pixels = flow_frames.physical(frames)[..., number]
        return physical

    return of


def _speed(frames: Pixels) -> Pixels:
    physical = flow_frames.physical(frames)
    speed: Pixels = np.hypot(physical[..., UX], physical[..., UY])
    return speed


QUANTITIES = (
    FlowQuantity(
        "vorticity",
        "Vorticity",
        "ω D / U",
        "vorticity in U / D",
        -5.0,
        5.0,
        True,
        "Local rotation of the fluid: red counterclockwise, blue clockwise.",
        _channel(VORTICITY),
    ),
    FlowQuantity(
        "speed",
        "Speed |u|",
        "|u| / U",
        "speed in U",
        0.0,
        2.0,
        False,
        "Speed of the fluid in any direction.",
        _speed,
    ),
    FlowQuantity(
        "along",
        "uₓ",
        "uₓ / U",
        "velocity along the stream in U",
        -2.0,
        2.0,
        True,
        "Velocity along the stream; negative values flow back.",
        _channel(UX),
    ),
    FlowQuantity(
        "across",
        "uᵧ",
        "uᵧ / U",
        "velocity across the stream in U",
        -1.0,
        1.0,
        True,
        "Velocity across the stream; positive values go up.",
        _channel(UY),
    ),
)


def difference(quantity: FlowQuantity) -> FlowQuantity:
    """The scale of prediction minus flow: signed, a quarter as wide, so that small errors show."""
    reach = (quantity.high - quantity.low) / 8.0
    return replace(quantity, low=-reach, high=reach, signed=True)


def quantity_of(name: str) -> FlowQuantity:
    """The quantity of this name."""
    return next(quantity for quantity in QUANTITIES if quantity.name == name)


FRAMES_PER_S = 12  # of the films, in the browser and as files


@dataclass(frozen=True)
class FilmPanel:
    """One of the films side by side.

    `places`: (frames, height, width), palette indices.
    """

    title: str
    scale: FlowQuantity
    places: Bytes


def panels(
    truth: NDArray[np.floating],
    predicted: NDArray[np.floating],
    obstacle: NDArray[np.bool_],
    quantity: FlowQuantity,
) -> tuple[FilmPanel, ...]:
    """The three films of a rollout. `truth`, `predicted`: network frames (K, height, width,
    channels); `obstacle`: (height, width).
    """
    real, generated = quantity.of(truth), quantity.of(predicted)
    films = (
        ("Flow", quantity, real),
        ("Prediction", quantity, generated),
        ("Prediction − flow", difference(quantity), generated - real),
    )
    return tuple(
        FilmPanel(title, scale, _places(values, scale, obstacle)) for title, scale, values in films
    )


def _places(
    values: NDArray[np.floating], scale: FlowQuantity, obstacle: NDArray[np.bool_]
) -> Bytes:
    places = palette_places(values, scale.low, scale.high, scale.signed)
    places[:, obstacle] = OF_OBSTACLE
    return places


def across(panel: FilmPanel) -> int:
    """How many frames form a row of the panel's sheet, so that it is about square: browsers refuse
    long images.
    """
    count, height, width = panel.places.shape
    return max(1, math.ceil(math.sqrt(count * height / width)))


def sheet(panel: FilmPanel) -> str:
    """All frames of a panel in one PNG, in rows of `across`, as a data URL."""
    count, height, width = panel.places.shape
    columns = across(panel)
    rows = -(-count // columns)
    whole = np.full((rows * columns, height, width), OF_WHITE, np.uint8)
    whole[:count] = panel.places
    # (rows, columns, height, width) → (rows, height, columns, width)
    # → (rows · height, columns · width)
    pixels = (
        whole.reshape(rows, columns, height, width)
        .swapaxes(1, 2)
        .reshape(rows * height, columns * width)
    )
    picture, file = Image.fromarray(pixels), io.BytesIO()
    picture.putpalette(PALETTE.tobytes())
    # Level 9 takes ten times as long to save a tenth.
    picture.save(file, format="PNG", compress_level=3)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
