"""The pictures of the sets that are inside scikit-learn, which the dashboard does not load."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def embedded(name: str) -> Path | None:
    """The first rows of such a set; None for other sets."""
    path = _FOLDER / f"{name}.png"
    return path if path.is_file() else None
