"""Charts on a page: a specification, which is kept where it can be, and its rows beside it.

Apart from widgets.py, as Home draws no chart: the libraries for them are loaded once its first
screen is there.

Zoom: a drag across a chart shows that part alone, with more of its points; a double-click or the
button shows all again. The page asks the store for the rows of that part, so an axis ends where its
data end, whatever is dragged, and the wheel scrolls the page. Charts with the same key show the
same part.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from functools import cache, lru_cache
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
from altair.utils import schemapi

from dashboard import charts, tables
from dashboard.chart_panels import Group
from dashboard.tables import Table
from gan_runtime.base import formats
from gan_runtime.store import queries
from gan_runtime.store.queries import Window

ROWS = "rows"  # of a chart, under this name in its specification
MOST_KEPT = 500  # specifications, some kilobytes each
# a chart is checked when it is sent; to check each part of it as well is what tests are for
schemapi.disable_debug_mode()


def chart(drawn: alt.Chart | alt.LayerChart, key: str, **selection: Any) -> None:
    """Puts a chart that was just drawn on the page, its tables beside its specification.

    `selection`: `on_select` and `selection_mode` of Streamlit.
    """
    tables: dict[str, pd.DataFrame] = {}
    for part in (drawn, *getattr(drawn, "layer", ())):
        if isinstance(part.data, pd.DataFrame):
            name = f"{ROWS}{len(tables) or ''}"
            tables[name], part.data = part.data, alt.NamedData(name=name)
    _put(specification(drawn), tables, key, **selection)


def specification(drawn: alt.Chart | alt.LayerChart) -> dict[str, Any]:
    """Of a chart whose tables have names.

    Nothing compares it with the schema of Vega-Lite, which takes as long as all the rest: tests do.
    """
    made: dict[str, Any] = json.loads(json.dumps(drawn.to_dict(validate=False)))
    has_ground = any(
        layer.get("data", {}).get("name") == charts.GROUND for layer in made.get("layer", ())
    )
    datasets = {"datasets": {charts.GROUND: _ground_row()}} if has_ground else {}
    return {**made, **datasets, "config": charts.CONFIG}


@cache
def _ground_row() -> bytes:
    """Written once: Streamlit would write down anew, in each refresh, what stands in a
    specification.
    """
    return tables.of(pd.DataFrame({"x": [0]})).arrow


def with_rows(made: dict[str, Any], rows: pd.DataFrame | bytes, key: str, **arguments: Any) -> None:
    """Puts a chart on the page: its kept specification and today's rows.

    `arguments`: of `st.vega_lite_chart`.
    """
    _put(made, {ROWS: rows}, key, **arguments)


def _put(
    made: dict[str, Any], tables: Mapping[str, pd.DataFrame | bytes], key: str, **arguments: Any
) -> None:
    """Every chart of the dashboard is put on the page here.

    Its place has its height before it is drawn: what stands below does not move.
    """
    spec = {**made, "datasets": {**made.get("datasets", {}), **tables}}
    st.vega_lite_chart(spec=spec, key=key, **{"height": made["height"], **arguments})


def kept_chart(
    draw: Callable[..., alt.Chart | alt.LayerChart],
    rows: pd.DataFrame | bytes,
    key: str,
    *what: Hashable,
    **arguments: Any,
) -> None:
    """A chart on a page that is redrawn while a run trains: what `draw(rows, *what)` makes is
    drawn once, without the rows, and kept.
    """
    with_rows(kept(draw, *what), rows, key, **arguments)


@lru_cache(MOST_KEPT)
def kept(draw: Callable[..., alt.Chart | alt.LayerChart], *what: Hashable) -> dict[str, Any]:
    """The specification of `draw(rows, *what)` for rows that come later."""
    return specification(draw(alt.NamedData(name=ROWS), *what))


@st.cache_data(show_spinner=False, max_entries=100)
def steady_chart(
    _draw: Callable[[pd.DataFrame], alt.Chart | alt.LayerChart], frame: pd.DataFrame, key: str
) -> None:
    """A chart in which more than the rows follows from the rows: with the same `key` and the
    same rows Streamlit repeats what it sent.
    """
    chart(_draw(tables.harmless(frame)), key)


LINE = 34  # pixels, with or without the button
LEAST = 0.01  # of what is shown: a shorter drag is a click with an unsteady hand
PARAMETERS = (charts.ZOOM, charts.WHOLE)


def zoom_window(key: str) -> Window:
    """The part that is shown; everything before the first drag."""
    part: Window = st.session_state.get(f"{key}.window", queries.EVERYTHING)
    return part


def live_chart(
    group: Group, rows: Table, name: str, key: str, pixels: int, **arguments: Any
) -> None:
    """The step curves of a page that is redrawn while a run trains.

    `arguments`: of `st.vega_lite_chart`.
    """
    place = place_of(name, key)
    kept_chart(
        charts.step_curves,
        rows.arrow,
        place,
        group,
        pixels,
        on_select=lambda: _follow_everywhere(place, key, rows.frame["x"]),
        selection_mode=PARAMETERS,
        **arguments,
    )


def zoom_line(key: str, unit: str = "Steps") -> None:
    """How to zoom, or what is shown and the way back: one line of the same height."""
    first, last = zoom_window(key)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", height=LINE, border=False
    ):
        if (first, last) == queries.EVERYTHING:
            st.caption("Drag across a chart to zoom in.", width="content")
            return
        st.caption(f"{unit} {formats.count(first)} to {formats.count(last)}", width="content")
        st.button(
            "Show everything",
            key=f"{key}.whole",
            icon=":material/zoom_out_map:",
            type="tertiary",
            on_click=_show,
            args=(key,),
        )


def place_of(name: str, key: str) -> str:
    """The key of a chart.

    A new part is a new chart: the old one would keep what was dragged on top of the new rows.
    """
    return f"{name}.{key}.{st.session_state.get(f'{key}.turn', 0)}"


def follow(place: str, key: str, x: pd.Series[Any]) -> None:
    """As `take`, for charts in which nothing but a zoom can be done."""
    take(place, key, x)


def _follow_everywhere(place: str, key: str, x: pd.Series[Any]) -> None:
    """As `follow`, on a page of several fragments: other curves show the same part, and a
    line says which.
    """
    follow(place, key, x)
    st.rerun()


def take(place: str, key: str, x: pd.Series[Any]) -> bool:
    """Follows what was done in the chart at `place`, whose rows lie at `x`.

    False where that was no zoom.
    """
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
