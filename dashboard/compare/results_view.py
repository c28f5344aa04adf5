"""The results of the Compare page: best and last, each against time, and options beside results."""

from __future__ import annotations

from dataclasses import replace

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import option_words, plots, run_words
from dashboard.compare import charts as compare_charts
from dashboard.compare import grouping, parallel, result_charts, result_words
from dashboard.compare import view as compare_view
from dashboard.compare.grouping import Series
from dashboard.compare.parallel import Axis
from gan_runtime.catalog.declared import Declared
from gan_runtime.options import Option
from gan_runtime.store.queries import RunRow

PERCENT = "%.1f %%"
JUDGED = {
    "score_gap": ("Score gap", result_words.GAP_HELP, "%.3f"),
    "accuracy": ("D's accuracy", result_words.ACCURACY_HELP, PERCENT),
    "spread_ratio": ("Spread ratio", result_words.SPREAD_HELP, "%.3f"),
    "images_per_s": ("Images/s", result_words.SPEED_HELP, "%.0f"),
}
USUAL_RESULTS = ("score_gap_best", "spread_ratio_best", "seconds")
MOST_USUAL_OPTIONS = 4


def recorded(known: Declared, results: pd.DataFrame) -> Declared:
    """Without the rated numbers that none of these runs has, such as those of a measurement that nobody has asked for."""
    there = tuple(
        metric
        for metric in known.metrics
        if not metric.better or results[f"{metric.name}_best"].notna().any()
    )
    return replace(known, metrics=there)


def best_and_last(results: pd.DataFrame, rows: list[RunRow], known: Declared) -> None:
    """What each run reached at best, in which epoch, and where it ended."""
    st.header("Best epoch, beside the last")
    shown = pd.DataFrame({"Run": list(run_words.unique_names(rows).values())})
    config = {"Run": st.column_config.TextColumn("Run", pinned=True)}
    for name, (title, help_text, form) in _judged(known).items():
        factor = 100.0 if form == PERCENT else 1.0
        shown[f"{title}, best"] = results[f"{name}_best"].to_numpy() * factor
        shown[f"at epoch ({title})"] = results[f"{name}_best_epoch"].to_numpy()
        shown[f"{title}, last"] = results[f"{name}_last"].to_numpy() * factor
        config[f"{title}, best"] = st.column_config.NumberColumn(help=help_text, format=form)
        config[f"at epoch ({title})"] = st.column_config.NumberColumn("at epoch", format="%d")
        config[f"{title}, last"] = st.column_config.NumberColumn("last", format=form)
    st.dataframe(shown, column_config=config, hide_index=True, key="compare.best", placeholder="–")
    st.caption(result_words.best_caption(known))


def _judged(known: Declared) -> dict[str, tuple[str, str, str]]:
    """Title, help and format of what has a best epoch in runs of these workloads, by the beginning of its columns."""
    rated = {
        metric.name: (
            metric.title,
            f"{metric.axis}. Best: the {result_words.rated_result(metric).best}.",
            "%.4g",
        )
        for metric in known.rated
    }
    return rated | {name: texts for name, texts in JUDGED.items() if result_words.has(known, name)}


def against_time(results: pd.DataFrame, rows: list[RunRow], drawn: list[Series], declared: Declared) -> None:
    """A result of each run against its training seconds."""
    st.header("Results against time")
    offered = result_words.results(declared)
    name = st.selectbox(
        "Result",
        [name for name in offered if name not in result_words.TIMES],
        format_func=lambda name: offered[name].title,
        key="compare.result",
        width=300,
        label_visibility="collapsed",
    )
    known = _named(results, rows, drawn).dropna(subset=["seconds", name])
    if known.empty:
        st.info(
            f"None of these runs has recorded it yet: '{offered[name].title}' appears after a first epoch."
        )
        return
    known = known.assign(text=[result_words.text(name, value) for value in known[name]])
    front = result_words.front(known, name, offered[name])
    _draw(result_charts.scatter(known, front, _colors(drawn), offered[name], name), f"compare.scatter.{name}")
    missing = len(rows) - len(known)
    if missing:
        st.caption(f"{missing} of the {len(rows)} runs {'has' if missing == 1 else 'have'} not recorded it.")


def options_and_results(
    results: pd.DataFrame, rows: list[RunRow], drawn: list[Series], declared: Declared
) -> None:
    """Parallel coordinates over the options that differ and the results."""
    options = {option.name: option for option in grouping.differing(rows)}
    offered = result_words.results(declared)
    usual = [*list(options)[:MOST_USUAL_OPTIONS], *(name for name in USUAL_RESULTS if name in offered)]
    picked = st.multiselect(
        "Axes",
        [*options, *offered],
        default=usual,
        format_func=lambda name: options[name].label if name in options else offered[name].title,
        key=f"compare.axes.{','.join(options)}",
        placeholder="Pick two or more options and results",
    )
    if len(picked) < 2:
        st.info("Pick two or more axes above: options that differ, and results.")
        return
    axes = [
        _option_axis(options[name], rows)
        if name in options
        else _result_axis(name, offered[name].title, results, rows)
        for name in picked
    ]
    crossings = parallel.crossings(axes)
    series = _series_by_run(rows, drawn)
    crossings = crossings.assign(series=crossings["run"].map(series))
    _draw(result_charts.parallel(crossings, parallel.ticks(axes), _colors(drawn)), "compare.parallel")


def _option_axis(option: Option, rows: list[RunRow]) -> Axis:
    names = run_words.unique_names(rows)
    given = {names[row.run_id]: grouping.full_spec(row)[option.name] for row in rows}
    texts = {name: option_words.value(option, value) for name, value in given.items()}
    values = {name: None if value == grouping.ABSENT else value for name, value in given.items()}
    return Axis(option_words.label(option), values, texts, option.choices)


def _result_axis(name: str, title: str, results: pd.DataFrame, rows: list[RunRow]) -> Axis:
    names = run_words.unique_names(rows)
    values = {
        names[run_id]: float(value) for run_id, value in zip(results["run_id"], results[name], strict=True)
    }
    texts = {run: result_words.text(name, value) for run, value in values.items()}
    return Axis(title, values, texts)


def _named(results: pd.DataFrame, rows: list[RunRow], drawn: list[Series]) -> pd.DataFrame:
    names = run_words.unique_names(rows)
    named = results.assign(run=results["run_id"].map(names))
    return named.assign(series=named["run"].map(_series_by_run(rows, drawn)))


def _series_by_run(rows: list[RunRow], drawn: list[Series]) -> dict[str, str]:
    """Name of a run → name of the curve that it belongs to."""
    names = run_words.unique_names(rows)
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
