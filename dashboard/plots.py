"""Charts on a page: a specification, which is kept where it can be, and its rows beside it.

Apart from widgets.py, as Home draws no chart: the libraries for them are loaded once its first screen is there.
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

from dashboard import chart_style, charts, tables

ROWS = "rows"  # of a chart, under this name in its specification
MOST_KEPT = 500  # specifications, some kilobytes each
schemapi.disable_debug_mode()  # a chart is checked when it is sent; to check each part of it as well is what tests are for


def chart(drawn: alt.Chart | alt.LayerChart, key: str, **selection: Any) -> None:
    """Puts a chart that was just drawn on the page, its tables beside its specification. `selection`: `on_select` and
    `selection_mode` of Streamlit."""
    tables: dict[str, pd.DataFrame] = {}
    for part in (drawn, *getattr(drawn, "layer", ())):
        if isinstance(part.data, pd.DataFrame):
            name = f"{ROWS}{len(tables) or ''}"
            tables[name], part.data = part.data, alt.NamedData(name=name)
    _put(specification(drawn), tables, key, **selection)


def specification(drawn: alt.Chart | alt.LayerChart) -> dict[str, Any]:
    """Of a chart whose tables have names. Nothing compares it with the schema of Vega-Lite, which takes as long as all the rest: tests do."""
    made: dict[str, Any] = json.loads(json.dumps(drawn.to_dict(validate=False)))
    has_ground = any(layer.get("data", {}).get("name") == charts.GROUND for layer in made.get("layer", ()))
    datasets = {"datasets": {charts.GROUND: _ground_row()}} if has_ground else {}
    return {**made, **datasets, "config": chart_style.CONFIG}


@cache
def _ground_row() -> bytes:
    """Written once: Streamlit would write down anew, in each refresh, what stands in a specification."""
    return tables.of(pd.DataFrame({"x": [0]})).arrow


def with_rows(made: dict[str, Any], rows: pd.DataFrame | bytes, key: str, **arguments: Any) -> None:
    """Puts a chart on the page: its kept specification and today's rows. `arguments`: of `st.vega_lite_chart`."""
    _put(made, {ROWS: rows}, key, **arguments)


def _put(
    made: dict[str, Any], tables: Mapping[str, pd.DataFrame | bytes], key: str, **arguments: Any
) -> None:
    """Every chart of the dashboard is put on the page here. Its place has its height before it is drawn: what stands below does not move."""
    spec = {**made, "datasets": {**made.get("datasets", {}), **tables}}
    st.vega_lite_chart(spec=spec, key=key, **{"height": made["height"], **arguments})


def kept_chart(
    draw: Callable[..., alt.Chart | alt.LayerChart],
    rows: pd.DataFrame | bytes,
    key: str,
    *what: Hashable,
    **arguments: Any,
) -> None:
    """A chart on a page that is redrawn while a run trains: what `draw(rows, *what)` makes is drawn once, without the rows, and kept."""
    with_rows(kept(draw, *what), rows, key, **arguments)


@lru_cache(MOST_KEPT)
def kept(draw: Callable[..., alt.Chart | alt.LayerChart], *what: Hashable) -> dict[str, Any]:
    """The specification of `draw(rows, *what)` for rows that come later."""
    return specification(draw(alt.NamedData(name=ROWS), *what))


@st.cache_data(show_spinner=False, max_entries=100)
def steady_chart(
    _draw: Callable[[pd.DataFrame], alt.Chart | alt.LayerChart], frame: pd.DataFrame, key: str
) -> None:
    """A chart in which more than the rows follows from the rows: with the same `key` and the same rows Streamlit repeats what it sent."""
    chart(_draw(tables.harmless(frame)), key)
