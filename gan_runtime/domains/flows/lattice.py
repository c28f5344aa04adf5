"""A flow past an obstacle, computed by a lattice Boltzmann method: nine speeds in two dimensions
(D2Q9), one relaxation time (BGK).

    flow = Lattice(reynolds=100.0, obstacle=square())
    flow.advance(6_000)
    ux, uy = flow.velocity()                                     # (80, 192) each, in cells a step

Lengths in cells, times in steps; rows run downwards, row 0 is the top, and y points up. Speeds of
the lattice c_i, their weights w_i and the equilibrium (Qian, d'Humières and Lallemand 1992,
doi:10.1209/0295-5075/17/6/001), with the sums over the nine populations

    ρ = Σ f_i      j = ρ u = Σ c_i f_i
    f_i^eq = w_i (ρ + 3 c_i·j + (4.5 (c_i·j)² - 1.5 j²) / ρ)
    f_i ← f_i - ω (f_i - f_i^eq),  then moves on by c_i;  ω = 1 / (3 ν + 1/2),  ν = U D / Re

Re is based on the DIAMETER (a square's side) and the speed of the inflow. Widely copied programs
use the radius: their 220 is 440 here.
Left: inflow with u = (U, 0), its density after Zou and He 1997 (doi:10.1063/1.869307). Right:
incoming populations are copied from one column before. Obstacle: full-way bounce-back, so its wall
is half a cell outside its cells.

Frames are images of three channels, ux, uy and the vorticity, with fixed scales to [-1, 1]:

    ux / U = 0.5 + 1.5 a      uy / U = b      ω D / U = 5 c            ω = ∂uy/∂x - ∂ux/∂y,
    counterclockwise above 0

Values beyond are clipped: of the vorticity the thin layer at the obstacle's front edges. Row 0 is
the top, columns run with the stream, y points up, so ∂/∂y = -∂/∂row. In the obstacle all three
quantities are 0.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gan_runtime.domains.flows.fields import DIAMETER, FLOW_CHANNELS, HEIGHT, WIDTH

CENTER = 38.0  # of the obstacle, in cells from the left: a fifth of the width
INFLOW = 0.1  # U, cells a step: 0.17 of the speed of sound, so the density varies by a few percent
# Cells of one matrix product: they fit into a core's cache, and are too few for OpenBLAS to use
# threads.
BLOCK = 1_900

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Shape = Literal["circle", "square"]
Walls = Literal["slip", "periodic"]  # slip: a mirror, without friction
Ends = Literal["open", "periodic"]

C = np.array(
    [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
)  # c_i: (x, y up)
W = np.array([4 / 9, *[1 / 9] * 4, *[1 / 36] * 4])
OPPOSITE = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
MIRRORED = np.array([0, 1, 4, 3, 2, 8, 7, 6, 5])  # speeds mirrored at a wall above or below
UPWARDS, DOWNWARDS = (2, 5, 6), (4, 7, 8)
LEFTWARDS = (3, 6, 7)
_INSIDE = slice(1, -1)  # without the margin of one cell
_POPULATIONS, _SUMS, _SQUARES = slice(0, 9), slice(9, 12), slice(12, 15)


def square(
    height: int = HEIGHT, width: int = WIDTH, shift: float = 0.0, diameter: float = DIAMETER
) -> Mask:
    """(height, width), True in the obstacle. `shift`: cells below the middle; `diameter`: cells, an
    even number.
    """
    across, down = _from_center(height, width, shift)
    return np.maximum(abs(across), abs(down)) < diameter / 2


def circle(
    height: int = HEIGHT, width: int = WIDTH, shift: float = 0.0, diameter: float = DIAMETER
) -> Mask:
    """(height, width), True in a circular obstacle; arguments as for `square`."""
    across, down = _from_center(height, width, shift)
    return np.hypot(across, down) < diameter / 2


OBSTACLES = {"square": square, "circle": circle}


class Lattice:
    """A flow at one moment. It starts with the inflow everywhere, and a kick behind the obstacle.

    `reynolds`: based on `diameter`, the obstacle's width in cells. `kick`: highest initial velocity
    across the stream, of U; a symmetrical flow would take long to become unsteady.
    `ends="periodic"`: the right end continues at the left one, a closed box.
    """

    def __init__(
        self,
        reynolds: float,
        obstacle: Mask,
        walls: Walls = "slip",
        ends: Ends = "open",
        kick: float = 0.05,
        diameter: float = DIAMETER,
    ) -> None:
        self.reynolds, self.obstacle = reynolds, obstacle
        self.steps = 0
        self._walls, self._ends = walls, ends
        self._collision = collision(relaxation(reynolds, diameter))
        height, width = obstacle.shape
        # The nine populations, then ρ, jx, jy, then jx²/ρ, jy²/ρ, jx jy/ρ: of each cell and of the
        # margin.
        self._state = np.zeros((15, height + 2, width + 2), np.float32)
        # After the collision, before they move.
        self._collided = np.empty((9, height + 2, width + 2), np.float32)
        self._solid = np.flatnonzero(np.pad(obstacle, 1))
        self._begin(kick)

    @property
    def populations(self) -> Floats:
        """f_i (9, height, width), a view."""
        return self._state[_POPULATIONS, _INSIDE, _INSIDE]

    @property
    def mass(self) -> float:
        """The mass of all cells, including the obstacle's, whose populations return to the flow."""
        return float(self.populations.sum(dtype=np.float64))

    def density(self) -> Floats:
        """The density ρ (height, width)."""
        return self.populations.sum(axis=0)

    def velocity(self) -> tuple[Floats, Floats]:
        """ux, uy (height, width), cells a step; 0 in the obstacle."""
        moments = np.tensordot(SUMS, self.populations, axes=1)
        ux, uy = moments[1:] / moments[0]
        ux[self.obstacle] = uy[self.obstacle] = 0.0
        return ux, uy

    def crossing(self, column: int) -> float:
        """The net mass that moved from `column` to the next column in the last step."""
        before, after = column + 1, column + 2  # indexes in arrays with a margin
        right = self._collided[C[:, 0] == 1, _INSIDE, before].sum(dtype=np.float64)
        return float(right - self._collided[C[:, 0] == -1, _INSIDE, after].sum(dtype=np.float64))

    def advance(self, steps: int) -> None:
        """Allocates only arrays of the size of the obstacle and of a column."""
        for _ in range(steps):
            self._collide()
            self._surround()
            self._move()
            if self._ends == "open":
                self._flow_out()
                self._flow_in()
        self.steps += steps

    def _begin(self, kick: float) -> None:
        """Equilibrium of ρ = 1 and u = (U, kick · U · a bell as wide as the obstacle, one
        diameter behind its center).
        """
        height, width = self.obstacle.shape
        across, down = _from_center(height, width, 0.0)
        bell = np.exp(-((across - DIAMETER) ** 2 + down**2) / (2.0 * (DIAMETER / 2) ** 2))
        inside = self._state[:, _INSIDE, _INSIDE]
        self._state[9] = 1.0
        inside[10], inside[11] = INFLOW, kick * INFLOW * bell
        self._square()
        flat = self._state.reshape(15, -1)
        flat[_POPULATIONS] = EQUILIBRIUM @ flat[9:]

    def _collide(self) -> None:
        """[f; ρ, j; j²/ρ] → f - ω (f - f^eq), two products of matrices: (3, 9) (9, cells) and
        (9, 15) (15, cells).
        """
        flat = self._state.reshape(15, -1)
        np.matmul(SUMS, flat[_POPULATIONS], out=flat[_SUMS])
        self._square()
        collided = self._collided.reshape(9, -1)
        for begin in range(0, flat.shape[1], BLOCK):
            cells = slice(begin, begin + BLOCK)
            np.matmul(self._collision, flat[:, cells], out=collided[:, cells])
        collided[:, self._solid] = flat[OPPOSITE[:, None], self._solid]

    def _square(self) -> None:
        """jx²/ρ, jy²/ρ, jx jy/ρ."""
        density, jx, jy = self._state[_SUMS]
        xx, yy, xy = self._state[_SQUARES]
        np.divide(jx, density, out=xx)  # ux, for a moment
        np.multiply(xx, jy, out=xy)
        np.multiply(xx, jx, out=xx)
        np.divide(jy, density, out=yy)
        np.multiply(yy, jy, out=yy)

    def _surround(self) -> None:
        """Fills the margin above and below: with the opposite side, or the mirror image."""
        flow = self._collided
        for up, down in zip(UPWARDS, DOWNWARDS, strict=True):
            if self._walls == "periodic":
                flow[up, -1], flow[down, 0] = flow[up, 1], flow[down, -2]
            else:
                flow[up, -1], flow[down, 0] = flow[MIRRORED[up], -2], flow[MIRRORED[down], 1]
        if self._ends == "periodic":
            flow[:, :, 0], flow[:, :, -1] = flow[:, :, -2], flow[:, :, 1]

    def _move(self) -> None:
        """Each population by its speed: c = (1, 1) from the left column and the row below."""
        height, width = self.obstacle.shape
        for to, flow, (x, y) in zip(self.populations, self._collided, C, strict=True):
            np.copyto(to, flow[1 + y : 1 + y + height, 1 - x : 1 - x + width])

    def _flow_out(self) -> None:
        """Copies the leftward populations at the right end from the previous column."""
        for population in LEFTWARDS:
            last = self.populations[population]
            last[:, -1] = last[:, -2]

    def _flow_in(self) -> None:
        """The left end: equilibrium of u = (U, 0) and ρ = (Σ across + 2 Σ leftwards) / (1 - U)."""
        first = self.populations[:, :, 0]
        across = first[0] + first[2] + first[4]
        leftwards = first[3] + first[6] + first[7]
        density = (across + 2.0 * leftwards) / np.float32(1.0 - INFLOW)
        first[:] = ENTERING[:, None] * density


