"""The records of a run: the tab Log and events, and the tab Options with the host of the run, in
words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import option_words, tables, widgets, words
from gan_runtime.base import formats
from gan_runtime.commands.runtime import Runtime
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

LOG_LINES, READ_LINES = 60, 600  # shown; read to find them
# Messages of TensorFlow, XLA and CUDA: information, warnings, and errors that every run prints, or
# every host without a GPU. Other errors stay.
NOISE = re.compile(
    r"^(?:[IW]0000 00:00:|WARNING: All log messages before absl|To enable the following"
    r" instructions"
    r"|E0000 00:00:.*(?:cuInit|oneDNN|remapper failed|Unable to register)"
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IW] (?:tensorflow|external|xla)/"
    r"|(?:INFO|WARNING):tensorflow:)"
)


def show_log(runtime: Runtime, row: RunRow) -> None:
    """The log, and the events below it."""
    head, switch = st.columns([3, 1], vertical_alignment="bottom")
    head.header("Log")
    with switch:
        everything = st.toggle(
            "All lines",
            key=f"all_lines.{row.run_id}",
            help="Includes what TensorFlow, XLA and CUDA print at each start.",
        )
    run = runtime.home.run_dir(row.run_id)
    rank = 0
    if run.worker_log(1).exists():  # each worker of a cluster has its own
        ranks = range(row.workers)
        rank = st.selectbox("Worker", ranks, key=f"rank.{row.run_id}", width=120)
    lines = run.log_tail(READ_LINES, rank).splitlines()
    printed = lines if everything else without_noise(lines)
    if printed:
        st.code("\n".join(printed[-LOG_LINES:]), language=None, height=360)
    else:
        st.caption(
            "The trainer has printed nothing yet." if row.is_live else "This run has no log here."
        )
    st.header("Events")
    tables.show(local_events(runtime.store, row), hide_index=True, key=f"events.{row.run_id}")


def without_noise(lines: list[str]) -> list[str]:
    """The log lines without what TensorFlow, XLA and CUDA print at each start."""
    return [line for line in lines if not NOISE.match(line)]


def local_events(store: Store, row: RunRow) -> pd.DataFrame:
    """The events of a run in the viewer's time zone, oldest first."""
    zone = words.known_zone(st.context.timezone)
    events = queries.events(store, row.run_id)
    at = (
        pd.to_datetime(events["logged_at"], utc=True)
        .dt.tz_convert(zone)
        .dt.strftime("%Y-%m-%d %H:%M:%S")
    )
    table = events.assign(logged_at=at)[["logged_at", "level", "kind", "message", "attempt"]]
    return table.set_axis([f"Time ({zone.key})", "Level", "Kind", "Message", "Attempt"], axis=1)


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
    "data_content": "Fingerprint of the data",
}


USUAL = "Usual, where changed"
OF_EACH_RUN = ("name", "accelerator")  # never count as changed


def show_options(row: RunRow) -> None:
    """The table of options, as high as its rows, so that it does not scroll, and a search."""
    typed = widgets.option_search(
        f"find_option.{row.run_id}", "Find, such as learning rate or seed", 360
    )
    table = options_table(row, typed)
    if table.empty:
        st.caption(option_words.not_found(typed))
        return
    tables.show(table, hide_index=True, key=f"options.{row.run_id}", height="content")


def options_table(row: RunRow, typed: str = "") -> pd.DataFrame:
    """The run's options that fit a search, in the order of the form, changed ones first with their
    usual value; then facts about its host.
    """
    spec, usual = json.loads(row.spec), option_words.usual(row.workload, row.preset or "")
    changed, unchanged = [], []
    for name, option in RunSpec.options(row.workload).items():
        if name not in spec or not option_words.fits(option, typed):
            continue
        label, value = option_words.label(option), option_words.value(option, spec[name])
        if name not in OF_EACH_RUN and option_words.differs(option, spec[name], usual[name]):
            changed.append((label, value, option_words.value(option, usual[name]), name))
        else:
            unchanged.append((label, value, "", name))
    host = json.loads(row.host) if row.host and not typed else {}
    facts = [(f"Host: {label}", text, "", "") for label, text in host_facts(host)]
    columns = ["Option", "Value", USUAL, "Name in --set"]
    return pd.DataFrame([*changed, *unchanged, *facts], columns=columns)


def host_facts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(label, text) of each fact, in recorded order; facts without a label under their own name."""
    return [
        (LABELS.get(name, _spaced(name).capitalize()), _text(name, fact))
        for name, fact in facts.items()
    ]


def _text(name: str, fact: Any) -> str:
    if name == "memory_bytes" and isinstance(fact, int | float):
        return formats.size(fact)
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, Mapping):
        return (
            ", ".join(f"{_spaced(str(key))} {_text('', part)}" for key, part in fact.items()) or "–"
        )
    if isinstance(fact, list | tuple):
        return ", ".join(_text("", part) for part in fact) or "–"
    if isinstance(fact, int):
        return formats.count(fact)
    return "–" if fact is None or fact == "" else str(fact)


def _spaced(name: str) -> str:
    return name.replace("_", " ")
