"""The search of the list of runs: a text, and conditions on options such as seed>=3."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from dashboard import option_words
from gan_runtime import catalog
from gan_runtime.spec import RunSpec

CONDITION = re.compile(r"([a-z0-9_.]+)(<=|>=|=|<|>)(\S+)")
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Search:
    """`text`: in lower case; `conditions`: option, comparison and value."""

    text: str
    conditions: tuple[tuple[str, str, str], ...]

    def fits(self, workload: str, spec: str, searched: str) -> bool:
        """Whether a run matches. `spec`: its options as JSON; `searched`: its texts."""
        if self.text not in searched.lower():
            return False
        values = option_words.defaults(workload) | json.loads(spec) if self.conditions else {}
        return all(_holds(values.get(name), sign, value) for name, sign, value in self.conditions)


def parsed(typed: str) -> Search:
    """The search that a user has typed."""
    texts, conditions = [], []
    for word in typed.lower().split():
        match = CONDITION.fullmatch(word)
        name = match[1].rpartition(".")[2] if match else ""
        if match and name in _options():
            conditions.append((name, match[2], match[3]))
        else:
            texts.append(word)
    return Search(" ".join(texts), tuple(conditions))


@cache
def _options() -> frozenset[str]:
    """The options of all workloads."""
    return frozenset(name for workload in catalog.WORKLOADS for name in RunSpec.options(workload))


def _holds(value: object, sign: str, wanted: str) -> bool:
    """Numbers by size; of texts only whether they are equal."""
    try:
        return COMPARISONS[sign](float(str(value)), float(wanted))
    except ValueError:
        return sign == "=" and str(value).lower() == wanted
