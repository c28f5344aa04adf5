"""Charts on a page: a specification, cached if possible, and its rows next to it.

Apart from widgets.py, because Home draws no chart: chart libraries load after its first screen.

Zoom: a drag across a chart shows that part alone, with more of its points; a double-click or the
button shows everything. The page queries the rows of that part, so an axis always ends at its data,
and the wheel scrolls the page. Charts with the same key show the same part.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any
from urllib.parse import quote

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


@dataclass(frozen=True)
class Sketch:
    """A chart as plain HTML, for a first render: a browser needs 0.2 s to load and run Vega.

    All in data units. `colors`: name in the legend → color. `bands`: color, and (x, low, high) of
    each point. `lines`: color, width in pixels, opacity, and (x, y) of each point. `dots`: color,
    x, y. `names`: x → label, for an axis of names.
    """

    title: str
    x_title: str
    y_title: str
    height: int
    colors: Mapping[str, str]
    bands: Sequence[tuple[str, Sequence[tuple[float, float, float]]]] = ()
    lines: Sequence[tuple[str, float, float, Sequence[tuple[float, float]]]] = ()
    dots: Sequence[tuple[str, float, float]] = ()
    names: Mapping[float, str] = field(default_factory=dict)

    @cached_property
    def limits(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the plot; the last two at round numbers."""
        points = [point for *_, line in self.lines for point in line]
        points += [(x, y) for _, band in self.bands for x, *ends in band for y in ends]
        points += [(x, y) for _, x, y in self.dots]
        points = points or [(0.0, 0.0), (1.0, 1.0)]
        across = [name + side for name in self.names for side in (-0.5, 0.5)]
        across = across or [x for x, _ in points]
        left, right = min(across), max(across)
        low, high = min(y for _, y in points), max(y for _, y in points)
        step = round_step(low, high)
        return left, right, math.floor(low / step) * step, math.ceil(high / step) * step

    def html(self) -> str:
        """The whole chart, in the style of Vega's charts here."""
        legend = "".join(
            f"<span><i style='background:{color}'></i>{html.escape(name)}</span>"
            for name, color in self.colors.items()
        )
        return (
            f"<div class='sketch' style='min-height:{self.height}px'>"
            f"<h6>{html.escape(self.title)}</h6><p class='legend'>{legend}</p>"
            f"<div class='plot'>{self._rows()}"
            f"<img src='data:image/svg+xml,{quote(self._svg())}' alt=''>{self._dots()}"
            f"{self._columns()}<b class='y-title'>{html.escape(self.y_title)}</b></div>"
            f"<b class='x-title'>{html.escape(self.x_title)}</b></div>"
        )

    def _place(self, x: float, y: float) -> tuple[float, float]:
        """The position in percent of the plot, from its upper left corner."""
        left, right, bottom, top = self.limits
        return 100 * (x - left) / (right - left or 1.0), 100 * (top - y) / (top - bottom or 1.0)

    def _path(self, points: Iterable[tuple[float, float]]) -> str:
        return " ".join("{:.2f},{:.2f}".format(*self._place(x, y)) for x, y in points)

    def _svg(self) -> str:
        """Bands and lines, stretched over the plot."""
        shapes = []
        for color, band in self.bands:
            lower, upper = ((x, low) for x, low, _ in band), ((x, high) for x, _, high in band)
            around = self._path([*upper, *reversed(list(lower))])
            shapes.append(f"<polygon fill='{color}' fill-opacity='0.12' points='{around}'/>")
        for color, pixels, opacity, points in self.lines:
            shapes.append(
                f"<polyline fill='none' stroke='{color}' stroke-width='{pixels}'"
                f" stroke-opacity='{opacity}' vector-effect='non-scaling-stroke'"
                f" points='{self._path(points)}'/>"
            )
        return (
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 100 100'"
            f" preserveAspectRatio='none'>{''.join(shapes)}</svg>"
        )

    def _dots(self) -> str:
        style = "<i class='dot' style='background:{};left:{:.2f}%;top:{:.2f}%'></i>"
        return "".join(style.format(color, *self._place(x, y)) for color, x, y in self.dots)

    def _rows(self) -> str:
        """Grid lines with their values."""
        left, _, bottom, top = self.limits
        step = round_step(bottom, top, self.height // 50)
        decimals = max(0, -math.floor(math.log10(step)))
        style = "<span class='row' style='top:{:.2f}%'><b>{}</b></span>"
        return "".join(
            style.format(self._place(left, y)[1], f"{y:.{decimals}f}".replace("-", "−"))
            for y in _ticks(bottom, top, step)
        )

    def _columns(self) -> str:
        """The values or names of x."""
        left, right, bottom, _ = self.limits
        ticks = _ticks(left, right, round_step(left, right))
        texts = self.names or {x: formats.count(x) for x in ticks}
        style = "<b class='column' style='left:{:.2f}%'>{}</b>"
        return "".join(
            style.format(self._place(x, bottom)[0], html.escape(text)) for x, text in texts.items()
        )


def round_step(low: float, high: float, most: int = 10) -> float:
    """1, 2 or 5 times a power of ten: the smallest that makes at most `most` steps."""
    rough = (high - low) / most or abs(high) / most or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)


def _ticks(low: float, high: float, step: float) -> list[float]:
    first = math.ceil(low / step - 1e-9)
    return [step * number for number in range(first, math.floor(high / step + 1e-9) + 1)]


def sketch_of_curves(group: Group, rows: pd.DataFrame, height: int) -> Sketch:
    """A sketch of the rows of `charts.step_curves`."""
    bands, lines = [], []
    for line in group.lines:
        curve = rows[rows["metric"] == line.name]
        x, mean, smoothed = curve["x"].tolist(), curve["mean"].tolist(), curve["smoothed"].tolist()
        low_high = zip(x, curve["low"].tolist(), curve["high"].tolist(), strict=True)
        bands.append((line.color, [point for point in low_high if _is_finite(point)]))
        for pixels, opacity, values in ((1.0, 0.35, mean), (2.5, 1.0, smoothed)):
            points = [point for point in zip(x, values, strict=True) if _is_finite(point)]
            lines.append((line.color, pixels, opacity, points))
    return Sketch(
        group.panel.heading, "Step", group.axis, height, group.colors, bands=bands, lines=lines
    )


def _is_finite(point: tuple[float, ...]) -> bool:
    return all(map(math.isfinite, point))


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
