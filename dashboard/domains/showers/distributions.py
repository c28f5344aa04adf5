"""The tab Distributions: profiles, spectra and maps of generated and of held-out showers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import palette, plots
from dashboard.domains.showers import charts as shower_charts
from dashboard.domains.showers import words as shower_words
from dashboard.domains.showers.words import CURVES, Bounds, CurveWords
from dashboard.evaluation.answers import Selection
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import CurveRow, EvaluationRow
from gan_runtime.store.store import Store

FIRST = 6  # curves outside the expander
ACROSS = 3
MORE = "showers.more"
MAPS = ("matrix", "map")  # kinds of curves that are drawn in two dimensions
ENERGY, ANGLE = "showers.energy", "showers.angle"


@dataclass(frozen=True)
class ShowerBins:
    """The selected bins, None for all; `is_log`: whether profiles have a logarithmic scale."""

    energy: int | None = None
    angle: int | None = None
    is_log: bool = False

    @property
    def are_all(self) -> bool:
        """Whether no bin is selected."""
        return self.energy is None and self.angle is None


def draw(runtime: Runtime, selection: Selection) -> None:
    """The tab."""
    store = runtime.store
    stored = {
        name: queries.evaluation_curves(store, row) for name, row in selection.answers.items()
    }
    bins = _choose(stored[selection.first[0]])
    rows = _curve_rows(store, selection, stored, bins)
    curves(rows, selection, bins)
    judging_network(rows, selection, bins)
    maps(rows if bins.are_all else _curve_rows(store, selection, stored, ShowerBins()))


def _choose(curves: list[CurveRow]) -> ShowerBins:
    """One row of choices: energy, angle, and the scale of profiles."""
    energies, angles = _bins(curves)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        energy = _bin(
            "Energy", ENERGY, [shower_words.energy(bounds) for bounds in (None, *energies)]
        )
        angle = _bin(
            "Measured angle", ANGLE, [shower_words.angle(bounds) for bounds in (None, *angles)]
        )
        form = st.segmented_control(
            "Profiles",
            ["Linear", "Logarithmic"],
            default="Linear",
            key="showers.scale",
            help=shower_words.SCALE_HELP,
            persist_state="session",
        )
    return ShowerBins(energy, angle, form == "Logarithmic")


def _bin(label: str, key: str, titles: list[str]) -> int | None:
    """The number of a bin; None for the first title, which means all.

    Draws nothing if there is no choice.
    """
    if len(titles) < 2:
        return None
    place = st.selectbox(
        label,
        range(len(titles)),
        format_func=titles.__getitem__,
        key=key,
        width=190,
        persist_state="session",
    )
    return place - 1 if place else None


def curves(rows: pd.DataFrame, selection: Selection, bins: ShowerBins) -> None:
    """Profiles, responses and spectra of all answers and of held-out showers.

    `rows`: see `_curve_rows`.
    """
    if rows.empty:
        st.info("No shower of this energy and angle was measured. Select another bin above.")
        return
    distributions = [words for words in CURVES if words.kind not in MAPS and not words.judged]
    with_points = [words for words in distributions if (rows["curve"] == words.name).any()]
    _grid(rows, with_points[:FIRST], selection, bins)
    if len(selection.answers) > 1:
        st.caption(shower_words.source_of_simulated(selection.first[0]))
    more = st.expander(
        "More distributions", key=MORE, icon=":material/stacked_line_chart:", on_change="rerun"
    )
    if more.open:  # charts are what the page costs
        with more:
            _grid(rows, with_points[FIRST:], selection, bins)


def judging_network(rows: pd.DataFrame, selection: Selection, bins: ShowerBins) -> None:
    """What the judging network reads from held-out and generated showers, if it was evaluated.

    `rows`: see `_curve_rows`.
    """
    with_points = [
        words
        for words in CURVES
        if words.judged and not rows.empty and (rows["curve"] == words.name).any()
    ]
    if not with_points:
        return
    st.header("What does the judging network (D) see?", anchor=False)
    st.caption(shower_words.JUDGED)
    _grid(rows, with_points, selection, ShowerBins(bins.energy, bins.angle))


def maps(rows: pd.DataFrame) -> None:
    """Correlations of layers, and measured against requested angles.

    `rows`: of all energies and angles, see `_curve_rows`.
    """
    for words in CURVES:
        points = rows[rows["curve"] == words.name]
        if words.kind not in MAPS or points.empty:
            continue
        st.header(words.title, anchor=False)
        st.caption(shower_words.MAPS[words.name])
        by_series = [(str(name), values) for name, values in points.groupby("series", sort=False)]
        for column, (series, values) in zip(
            st.columns(max(2, len(by_series))), by_series, strict=False
        ):
            with column:
                _map(words, values, series)


def _map(words: CurveWords, points: pd.DataFrame, series: str) -> None:
    """One map of one series, under its name."""
    if words.kind == "matrix":
        spec = plots.cached_specification(shower_charts.matrix, math.isqrt(len(points)), words)
        rows = shower_charts.matrix_rows(points)
    else:
        spec = plots.cached_specification(
            shower_charts.angle_map, shower_charts.angle_ends(points), words
        )
        rows = shower_charts.angle_rows(points)
    described = {
        "title": {**spec["title"], "text": series},
        "description": spec["description"].replace(",", f" of {series},", 1),
    }
    plots.with_rows({**spec, **described}, rows, f"showers.{words.name}.{series}")


def bins_of(store: Store, row: EvaluationRow) -> tuple[list[Bounds], list[Bounds]]:
    """The bins of incident energy (GeV) and of the angle (rad) of an answer, in order; empty if
    there are none.
    """
    return _bins(queries.evaluation_curves(store, row))


def _bins(curves: list[CurveRow]) -> tuple[list[Bounds], list[Bounds]]:
    stored_bins = [
        sorted(
            {
                (low, high)
                for curve in curves
                if (limits := curve.facts.get(name))
                for low, high in [limits]
            }
        )
        for name in ("energy", "angle")
    ]
    return stored_bins[0], stored_bins[1]


def _curve_rows(
    store: Store, selection: Selection, stored: dict[str, list[CurveRow]], bins: ShowerBins
) -> pd.DataFrame:
    """Points of all answers and of held-out showers in the selected bins."""
    return shower_charts.with_names(
        {name: _points(store, row, stored[name], bins) for name, row in selection.answers.items()}
    )


def _points(
    store: Store, row: EvaluationRow, curves: list[CurveRow], bins: ShowerBins
) -> pd.DataFrame:
    """Points of the curves of one bin, as `queries.curve_points`; none for an empty bin."""
    energies, angles = _bins(curves)
    bounds = {"energy": (energies, bins.energy), "angle": (angles, bins.angle)}
    limits = {
        name: bounds_of_bins[place]
        for name, (bounds_of_bins, place) in bounds.items()
        if place is not None and place < len(bounds_of_bins)
    }
    numbers = [
        curve.number
        for curve in curves
        if {name: tuple(curve.facts[name]) for name in bounds if curve.facts.get(name)} == limits
    ]
    return queries.curve_points(store, row, numbers)


def _grid(
    rows: pd.DataFrame, curves: list[CurveWords], selection: Selection, bins: ShowerBins
) -> None:
    colors = {shower_charts.REAL: palette.REAL, **selection.colors}
    for begin in range(0, len(curves), ACROSS):
        for column, words in zip(st.columns(ACROSS), curves[begin : begin + ACROSS], strict=False):
            with column:
                is_log = bins.is_log and words.kind == "profile"
                draw = partial(shower_charts.curve, curve_words=words, colors=colors, is_log=is_log)
                points = rows[rows["curve"] == words.name]
                plots.steady_chart(draw, points, f"showers.{words.name}.{selection.key}.{bins}")
