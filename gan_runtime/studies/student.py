"""Student's t distribution with a whole number of degrees of freedom, by its finite series.

The dashboard needs one quantile of it. SciPy's loads 14 MB and takes 0.35 s, and all of the dashboard is to need less than 300 MB
(docs/decisions/0067-what-the-dashboard-keeps.md); the tests hold this one to SciPy's.
"""

from __future__ import annotations

import functools
import math

HALVINGS = 60  # of an interval of angles that is π/2 wide: beyond the precision of a double


@functools.lru_cache(maxsize=4_096)
def quantile(share: float, freedom: int) -> float:
    """The t below which `share` of the distribution with `freedom` degrees of freedom lies.

    With t = √ν tan θ the share within ±t grows with the angle θ from 0 to 1, so θ is found by halving. 0.975 and ν = 4: 2.776.
    Exact to 10⁻⁹ of its value for shares up to 1 − 10⁻⁵ and up to 1,000 degrees of freedom.

    Raises:
        ValueError: `share` is below 0.5 or not below 1, or `freedom` below 1.
    """
    if not (0.5 <= share < 1.0 and freedom >= 1):
        raise ValueError(
            f"a quantile of 0.5 to 1 with 1 degree of freedom or more, not {share} with {freedom}"
        )
    low, high = 0.0, math.pi / 2
    for _ in range(HALVINGS):
        angle = (low + high) / 2
        low, high = (angle, high) if _share_within(angle, freedom) < 2.0 * share - 1.0 else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def _share_within(angle: float, freedom: int) -> float:
    """A(t | ν), the share between −t and t. Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.

    Odd ν:  2/π · (θ + sin θ · (cos θ + 2/3 cos³θ + (2·4)/(3·5) cos⁵θ + … to cos^(ν−2) θ)), without the series for ν = 1
    Even ν: sin θ · (1 + 1/2 cos²θ + (1·3)/(2·4) cos⁴θ + … to cos^(ν−2) θ)
    """
    is_odd, cosine = freedom % 2 == 1, math.cos(angle)
    term, total = cosine if is_odd else 1.0, 0.0
    for power in range(2 + is_odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (power - 1) / power
    within = math.sin(angle) * total
    return (angle + within) * 2 / math.pi if is_odd else within
