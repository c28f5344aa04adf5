"""A number and how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Value:
    """`error`: one standard deviation; NaN where none is known."""

    value: float
    error: float = math.nan
