"""Where the command line writes: answers to stdout, everything else (progress, errors) to stderr.

JSON knows no NaN: a number that is not finite becomes the text "NaN", "Infinity" or "-Infinity"; pictures become Base64.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from datetime import datetime
from typing import Any

from rich.console import Console

PIPE_WIDTH = 200  # columns of a table that goes into a file or another program


def answers() -> Console:
    """Writes to stdout; no markup, because reasons and SQL may hold brackets."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, markup=False, highlight=False, emoji=False)


def notes() -> Console:
    """Writes to stderr."""
    width = None if sys.stderr.isatty() else PIPE_WIDTH
    return Console(width=width, stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)


def say(sentence: str) -> None:
    """One sentence of an answer, in one line however long."""
    answers().print(sentence, soft_wrap=True)


def print_json(value: Any, indent: int | None = 2) -> None:
    """One JSON document on stdout; `indent=None` keeps it on one line."""
    print(json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False), flush=True)


def plain(value: Any) -> Any:
    """`value` in what JSON has: objects, lists, text, numbers, true, false, null. Times in ISO 8601."""
    match value:
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case None | bool() | int() | str():
            return value
        case datetime():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return str(value)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