def relaxation(reynolds: float, diameter: float = DIAMETER) -> float:
    """ω, per step: 1.887 at Re 100, 1.953 at Re 250 and 10 cells; at 2 the flow is unstable."""
    viscosity = INFLOW * diameter / reynolds
    return 1.0 / (3.0 * viscosity + 0.5)


def collision(omega: float) -> Floats:
    """[(1 - ω) 1 | ω E], (9, 15): for the populations, and the six sums of the equilibrium."""
    return np.hstack([(1.0 - omega) * np.eye(9), omega * EQUILIBRIUM]).astype(np.float32)


def _equilibrium() -> Floats:
    """E (9, 6): f^eq = E [ρ, jx, jy, jx²/ρ, jy²/ρ, jx jy/ρ], as (c·j)² = cx² jx² + cy² jy² +
    2 cx cy jx jy.
    """
    cx, cy = C.T
    columns = [np.ones(9), 3 * cx, 3 * cy, 4.5 * cx**2 - 1.5, 4.5 * cy**2 - 1.5, 9 * cx * cy]
    return (W[:, None] * np.stack(columns, axis=1)).astype(np.float32)


EQUILIBRIUM = _equilibrium()
_INFLOW_SUMS = np.array([1.0, INFLOW, 0.0, INFLOW**2, 0.0, 0.0], np.float32)
ENTERING = EQUILIBRIUM @ _INFLOW_SUMS  # (9,) of ρ = 1, u = (U, 0)
SUMS = np.stack([np.ones(9), *C.T]).astype(np.float32)  # (3, 9): ρ, jx, jy


