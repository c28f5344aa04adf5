"""Types of the facts that pages, reports and SQL read from an evaluation's answers. Answers come
from others too, in bundles; one with a fact of another type is skipped when its journal is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class Facts(BaseModel):
    """Facts by name, all of which may be absent. Other names may have any value."""

    model_config = ConfigDict(frozen=True, strict=True)

    @classmethod
    def check(cls, facts: Mapping[str, Any]) -> None:
        """Raises ValueError for a fact of another type."""
        try:
            cls.model_validate_json(json.dumps(facts))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise ValueError(f"facts.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


@dataclass(frozen=True)
class FactTypes:
    """The facts of answers of an evaluation, of their curves and of their arrays."""

    answer: type[Facts] = Facts
    curve: type[Facts] = Facts
    array: type[Facts] = Facts


class QualityFacts(Facts):
    """`samples`, `references`: generated and real images; `reference`: what the real ones are.
    `features`: the network that read the images; `classifier`, `weights`: its digest.
    """

    samples: int = 0
    references: int = 0
    reference: str = ""
    seed: int = 0
    protocol: int = 0
    features: str = ""
    classifier: str = ""
    weights: str = ""
    accuracy: float = 0.0
    warning: str = ""


class SurfaceFacts(Facts):
    """`images`: of which the loss is the mean; `share_x`, `share_y`: of all movement."""

    network: str = ""
    images: int = 0
    share_x: float = 0.0
    share_y: float = 0.0


class MapFacts(Facts):
    """`columns`: numbers in a row of a map."""

    columns: int = 0
