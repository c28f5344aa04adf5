"""Zoom: a drag across a chart shows that part alone, with more of its points; a double-click or the button shows all again.

The page asks the store for the rows of that part, so an axis ends where its data end, whatever is dragged, and the wheel
scrolls the page. Charts with the same key show the same part.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboard import charts, plots, words
from dashboard.panels import Group
from dashboard.tables import Table
from gan_runtime.store import queries
from gan_runtime.store.queries import Window

LINE = 34  # pixels, with or without the button
LEAST = 0.01  # of what is shown: a shorter drag is a click with an unsteady hand
PARAMETERS = (charts.ZOOM, charts.WHOLE)


def window(key: str) -> Window:
    """The part that is shown; everything before the first drag."""
    part: Window = st.session_state.get(f"{key}.window", queries.EVERYTHING)
    return part


def live_chart(group: Group, rows: Table, name: str, key: str, pixels: int, **arguments: Any) -> None:
    """The step curves of a page that is redrawn while a run trains. `arguments`: of `st.vega_lite_chart`."""
    place = place_of(name, key)
    plots.kept_chart(
        charts.step_curves,
        rows.arrow,
        place,
        group,
        pixels,
        on_select=lambda: _follow_everywhere(place, key, rows.frame["x"]),
        selection_mode=PARAMETERS,
        **arguments,
    )


def line(key: str, unit: str = "Steps") -> None:
    """How to zoom, or what is shown and the way back: one line of the same height."""
    first, last = window(key)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", height=LINE, border=False):
        if (first, last) == queries.EVERYTHING:
            st.caption("Drag across a chart to zoom in.", width="content")
            return
        st.caption(f"{unit} {words.count(first)} to {words.count(last)}", width="content")
        st.button(
            "Show everything",
            key=f"{key}.whole",
            icon=":material/zoom_out_map:",
            type="tertiary",
            on_click=_show,
            args=(key,),
        )


def place_of(name: str, key: str) -> str:
    """The key of a chart. A new part is a new chart: the old one would keep what was dragged on top of the new rows."""
    return f"{name}.{key}.{st.session_state.get(f'{key}.turn', 0)}"


def follow(place: str, key: str, x: pd.Series[Any]) -> None:
    """As `take`, for charts in which nothing but a zoom can be done."""
    take(place, key, x)


def _follow_everywhere(place: str, key: str, x: pd.Series[Any]) -> None:
    """As `follow`, on a page of several fragments: other curves show the same part, and a line says which."""
    follow(place, key, x)
    st.rerun()


def take(place: str, key: str, x: pd.Series[Any]) -> bool:
    """Follows what was done in the chart at `place`, whose rows lie at `x`. False where that was no zoom."""
    selected = st.session_state[place]["selection"]
    if selected.get(charts.WHOLE):
        _show(key)
        return True
    dragged = next(iter(selected.get(charts.ZOOM, {}).values()), None)
    if dragged and len(x) and abs(dragged[1] - dragged[0]) > LEAST * (x.max() - x.min()):
        _show(key, (float(min(dragged)), float(max(dragged))))
        return True
    return False


def _show(key: str, part: Window = queries.EVERYTHING) -> None:
    st.session_state[f"{key}.window"] = part
    st.session_state[f"{key}.turn"] = st.session_state.get(f"{key}.turn", 0) + 1
