"""What a chart says about itself: two sentences, what it shows and how to read it."""

from __future__ import annotations

import re
from typing import Any

MOST_WORDS = 22  # of a sentence; names of numbers are not counted closely


def sentences(text: str) -> list[str]:
    """The sentences of a text; a period within a name or number ends none."""
    return [part.strip() for part in re.split(r"(?<=[.?!])\s+", text.strip()) if part.strip()]


def check(spec: dict[str, Any]) -> None:
    """Fails where the specification of a chart does not say in two sentences what one sees."""
    description = str(spec.get("description", ""))
    parts = sentences(description)
    assert len(parts) == 2, f"two sentences are missing: {spec.get('title')}: {description!r}"
    for part in parts:
        assert part.endswith((".", "?")), description
        assert len(part.split()) <= MOST_WORDS, f"too long: {part}"
