"""A data set in words, and the summary of its preparation: rows by class and split, skipped
files with reasons, and measured quantities.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd
import streamlit as st

from dashboard import tables, words
from gan_runtime.base import formats
from gan_runtime.base.fields import IMAGES, LABELS, SOURCE, TARGET, Field, Fields
from gan_runtime.base.packages import guarded
from gan_runtime.catalog.domain import DOMAINS
from gan_runtime.data.summary import Summary, SummaryCurve

MOST_CLASSES = 6  # named in a line
MOST_LETTERS = 24  # of a class name
CHANNELS = {1: "gray", 3: "RGB"}
PAIR = "pair"  # the noun for a row of two images


def row(fields: Fields) -> str:
    """A row in words: "64 × 64 RGB · 2 classes: cat, dog"; "64 × 64 gray → 64 × 64 RGB"."""
    field = fields.get(IMAGES)
    if field is not None:
        return f"{image_shape(field)} · {classes(fields)}"
    for domain in DOMAINS.values():
        describe = guarded(f"the description of {domain.name}", domain.describe, "")
        if described := describe(fields):
            return described
    if SOURCE in fields:
        return f"{image_shape(fields[SOURCE])} → {image_shape(fields[TARGET])}"
    return ", ".join(f"{volume(field)} {name}".strip() for name, field in fields.items())


def volume(field: Field) -> str:
    """17 × 17 × 25, without the last axis of one channel; empty for a single number."""
    shape = field.shape[:-1] if field.shape[-1:] == (1,) else field.shape
    return " × ".join(map(str, shape))


def noun(fields: Collection[str]) -> str:
    """The noun for a row with these fields: image, pair, row, or a noun of a domain, such as
    frame.
    """
    for domain in DOMAINS.values():
        for name in fields:
            if name in domain.nouns:
                return domain.nouns[name]
    if SOURCE in fields:
        return PAIR
    return "image" if IMAGES in fields or not fields else "row"


def image_shape(field: Field) -> str:
    """64 × 64 RGB."""
    height, width, channels = field.shape
    return f"{height} × {width} {CHANNELS.get(channels, f'× {channels}')}"


def classes(fields: Fields) -> str:
    """2 classes: cat, dog."""
    names = fields[LABELS].classes if LABELS in fields else ()
    if not names:
        return "no labels"
    noun = "class" if len(names) == 1 else "classes"
    return f"{formats.count(len(names))} {noun}: {first_names(names)}"


def first_names(names: Sequence[str]) -> str:
    """The first names of a list, with an ellipsis for the rest."""
    shortened = [
        words.plain(name if len(name) <= MOST_LETTERS else f"{name[:MOST_LETTERS]}…")
        for name in names
    ]
    return ", ".join(shortened[:MOST_CLASSES]) + (" …" if len(names) > MOST_CLASSES else "")


def show(summary: Summary, key: str) -> None:
    """The whole summary, warnings first."""
    for warning in summary.warnings:
        st.warning(words.plain(warning), icon=":material/warning:")
    for sentence in summary.sentences():
        st.markdown(words.plain(sentence))
    if summary.counts:
        _counts(summary, f"{key}.counts")
    if summary.curve is not None:
        _curve(summary.curve, f"{key}.curve")
    if summary.skipped.first:
        _skipped_table(summary, f"{key}.left_out")


def expander(rows: int, summary: Summary, key: str) -> None:
    """One line, and an expander with the summary, open if there are warnings.

    `rows`: to train on, if the classes do not tell.
    """
    st.caption(short(rows, summary))
    with st.expander("Summary of the preparation", expanded=bool(summary.warnings)):
        show(summary, key)


def short(rows: int, summary: Summary) -> str:
    """One line: 1,800 to train on, 200 held out · 3 files skipped · 12 converted."""
    rows = sum(train for train, _ in summary.by_split().values()) or rows
    left_out = summary.skipped.files
    parts = (
        f"{formats.count(rows)} to train on, {formats.count(summary.held_out)} held out",
        f"{formats.quantity(left_out, 'file')} skipped" if left_out else "",
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


def _skipped_table(summary: Summary, key: str) -> None:
    rows = [(skip.name, skip.reason) for skip in summary.skipped.first]
    tables.show(pd.DataFrame(rows, columns=["File", "Reason"]), hide_index=True, key=key)


def _curve(curve: SummaryCurve, key: str) -> None:
    # Loads the chart libraries only for a set with a curve.
    from dashboard import charts, plots

    frame = pd.DataFrame({"x": curve.x, "y": curve.y})
    plots.chart(charts.one_curve(frame, curve.title, curve.x_label, curve.y_label), key)
