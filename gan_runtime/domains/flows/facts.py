"""Types of the facts of a rollout's answer (records/answer.py)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gan_runtime.catalog.facts import Facts, FactTypes

_Pixels = Annotated[list[int], Field(min_length=1, max_length=3)]


class Rollout(Facts):
    """The conditions of a rollout.

    `way`, `cores`, `tile`, `overlap`, `blend`: how images are divided. `grid`: height, width and
    channels. `reynolds`, `obstacle_width`: None for other images; `solver_steps`: between frames.
    """

    iteration: str = ""
    way: str = ""
    cores: int = 1
    tile: _Pixels = Field(default_factory=lambda: [0])
    overlap: int = 0
    blend: str = ""
    grid: _Pixels = Field(default_factory=lambda: [0])
    reynolds: float | None = None
    trajectory: int = 0
    start: int = 0
    steps: int = 0
    solver_steps: int | None = None
    film: str = ""
    obstacle_width: float | None = None
    replay: str = ""


class Stages(Facts):
    """`names`: of the stages whose times a curve has."""

    names: list[str] = Field(default_factory=list)


FACTS = FactTypes(answer=Rollout, curve=Stages)
