"""Checks that a chart explains itself in two sentences: what it shows and how to read it."""

from __future__ import annotations

import re
from typing import Any

MOST_WORDS = 22  # per sentence; names of numbers are counted roughly


def sentences(text: str) -> list[str]:
    """The sentences of a text; a period inside a name or number does not end one."""
    return [part.strip() for part in re.split(r"(?<=[.?!])\s+", text.strip()) if part.strip()]


def check(spec: dict[str, Any]) -> None:
    """Asserts that the specification of a chart describes the chart in two sentences."""
    description = str(spec.get("description", ""))
    parts = sentences(description)
    assert len(parts) == 2, f"two sentences are missing: {spec.get('title')}: {description!r}"
    for part in parts:
        assert part.endswith((".", "?")), description
        assert len(part.split()) <= MOST_WORDS, f"too long: {part}"
