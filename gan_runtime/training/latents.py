"""Latents of requested images: of given seeds, between two seeds, or on a plane.

Latents z: float32 (rows, size), standard normal, so nearly all have a length close to √size. Points
between two latents lie on an arc: points on the straight line are shorter than any latent that the
generator was trained on. Sources: Shoemake 1985, doi:10.1145/325165.325242, section 3.3 (slerp);
White 2016, arXiv:1609.04468, section 2.1 (slerp of latents); Brock et al. 2019, arXiv:1809.11096,
section 3.1 (truncation).
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
PLANE_SEEDS = 3  # of a plane: its center and two directions
_PARALLEL = 1e-6  # sine of the angle below which two latents span no plane


@dataclass(frozen=True)
class LatentPoints:
    """The latent points of a request, the same for each class.

    `seeds`: each seed determines a latent. `frames`: points of a strip from one seed to the next,
    including both ends, or points along each side of a plane. `reach_deg`: angle from the center of
    a plane to its edges. `truncation`: limit on the absolute value of each number of a latent; 0
    means no limit.
    """

    seeds: tuple[int, ...]
    layout: Layout = "grid"
    frames: int = 8
    reach_deg: float = 90.0
    truncation: float = 0.0

    @property
    def count(self) -> int:
        """The number of points."""
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
    """Like `HostNoise`, for rows whose latents are points of a request. `places`: the index of each
    row's point.
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

    Parallel latents have no arc: z(t) = (1 - t) start + t end.
    """
    cosine = start @ end / max(np.linalg.norm(start) * np.linalg.norm(end), np.finfo(float).tiny)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    if np.sin(angle) < _PARALLEL:
        return np.outer(1.0 - shares, start) + np.outer(shares, end)
    of_start, of_end = np.sin((1.0 - shares) * angle), np.sin(shares * angle)
    return (np.outer(of_start, start) + np.outer(of_end, end)) / np.sin(angle)


def strip(ends: Latents, frames: int) -> Latents:
    """(seeds, size) → ((seeds - 1) · frames, size): the arcs from each seed to the next."""
    shares = np.linspace(0.0, 1.0, frames)
    return np.concatenate([slerp(start, end, shares) for start, end in pairwise(ends)])


def plane(ends: Latents, side: int, reach_deg: float) -> Latents:
    """A center and two directions (3, size) → (side², size), row by row.

    With the unit vector e₀ of the center, and the unit vectors e₁ and e₂ of the directions,
    orthogonalized in turn (Gram and Schmidt), the point at the angles (α, β) is

        z(α, β) = |z₀| (cos θ · e₀ + sin θ / θ · (α e₁ + β e₂)),    θ = √(α² + β²),

    the exponential map of the sphere. α goes from -reach to reach from left to right, β from top to
    bottom. At 90° the middle of an edge is the part of a direction's latent orthogonal to the
    center; in many dimensions that is nearly all of it.
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
    """Orthonormal vectors (n, size); 0 for a vector that depends on the previous ones."""
    units = np.zeros_like(vectors)
    for place, vector in enumerate(vectors):
        rest = vector - units[:place].T @ (units[:place] @ vector)
        length = np.linalg.norm(rest)
        if length > _PARALLEL * np.linalg.norm(vector):
            units[place] = rest / length
    return units


def truncated(latents: Latents, most: float) -> Latents:
    """Latents of the same shape, truncated to ±`most`: less variety, fewer implausible images.

    Brock et al. redraw the numbers beyond the limit. Here each number z is mapped to the same
    quantile of the truncated normal distribution, so a seed's image changes smoothly with t =
    `most`:

        z' = Φ⁻¹(Φ(-t) + Φ(z) (Φ(t) - Φ(-t)))
    """
    from scipy.special import ndtr, ndtri  # pages load this file without SciPy

    low, high = ndtr(-most), ndtr(most)
    return np.asarray(ndtri(low + ndtr(latents) * (high - low)))
