"""The latents of a request: of typed seeds, between picked ones, or on a plane of two directions.

Latents z: float32 (rows, size), standard normal, so nearly all have a length close to √size. Points
between two of them lie on an arc: those on the straight line are shorter than any that the
generator was trained on.
Sources: Shoemake 1985, doi:10.1145/325165.325242, section 3.3 (slerp); White 2016,
arXiv:1609.04468, section 2.1 (slerp of latents); Brock et al. 2019, arXiv:1809.11096, section 3.1
(truncation).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gan_runtime.engines.inputs import HostNoise

Layout = Literal["grid", "strip", "plane"]
Latents = NDArray[np.float64]
PLANE_SEEDS = 3  # its center and its two directions
_PARALLEL = 1e-6  # sine of an angle below which two latents have no plane


@dataclass(frozen=True)
class LatentPoints:
    """The points of a request, of each class the same.

    `seeds`: a seed names its latent. `frames`: of a strip from one seed to the next, both ends
    included; of a plane along each side. `reach_deg`: of a plane, from its center to its edges.
    `truncation`: the largest number of a latent; 0: none.
    """

    seeds: tuple[int, ...]
    layout: Layout = "grid"
    frames: int = 8
    reach_deg: float = 90.0
    truncation: float = 0.0

    @property
    def count(self) -> int:
        """Points."""
        if self.layout == "strip":
            return (len(self.seeds) - 1) * self.frames
        return self.frames**2 if self.layout == "plane" else len(self.seeds)

    def placed(self, ends: Latents) -> Latents:
        """(seeds, size), the latents of the seeds → (count, size)."""
        if self.truncation:
            ends = truncated(ends, self.truncation)
        if self.layout == "strip":
            return strip(ends, self.frames)
        return plane(ends, self.frames, self.reach_deg) if self.layout == "plane" else ends


class LatentNoise(HostNoise):
    """As `HostNoise`, for rows whose latents are points of a request.

    `places`: of each row, among the points.
    """

    def __init__(self, points: LatentPoints, places: NDArray[np.integer]) -> None:
        super().__init__(points.seeds[0])
        self._points, self._places = points, places

    def normal(self, rows: int, *shape: int) -> NDArray[np.float32]:
        """float32 (rows, *shape). The latent of a seed is the first row of its `HostNoise`."""
        self._streams += 1
        streams = [HostNoise(seed, self._streams - 1) for seed in self._points.seeds]
        ends = np.stack([stream.normal(1, *shape).ravel() for stream in streams])
        placed = self._points.placed(ends.astype(np.float64))
        return placed[self._places].reshape(rows, *shape).astype(np.float32)


def slerp(start: Latents, end: Latents, shares: Latents) -> Latents:
    """Points (shares, size) on the arc between two latents (size,), for shares of 0 to 1 of its
    angle Ω:

        z(t) = sin((1 - t) Ω) / sin Ω · start + sin(t Ω) / sin Ω · end    (Shoemake 1985)

    Parallel ones have no arc: z(t) = (1 - t) start + t end.
    """
    cosine = start @ end / max(np.linalg.norm(start) * np.linalg.norm(end), np.finfo(float).tiny)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    if np.sin(angle) < _PARALLEL:
        return np.outer(1.0 - shares, start) + np.outer(shares, end)
    of_start, of_end = np.sin((1.0 - shares) * angle), np.sin(shares * angle)
    return (np.outer(of_start, start) + np.outer(of_end, end)) / np.sin(angle)


def strip(ends: Latents, frames: int) -> Latents:
    """(seeds, size) → ((seeds - 1) · frames, size): the arcs from each to the next."""
    shares = np.linspace(0.0, 1.0, frames)
    return np.concatenate([slerp(start, end, shares) for start, end in pairwise(ends)])


def plane(ends: Latents, side: int, reach_deg: float) -> Latents:
    """A center and two directions (3, size) → (side², size), row by row.

    With the unit vector e₀ of the center, and e₁, e₂ those of the directions, each at a right angle
    to the ones before (Gram and Schmidt), the point at the angles (α, β) is

        z(α, β) = |z₀| (cos θ · e₀ + sin θ / θ · (α e₁ + β e₂)),    θ = √(α² + β²),

    the exponential map of the sphere. α goes from -reach to reach from left to right, β from top to
    bottom. At 90° the middle of an edge has the latent of a direction, as far as it is at a right
    angle to the center: nearly, in many dimensions.
    """
    center, first, second = _at_right_angles(ends)
    angles = np.radians(np.linspace(-reach_deg, reach_deg, side))
    beta, alpha = (axis.ravel() for axis in np.meshgrid(angles, angles, indexing="ij"))
    theta = np.hypot(alpha, beta)
    steps = np.outer(alpha, first) + np.outer(beta, second)
    # NumPy's sinc(x) is sin(πx) / πx, and 1 at 0.
    unit = np.outer(np.cos(theta), center) + np.sinc(theta / np.pi)[:, None] * steps
    return np.linalg.norm(ends[0]) * unit


def _at_right_angles(vectors: Latents) -> Latents:
    """Unit vectors (n, size); 0 for one that depends on those before, as in one dimension."""
    units = np.zeros_like(vectors)
    for place, vector in enumerate(vectors):
        rest = vector - units[:place].T @ (units[:place] @ vector)
        length = np.linalg.norm(rest)
        if length > _PARALLEL * np.linalg.norm(vector):
            units[place] = rest / length
    return units


def truncated(latents: Latents, most: float) -> Latents:
    """The same shape, normal numbers without those beyond ±`most`: less variety, fewer odd images.

    Brock et al. draw such numbers again. Here each number z becomes that of the same rank among the
    rest, which has the same distribution and lets a seed's image change smoothly with `most`, t:

        z' = Φ⁻¹(Φ(-t) + Φ(z) (Φ(t) - Φ(-t)))
    """
    from scipy.special import ndtr, ndtri  # pages, which import this file, do without

    low, high = ndtr(-most), ndtr(most)
    return np.asarray(ndtri(low + ndtr(latents) * (high - low)))
