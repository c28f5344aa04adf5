"""Student's t quantiles match those of SciPy, which the dashboard does not load."""

from __future__ import annotations

import math

import pytest
from scipy.special import stdtrit

from gan_runtime.studies.statistics import quantile

FREEDOMS = (*range(1, 41), 99, 100, 500, 998, 999, 1_000)


@pytest.mark.parametrize("share", [0.6, 0.8, 0.9, 0.95, 0.975, 0.99, 0.9975, 0.9999, 0.99999])
def test_quantile_matches_scipy(share: float) -> None:
    """Within 10⁻⁹; one degree of freedom more or less changes it by at least 10⁻⁷."""
    values = [quantile(share, freedom) for freedom in FREEDOMS]
    assert values == pytest.approx(stdtrit(FREEDOMS, share), rel=1e-9)


def test_quantiles_match_printed_tables() -> None:
    assert quantile(0.975, 1) == pytest.approx(12.706, abs=5e-4)
    assert quantile(0.975, 4) == pytest.approx(2.776, abs=5e-4)
    assert quantile(0.95, 30) == pytest.approx(1.697, abs=5e-4)
    assert quantile(0.5, 7) == pytest.approx(0.0, abs=1e-12)
    assert quantile(0.75, 1) == pytest.approx(math.tan(math.pi / 4))  # Cauchy distribution


@pytest.mark.parametrize(("share", "freedom"), [(0.4, 3), (1.0, 3), (math.nan, 3), (0.9, 0)])
def test_invalid_share_or_degrees_of_freedom_are_refused(share: float, freedom: int) -> None:
    with pytest.raises(ValueError, match=f"not {share} with {freedom}"):
        quantile(share, freedom)