def _from_center(
    height: int, width: int, shift: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distances of the cells from the obstacle's center: to the right (1, width), down (height,
    1).
    """
    across = np.arange(width, dtype=np.float64) + (0.5 - CENTER)
    down = np.arange(height, dtype=np.float64) + (0.5 - height / 2 - shift)
    return across[None], down[:, None]


# ---- frames --------------------------------------------------------------------------------------

MIDDLE = np.array([0.5, 0.0, 0.0], np.float32)  # of each scale: ux / U, uy / U, ω D / U
REACH = np.array([1.5, 1.0, 5.0], np.float32)  # from the middle to each end


def of(flow: Lattice) -> Floats:
    """The current frame (height, width, 3) of a flow, values from -1 to 1."""
    ux, uy = flow.velocity()
    return values(ux, uy, np.where(flow.obstacle, 0.0, vorticity(ux, uy)))


def values(
    ux: NDArray[np.floating], uy: NDArray[np.floating], vorticity: NDArray[np.floating]
) -> Floats:
    """(…, height, width) each, velocities in cells a step, vorticity per step → (…, height,
    width, 3) from -1 to 1.
    """
    scaled = np.stack([ux / INFLOW, uy / INFLOW, vorticity * (DIAMETER / INFLOW)], axis=-1)
    return np.clip((scaled - MIDDLE) / REACH, -1.0, 1.0).astype(np.float32)


def physical(frames: NDArray[np.floating]) -> Floats:
    """Values (…, height, width, 3 or more channels) → (…, 3): ux / U, uy / U, ω D / U."""
    return frames[..., : len(FLOW_CHANNELS)].astype(np.float32) * REACH + MIDDLE


def source(frames: NDArray[np.floating], obstacle: Mask) -> NDArray[np.floating]:
    """Frames (…, height, width, 3) with the obstacle (height, width) as a fourth channel, 0
    or 1.
    """
    channel = np.broadcast_to(obstacle[..., None], (*frames.shape[:-1], 1))
    return np.concatenate([frames, channel.astype(frames.dtype)], axis=-1)


def vorticity(ux: NDArray[np.floating], uy: NDArray[np.floating], spacing: float = 1.0) -> Floats:
    """∂uy/∂x - ∂ux/∂y of (…, height, width), `spacing` apart: central differences, one-sided
    at the edges.
    """
    turning: Floats = np.gradient(uy, spacing, axis=-1) + np.gradient(ux, spacing, axis=-2)
    return turning


def halved(fine: NDArray[np.floating]) -> NDArray[np.floating]:
    """The mean of each 2 × 2 pixels: (…, height, width, channels) → (…, height / 2, width /
    2, channels).
    """
    rows = (fine[..., 0::2, :, :] + fine[..., 1::2, :, :]) / 2
    halves: NDArray[np.floating] = (rows[..., 0::2, :] + rows[..., 1::2, :]) / 2
    return halves


def diameter_pixels(width: int) -> float:
    """The diameter of the obstacle in a frame of this width: 10 in 192."""
    return DIAMETER * width / WIDTH
