"""Levels that a small kick reaches in 8,000 steps, compared to the independent program of
tests/domains/flows/test_lattice.py.
"""

from __future__ import annotations

from tests.domains.flows.wakes import swing


def test_small_kick_decays_below_and_grows_above_critical_reynolds() -> None:
    """At Re 40, it decays by more than a tenth per 1,000 steps, to the other program's 0.007 U; at
    Re 60, it grows tenfold in the 8,000 steps, from nearly the same level.
    """
    dying, growing = (
        abs(swing("square", "periodic", reynolds, 0, 8_000, kick=0.05)).reshape(8, -1).max(axis=1)
        for reynolds in (40.0, 60.0)
    )
    assert 0.015 < dying[0] < growing[0] < 0.04
    assert (dying[1:] < 0.9 * dying[:-1]).all()
    assert dying[-1] < 0.007
    assert (growing[1:] > growing[:-1]).all()
    assert growing[-1] > 0.3
