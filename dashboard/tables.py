"""Tables as a browser gets them: the rows of a chart, serialized once for all browsers on a run,
and numbers in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype
from pandas.io.formats.style import Styler
from streamlit import dataframe_util

from dashboard import words

MOST_ROWS_IN_WORDS = 500

SENT_AS = {
    **dict.fromkeys(["run_id", "metric", "series"], "category"),
    **dict.fromkeys(["low", "mean", "high", "smoothed"], "float32"),
    "epoch": "int32",
}


@dataclass(frozen=True)
class Table:
    """A frame and its Arrow IPC bytes, `arrow`, shared by sessions and never changed."""

    frame: pd.DataFrame
    arrow: bytes

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return self.frame.empty


def from_frame(frame: pd.DataFrame) -> Table:
    """The frame, and what is sent of it."""
    return Table(
        frame, b"" if frame.empty else dataframe_util.convert_anything_to_arrow_bytes(frame)
    )


def from_curves(frame: pd.DataFrame) -> Table:
    """As `of`, in half the bytes: a repeated name is sent once, and values in single precision,
    which is finer than a pixel.
    """
    kinds = {column: kind for column, kind in SENT_AS.items() if column in frame}
    return Table(frame, from_frame(frame.astype(kinds).reset_index(drop=True)).arrow)


def of_runs(
    labels: Mapping[str, list[str]],
    runs: Mapping[str, list[str]],
    references: Mapping[str, list[str]] | None = None,
) -> pd.DataFrame:
    """Labels, a column for each run, then references. A run named like another column keeps its
    own, with "(run)" after the name.
    """
    others = {**labels, **(references or {})}
    of_run = {f"{name} (run)" if name in others else name: cells for name, cells in runs.items()}
    return pd.DataFrame({**labels, **of_run, **(references or {})})


def show(table: pd.DataFrame | Styler, **arguments: Any) -> Any:
    """`st.dataframe`, whose toolbar copies and downloads what it was sent: no text is a formula.

    Every table of a page is shown here.
    """
    return st.dataframe(harmless(table) if isinstance(table, pd.DataFrame) else table, **arguments)


def harmless(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with texts, lists and column names that no spreadsheet takes for formulas."""
    texts = [
        not is_numeric_dtype(kind) and not is_datetime64_any_dtype(kind) for kind in frame.dtypes
    ]
    table = frame.copy(deep=False)
    for place, is_text in enumerate(texts):
        if is_text:
            table.isetitem(place, frame.iloc[:, place].map(_harmless).array)
    return table.rename(columns=_harmless)


def _harmless(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_harmless(part) for part in value]
    return words.cell(value) if isinstance(value, str) else value


def is_long(frame: pd.DataFrame) -> bool:
    """Whether `with_words` leaves its numbers unformatted."""
    return len(frame) > MOST_ROWS_IN_WORDS


def with_words(
    frame: pd.DataFrame, columns: Mapping[str, Callable[[float], str]]
) -> Styler | pd.DataFrame:
    """A frame with formatted numbers, which still sort as numbers.

    Formatting takes 0.5 ms for a row of twenty columns, so a very long table has bare numbers.
    """
    if is_long(frame):
        return frame.round(dict.fromkeys(columns, 3))
    formats = {name: partial(_or_dash, words_of) for name, words_of in columns.items()}
    return harmless(frame).style.format(formats)  # type: ignore[arg-type]


def _or_dash(words_of: Callable[[float], str], number: float) -> str:
    return "–" if pd.isna(number) else words_of(number)
