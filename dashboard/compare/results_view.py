"""The results of the Compare page: best and last, each against time, and options beside results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import option_words, plots, run_selection, tables
from dashboard.compare import charts as compare_charts
from dashboard.compare import grouping
from dashboard.compare import results as compare_results
from dashboard.compare import view as compare_view
from dashboard.compare.grouping import Series
from dashboard.compare.results import Axis, Result
from gan_runtime.base.options import Option
from gan_runtime.catalog.declared import Declared
from gan_runtime.store.queries import RunRow

PERCENT = "%.1f %%"
JUDGED = {
    "score_gap": ("Score gap", compare_results.GAP_HELP, "%.3f"),
    "accuracy": ("D's accuracy", compare_results.ACCURACY_HELP, PERCENT),
    "spread_ratio": ("Spread ratio", compare_results.SPREAD_HELP, "%.3f"),
}
MOST_USUAL_OPTIONS, MOST_USUAL_RESULTS = 4, 2


def recorded(known: Declared, results: pd.DataFrame) -> Declared:
    """Without the rated numbers that none of these runs has, such as those of a measurement
    that nobody has asked for.
    """
    there = tuple(
        metric
        for metric in known.metrics
        if not metric.better or results[f"{metric.name}_best"].notna().any()
    )
    return replace(known, metrics=there)


def best_and_last(results: pd.DataFrame, rows: list[RunRow], known: Declared) -> None:
    """What each run reached at best, in which epoch, of the numbers that have a best value,
    and where it ended.
    """
    st.header("Best epoch, beside the last" if known.rated else "After the last epoch")
    shown = pd.DataFrame({"Run": list(run_selection.unique_names(rows).values())})
    config: dict[str, Any] = {"Run": st.column_config.TextColumn("Run", pinned=True)}
    for metric in known.rated:
        title, text = (
            metric.title,
            f"{metric.axis}. Best: the {compare_results.rated_result(metric).best}.",
        )
        shown[f"{title}, best"] = results[f"{metric.name}_best"].to_numpy()
        shown[f"at epoch ({title})"] = results[f"{metric.name}_best_epoch"].to_numpy()
        shown[f"{title}, last"] = results[f"{metric.name}_last"].to_numpy()
        config[f"{title}, best"] = st.column_config.NumberColumn(help=text, format="%.4g")
        config[f"at epoch ({title})"] = st.column_config.NumberColumn("at epoch", format="%d")
        config[f"{title}, last"] = st.column_config.NumberColumn("last", format="%.4g")
    for name, (title, text, form) in JUDGED.items():
        if compare_results.has(known, name):
            shown[title] = results[f"{name}_last"].to_numpy() * (100.0 if form == PERCENT else 1.0)
            config[title] = st.column_config.NumberColumn(help=text, format=form)
    tables.show(shown, column_config=config, hide_index=True, key="compare.best", placeholder="–")
    st.caption(compare_results.best_caption(known))


def against_time(
    results: pd.DataFrame, rows: list[RunRow], drawn: list[Series], declared: Declared
) -> None:
    """A result of each run against its training seconds."""
    st.header("Numbers against time")
    offered = compare_results.results(declared)
    name = st.selectbox(
        "Number",
        [name for name in offered if name not in compare_results.TIMES],
        format_func=lambda name: offered[name].title,
        key="compare.result",
        width=300,
        label_visibility="collapsed",
    )
    known = _named(results, rows, drawn).dropna(subset=["seconds", name])
    if known.empty:
        st.info(
            f"None of these runs has recorded it yet: '{offered[name].title}' appears after a first"
            " epoch."
        )
        return
    known = known.assign(text=[compare_results.text(name, value) for value in known[name]])
    front = compare_results.front(known, name, offered[name])
    _draw(
        compare_charts.scatter(known, front, _colors(drawn), offered[name], name),
        f"compare.scatter.{name}",
    )
    missing = len(rows) - len(known)
    if missing:
        st.caption(
            f"{missing} of the {len(rows)} runs {'has' if missing == 1 else 'have'} not"
            " recorded it."
        )


def options_and_results(
    results: pd.DataFrame, rows: list[RunRow], drawn: list[Series], declared: Declared
) -> None:
    """Parallel coordinates over the options that differ and the results."""
    options = {option.name: option for option in grouping.differing(rows)}
    offered = compare_results.results(declared)
    usual = [*list(options)[:MOST_USUAL_OPTIONS], *_usual(offered)]
    picked = st.multiselect(
        "Axes",
        [*options, *offered],
        default=usual,
        format_func=lambda name: options[name].label if name in options else offered[name].title,
        key=f"compare.axes.{','.join(options)}",
        placeholder="Pick two or more options and numbers",
    )
    if len(picked) < 2:
        st.info("Pick two or more axes above: options that differ, and numbers.")
        return
    axes = [
        (
            _option_axis(options[name], rows)
            if name in options
            else _result_axis(name, offered[name].title, results, rows)
        )
        for name in picked
    ]
    crossings = compare_results.crossings(axes)
    series = _series_by_run(rows, drawn)
    crossings = crossings.assign(series=crossings["run"].map(series))
    _draw(
        compare_charts.parallel(crossings, compare_results.ticks(axes), _colors(drawn)),
        "compare.parallel",
    )


def _usual(offered: dict[str, Result]) -> list[str]:
    """The results of which one way is better, else how much the images vary; and the time."""
    rated = [name for name, result in offered.items() if result.best != "none"][:MOST_USUAL_RESULTS]
    return [*(rated or ["spread_ratio_last"] * ("spread_ratio_last" in offered)), "seconds"]


def _option_axis(option: Option, rows: list[RunRow]) -> Axis:
    names = run_selection.unique_names(rows)
    given = {names[row.run_id]: grouping.full_spec(row)[option.name] for row in rows}
    texts = {name: option_words.value(option, value) for name, value in given.items()}
    values = {name: None if value == grouping.ABSENT else value for name, value in given.items()}
    return Axis(option_words.label(option), values, texts, option.choices)


def _result_axis(name: str, title: str, results: pd.DataFrame, rows: list[RunRow]) -> Axis:
    names = run_selection.unique_names(rows)
    values = {
        names[run_id]: float(value)
        for run_id, value in zip(results["run_id"], results[name], strict=True)
    }
    texts = {run: compare_results.text(name, value) for run, value in values.items()}
    return Axis(title, values, texts)


def _named(results: pd.DataFrame, rows: list[RunRow], drawn: list[Series]) -> pd.DataFrame:
    names = run_selection.unique_names(rows)
    named = results.assign(run=results["run_id"].map(names))
    return named.assign(series=named["run"].map(_series_by_run(rows, drawn)))


def _series_by_run(rows: list[RunRow], drawn: list[Series]) -> dict[str, str]:
    """Name of a run → name of the curve that it belongs to."""
    names = run_selection.unique_names(rows)
    return {names[run_id]: line.name for line in drawn for run_id in line.run_ids}


def _colors(drawn: list[Series]) -> dict[str, str]:
    return {line.name: line.color for line in drawn}


def _draw(chart: alt.LayerChart, key: str) -> None:
    plots.chart(
        chart,
        key=key,
        on_select=lambda: compare_view.pick(key, compare_view.RESULTS),
        selection_mode=[compare_charts.PICK],
    )
