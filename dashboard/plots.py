"""Charts on a page: a specification, cached if possible, and its rows next to it.

Apart from widgets.py, because Home draws no chart: chart libraries load after its first screen.

Zoom: a drag across a chart shows that part alone, with more of its points; a double-click or the
button shows everything. The page queries the rows of that part, so an axis always ends at its data,
and the wheel scrolls the page. Charts with the same key show the same part.
"""

from __future__ import annotations

import html
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

ROWS = "rows"  # the name of a chart's rows in its specification
EXPLANATION = (
    "<button type='button' class='chart-help' aria-label='What is this chart?'>?"
    "<span role='tooltip'>{}</span></button>"
)
MOST_CACHED = 500  # specifications, some kilobytes each
# Tests validate each part of a chart; here a chart is only checked when it is sent.
schemapi.disable_debug_mode()


def chart(altair_chart: alt.Chart | alt.LayerChart, key: str, **selection: Any) -> None:
    """Puts a newly drawn chart on the page, its tables next to its specification.

    `selection`: `on_select` and `selection_mode` of Streamlit.
    """
    spec, frames = split_tables(altair_chart)
    _put(spec, frames, key, **selection)


def split_tables(
    altair_chart: alt.Chart | alt.LayerChart,
) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """The specification of a chart, and its tables by name."""
    frames: dict[str, pd.DataFrame] = {}
    for part in (altair_chart, *getattr(altair_chart, "layer", ())):
        if isinstance(part.data, pd.DataFrame):
            name = f"{ROWS}{len(frames) or ''}"
            frames[name], part.data = part.data, alt.NamedData(name=name)
    return specification(altair_chart), frames


def specification(altair_chart: alt.Chart | alt.LayerChart) -> dict[str, Any]:
    """The specification of a chart with named tables.

    Not validated against the schema of Vega-Lite, which would double the time: tests do that.
    """
    spec: dict[str, Any] = json.loads(json.dumps(altair_chart.to_dict(validate=False)))
    has_ground = any(
        layer.get("data", {}).get("name") == charts.GROUND for layer in spec.get("layer", ())
    )
    datasets = {"datasets": {charts.GROUND: _ground_row()}} if has_ground else {}
    return {**spec, **datasets, "config": charts.CONFIG}


@cache
def _ground_row() -> bytes:
    """Serialized once: Streamlit would serialize the content of a specification at each refresh."""
    return tables.from_frame(pd.DataFrame({"x": [0]})).arrow


def with_rows(spec: dict[str, Any], rows: pd.DataFrame | bytes, key: str, **arguments: Any) -> None:
    """Puts a cached specification with new rows on the page.

    `arguments`: of `st.vega_lite_chart`.
    """
    _put(spec, {ROWS: rows}, key, **arguments)


def _put(
    chart_spec: dict[str, Any],
    tables: Mapping[str, pd.DataFrame | bytes],
    key: str,
    **arguments: Any,
) -> None:
    """Puts a chart on the page; every chart of the dashboard ends here.

    It has its height before it is drawn, so that nothing below moves. The "?" in its corner shows
    its description: what it shows and how to read it.
    """
    st.html(EXPLANATION.format(html.escape(str(chart_spec["description"]))))
    spec = {**chart_spec, "datasets": {**chart_spec.get("datasets", {}), **tables}}
    st.vega_lite_chart(spec=spec, key=key, **{"height": chart_spec["height"], **arguments})


def cached_chart(
    draw: Callable[..., alt.Chart | alt.LayerChart],
    rows: pd.DataFrame | bytes,
    key: str,
    *what: Hashable,
    **arguments: Any,
) -> None:
    """A chart on a page that is redrawn while a run trains: the specification of
    `draw(rows, *what)` is cached, without the rows.
    """
    with_rows(cached_specification(draw, *what), rows, key, **arguments)


@lru_cache(MOST_CACHED)
def cached_specification(
    draw: Callable[..., alt.Chart | alt.LayerChart], *what: Hashable
) -> dict[str, Any]:
    """The specification of `draw(rows, *what)` for rows that come later."""
    return specification(draw(alt.NamedData(name=ROWS), *what))


@st.cache_data(show_spinner=False, max_entries=100)
def steady_chart(
    _draw: Callable[[pd.DataFrame], alt.Chart | alt.LayerChart], frame: pd.DataFrame, key: str
) -> None:
    """A chart whose specification depends on its rows: for the same `key` and rows, Streamlit
    repeats what it sent.
    """
    chart(_draw(tables.harmless(frame)), key)


LINE = 34  # pixels, with or without the button
LEAST = 0.01  # of what is shown: a shorter drag is an unsteady click
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
    cached_chart(
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
    """How to zoom, or the shown part and a button to show everything: one line of fixed height."""
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
    """The key of a chart, a new one for each part.

    An old chart would keep the mark of the drag over the new rows.
    """
    return f"{name}.{key}.{st.session_state.get(f'{key}.turn', 0)}"


def follow(place: str, key: str, x: pd.Series[Any]) -> None:
    """As `apply_zoom`, for charts that only zoom."""
    apply_zoom(place, key, x)


def _follow_everywhere(place: str, key: str, x: pd.Series[Any]) -> None:
    """As `follow`, on a page of several fragments, whose other curves and zoom line change too."""
    follow(place, key, x)
    st.rerun()


def apply_zoom(place: str, key: str, x: pd.Series[Any]) -> bool:
    """Applies a zoom in the chart at `place`, whose rows are at `x`.

    False if the event was not a zoom.
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
