"""The tab Options: every option of a run, and the host that it was trained on, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from dashboard import option_words, tables, words
from gan_runtime.spec import RunSpec
from gan_runtime.store.queries import RunRow

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


def show(row: RunRow) -> None:
    """As high as its rows: nothing scrolls inside the page."""
    table = options_table(row)
    tables.show(table, hide_index=True, key=f"options.{row.run_id}", height="content")


def options_table(row: RunRow) -> pd.DataFrame:
    """The run's options in the order of the form, then the host it ran on."""
    spec = json.loads(row.spec)
    rows = [
        (option_words.label(option), option_words.value(option, spec[name]), name)
        for name, option in RunSpec.options(row.workload).items()
        if name in spec
    ]
    host = json.loads(row.host) if row.host else {}
    rows += [(f"Host: {label}", text, "") for label, text in host_facts(host)]
    return pd.DataFrame(rows, columns=["Option", "Value", "Name in --set"])


def host_facts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
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
