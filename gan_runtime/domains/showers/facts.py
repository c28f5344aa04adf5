"""Types of the facts of an answer about showers (records/answer.py)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gan_runtime.catalog.facts import Facts, FactTypes

_Grid = Annotated[list[int], Field(min_length=3, max_length=3)]
_Limits = Annotated[list[float], Field(min_length=2, max_length=2)]


class Showers(Facts):
    """`showers`: their number; `grid`: cells along x, y and z; `periodic`: circular axes."""

    showers: int = 0
    grid: _Grid = Field(default_factory=lambda: [0, 0, 0])
    periodic: list[int] = Field(default_factory=list)


class Bin(Facts):
    """The limits of energy and angle for a curve."""

    energy: _Limits | None = None
    angle: _Limits | None = None


class Shower(Facts):
    """`share`: of the shower's energy in the stored cells."""

    pair: int = 0
    energy_gev: float = 0.0
    angle: float | None = None
    share: float = 0.0


FACTS = FactTypes(answer=Showers, curve=Bin, array=Shower)
