"""What of a flow is looked at: a number a pixel, in the units of the flow, with a scale that never changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.flows import solver_frames as flow_frames
from gan_runtime.domains.flows.fields import UX, UY, VORTICITY

Pixels = NDArray[np.floating]


@dataclass(frozen=True)
class Quantity:
    """`unit`: as a page writes it, `plain`: with letters that every font has. `of`: (..., height, width) from frames (..., height, width, channels) as networks see them. `low`, `high`: of the first and the last
    color; what lies beyond has the color of the end. `signed`: zero is in the middle of two colors. `text`: what it is, in a sentence."""

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
    Quantity(
        "vorticity",
        "Vorticity",
        "ω D / U",
        "vorticity in U / D",
        -5.0,
        5.0,
        True,
        "How fast and which way the fluid turns: red against the clock's hands, blue with them.",
        _channel(VORTICITY),
    ),
    Quantity(
        "speed",
        "Speed |u|",
        "|u| / U",
        "speed in U",
        0.0,
        2.0,
        False,
        "How fast the fluid is, whichever way.",
        _speed,
    ),
    Quantity(
        "along",
        "uₓ",
        "uₓ / U",
        "velocity along the stream in U",
        -2.0,
        2.0,
        True,
        "Along the stream; below zero it flows back.",
        _channel(UX),
    ),
    Quantity(
        "across",
        "uᵧ",
        "uᵧ / U",
        "velocity across the stream in U",
        -1.0,
        1.0,
        True,
        "Across the stream; upwards above zero.",
        _channel(UY),
    ),
)


def difference(quantity: Quantity) -> Quantity:
    """The scale of the prediction less the flow: both signs, together a quarter as wide as the quantity's own, so that it is seen early."""
    reach = (quantity.high - quantity.low) / 8.0
    return replace(quantity, low=-reach, high=reach, signed=True)


def of_name(name: str) -> Quantity:
    """One of the table."""
    return next(quantity for quantity in QUANTITIES if quantity.name == name)
