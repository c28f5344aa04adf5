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


ANY_FACTS = FactTypes()
