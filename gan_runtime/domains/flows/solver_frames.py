"""A moment of a flow as a picture of three channels: ux, uy and the vorticity, each from -1 to 1 by a scale that never changes.

    ux / U = 0.5 + 1.5 a      uy / U = b      ω D / U = 5 c            ω = ∂uy/∂x - ∂ux/∂y, counterclockwise above 0

What is beyond the scale is cut: of the vorticity this is the thin layer on the obstacle's front edges. Row 0 is the top, columns run with
the stream, y points up, so ∂/∂y = -∂/∂row. In the obstacle all three quantities are 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.flows.fields import DIAMETER, FLOW_CHANNELS, WIDTH
from gan_runtime.domains.flows.lattice import INFLOW, Lattice

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

MIDDLE = np.array([0.5, 0.0, 0.0], np.float32)  # of each scale: ux / U, uy / U, ω D / U
REACH = np.array([1.5, 1.0, 5.0], np.float32)  # from the middle to either end


def of(flow: Lattice) -> Floats:
    """The frame (height, width, 3) of a flow as it is now, values from -1 to 1."""
    ux, uy = flow.velocity()
    return values(ux, uy, np.where(flow.obstacle, 0.0, vorticity(ux, uy)))


def values(ux: NDArray[np.floating], uy: NDArray[np.floating], turning: NDArray[np.floating]) -> Floats:
    """(…, height, width) each, velocities in cells a step, vorticity per step → (…, height, width, 3) from -1 to 1."""
    physical_values = np.stack([ux / INFLOW, uy / INFLOW, turning * (DIAMETER / INFLOW)], axis=-1)
    return np.clip((physical_values - MIDDLE) / REACH, -1.0, 1.0).astype(np.float32)


def physical(frames: NDArray[np.floating]) -> Floats:
    """Values (…, height, width, 3 or more channels) → (…, 3): ux / U, uy / U, ω D / U."""
    return frames[..., : len(FLOW_CHANNELS)].astype(np.float32) * REACH + MIDDLE


def source(frames: NDArray[np.floating], obstacle: Mask) -> NDArray[np.floating]:
    """Frames (…, height, width, 3) with the obstacle (height, width) as a fourth channel, 0 or 1."""
    channel = np.broadcast_to(obstacle[..., None], (*frames.shape[:-1], 1))
    return np.concatenate([frames, channel.astype(frames.dtype)], axis=-1)


def vorticity(ux: NDArray[np.floating], uy: NDArray[np.floating], spacing: float = 1.0) -> Floats:
    """∂uy/∂x - ∂ux/∂y of (…, height, width), `spacing` apart: central differences, one-sided at the edges."""
    turning: Floats = np.gradient(uy, spacing, axis=-1) + np.gradient(ux, spacing, axis=-2)
    return turning


def halved(fine: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean of each 2 × 2 pixels: (…, height, width, channels) → (…, height / 2, width / 2, channels)."""
    rows = (fine[..., 0::2, :, :] + fine[..., 1::2, :, :]) / 2
    halves: NDArray[np.floating] = (rows[..., 0::2, :] + rows[..., 1::2, :]) / 2
    return halves


def diameter_pixels(width: int) -> float:
    """Of the obstacle in a frame of this width: 10 in 192."""
    return DIAMETER * width / WIDTH
