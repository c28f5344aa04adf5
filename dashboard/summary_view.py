"""The summary of a preparation on a page: rows by class and split, what was left out and why, what was converted, what was measured."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import tables, words
from gan_runtime.data.summary import Curve, Summary


def show(summary: Summary, key: str) -> None:
    """All of it, warnings first."""
    for warning in summary.warnings:
        st.warning(words.plain(warning), icon=":material/warning:")
    for sentence in summary.sentences():
        st.markdown(words.plain(sentence))
    if summary.counts:
        _counts(summary, f"{key}.counts")
    if summary.curve is not None:
        _curve(summary.curve, f"{key}.curve")
    if summary.skipped.first:
        _left_out(summary, f"{key}.left_out")


def folded(rows: int, summary: Summary, key: str) -> None:
    """A line, and all of it on request; open where there is a warning. `rows`: to train on, where classes do not say how many."""
    st.caption(short(rows, summary))
    with st.expander("Summary of the preparation", expanded=bool(summary.warnings)):
        show(summary, key)


def short(rows: int, summary: Summary) -> str:
    """In one line: 1,800 to train on, 200 held out · 3 files left out · 12 converted."""
    rows = sum(train for train, _ in summary.by_split().values()) or rows
    left_out = sum(summary.skipped.counts.values())
    parts = (
        f"{words.count(rows)} to train on, {words.count(summary.held_out)} held out",
        f"{words.things(left_out, 'file')} left out" if left_out else "",
        f"converted: {', '.join(summary.converted)}" if summary.converted else "",
        "".join(quantity.in_words() for quantity in summary.quantities[:1]),
    )
    return " · ".join(words.plain(part) for part in parts if part)


def _counts(summary: Summary, key: str) -> None:
    split = summary.by_split()
    frame = pd.DataFrame(
        {
            "Class": list(split),
            "To train on": [train for train, _ in split.values()],
            "Held out": [held_out for _, held_out in split.values()],
        }
    )
    tables.show(frame, hide_index=True, key=key)


def _left_out(summary: Summary, key: str) -> None:
    rows = [(skip.name, skip.reason) for skip in summary.skipped.first]
    tables.show(pd.DataFrame(rows, columns=["File", "Why it is left out"]), hide_index=True, key=key)


def _curve(curve: Curve, key: str) -> None:
    from dashboard import charts, plots  # the libraries for charts are loaded where a set has a curve

    frame = pd.DataFrame({"x": curve.x, "y": curve.y})
    plots.chart(charts.one_curve(frame, curve.title, curve.x_label, curve.y_label), key)
