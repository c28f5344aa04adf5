"""Objects that a declaration names by their place, so that reading it imports no module."""

from __future__ import annotations

import importlib
from typing import Any


def loaded(place: str) -> Any:
    """The object at "module:name"."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
