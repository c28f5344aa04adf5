"""The search of the list of runs: a text, and conditions on options such as seed>=3."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dashboard import option_words

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
    found = {word: CONDITION.fullmatch(word) for word in typed.lower().split()}
    text = " ".join(word for word, match in found.items() if match is None)
    matches = filter(None, found.values())
    return Search(text, tuple((each[1].rpartition(".")[2], each[2], each[3]) for each in matches))


def _holds(value: object, sign: str, wanted: str) -> bool:
    """Numbers by size; of texts only whether they are equal."""
    try:
        return COMPARISONS[sign](float(str(value)), float(wanted))
    except ValueError:
        return sign == "=" and str(value).lower() == wanted
