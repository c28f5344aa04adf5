"""What is declared of a named starting point for a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Caution:
    """What was seen to go wrong with a preset from `least` of `option` on while `alike` is untouched, and what repairs it."""

    option: str
    least: float
    alike: tuple[str, ...]
    text: str
    repair: dict[str, Any]

    def concerns(self, chosen: Mapping[str, Any], preset: Mapping[str, Any]) -> bool:
        """Whether it was seen at these values of all options, flat; `preset`: those that the preset gives them."""
        untouched = all(chosen.get(name) == preset[name] for name in (*self.alike, *self.repair))
        return untouched and chosen[self.option] >= self.least


@dataclass(frozen=True)
class Preset:
    """A named starting point. `suggestions`: values worth trying, offered as buttons beside the field."""

    title: str
    summary: str
    values: dict[str, Any]
    suggestions: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    caution: Caution | None = None
