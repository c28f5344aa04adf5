"""What a run has written down about its host and its networks, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard import words

LABELS = {
    "cpu_model": "Processor",
    "cpu_flags": "Processor extensions",
    "cores": "Cores",
    "memory_bytes": "Memory",
    "platform": "System",
    "python": "Python",
    "versions": "Packages",
    "commit": "Commit",
    "uncommitted_changes": "Changes since the commit",
    "strategy": "Distribution",
    "devices": "Devices",
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "jax": "JAX",
    "parameters": "Weights",
    "settings": "Settings of frameworks",
    "data_origin": "Data read from",
    "data_content": "Content of the data",
}


def rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(label, text) of each fact, in the order in which they were written; facts without a label under their own name."""
    return [(LABELS.get(name, _spaced(name).capitalize()), _text(name, fact)) for name, fact in facts.items()]


def _text(name: str, fact: Any) -> str:
    if name == "memory_bytes" and isinstance(fact, int | float):
        return words.size(fact)
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, Mapping):
        return ", ".join(f"{_spaced(str(key))} {_text('', part)}" for key, part in fact.items()) or "–"
    if isinstance(fact, list | tuple):
        return ", ".join(_text("", part) for part in fact) or "–"
    if isinstance(fact, int):
        return words.count(fact)
    return "–" if fact is None or fact == "" else str(fact)


def _spaced(name: str) -> str:
    return name.replace("_", " ")
