"""The results of the Compare page: best and last values, results against time, and options next
to results.
"""

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
from dashboard.compare.charts import CurveStyle
from dashboard.compare.grouping import Series
from dashboard.compare.results import Axis, Result
from gan_runtime.base.metrics import Metric
from gan_runtime.base.options import Option
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.store.queries import RunRow

PERCENT = "%.1f%%"
SCORE_COLUMNS = {
    "score_gap": ("Score gap", compare_results.GAP_HELP, "%.3f"),
    "accuracy": ("D's accuracy", compare_results.ACCURACY_HELP, PERCENT),
    "spread_ratio": ("Spread ratio", compare_results.SPREAD_HELP, "%.3f"),
}
DEFAULT_OPTIONS, DEFAULT_RESULTS = 4, 2


def recorded(declaration: Declarations, results: pd.DataFrame) -> Declarations:
    """The declarations without rated numbers that none of these runs has, such as those of a
    measurement that was never requested.
    """
    metrics = tuple(
        metric
        for metric in declaration.metrics
        if not metric.better or results[f"{metric.name}_best"].notna().any()
    )
    return replace(declaration, metrics=metrics)


def best_and_last(
    results: pd.DataFrame, qualities: pd.DataFrame, rows: list[RunRow], declaration: Declarations
) -> None:
    """The best value of each rated number with its epoch, and the last; for a measured quality
    also the interval.
    """
    st.header("Best epoch and last epoch" if declaration.rated else "After the last epoch")
    table: dict[str, Any] = {"Run": list(run_selection.unique_names(rows).values())}
    config: dict[str, Any] = {"Run": st.column_config.TextColumn("Run", pinned=True)}
    for metric in declaration.rated:
        title, text = (
            metric.title,
            f"{metric.axis}. Best: the {compare_results.rated_result(metric).best}.",
        )
        table[f"{title}, best"] = results[f"{metric.name}_best"].to_numpy()
        if metric.name in set(qualities["metric"]):
            table[f"{title}, 95%"] = _intervals(qualities, rows, metric)
        table[f"at epoch ({title})"] = results[f"{metric.name}_best_epoch"].to_numpy()
        table[f"{title}, last"] = results[f"{metric.name}_last"].to_numpy()
        config[f"{title}, best"] = st.column_config.NumberColumn(help=text, format="%.4g")
        config[f"at epoch ({title})"] = st.column_config.NumberColumn("at epoch", format="%d")
        config[f"{title}, last"] = st.column_config.NumberColumn("last", format="%.4g")
    for name, (title, text, form) in SCORE_COLUMNS.items():
        if compare_results.has(declaration, name):
            table[title] = results[f"{name}_last"].to_numpy() * (100.0 if form == PERCENT else 1.0)
            config[title] = st.column_config.NumberColumn(help=text, format=form)
    tables.show(
        pd.DataFrame(table),
        column_config=config,
        hide_index=True,
        key="compare.best",
        placeholder="–",
    )
    st.caption(compare_results.best_caption(declaration))


def _intervals(qualities: pd.DataFrame, rows: list[RunRow], metric: Metric) -> list[str]:
    """The interval at the best epoch of each run: 0.012 to 0.016."""
    best = qualities[qualities["metric"] == metric.name].sort_values(["value", "epoch"])
    best = best.drop_duplicates("run_id").set_index("run_id").dropna(subset=["low", "high"])
    return [
        f"{metric.in_words(best['low'][row.run_id])} to {metric.in_words(best['high'][row.run_id])}"
        if row.run_id in best.index
        else "–"
        for row in rows
    ]


def quality_against_time(
    qualities: pd.DataFrame, rows: list[RunRow], series: list[Series], declaration: Declarations
) -> None:
    """A chart for each measured quality: its value over device seconds, with its interval as a
    band.
    """
    if qualities.empty:
        return
    st.header("Quality against device time")
    names, colors = run_selection.unique_names(rows), _colors(series)
    series_by_run = _series_by_run(rows, series)
    for name in dict.fromkeys(qualities["metric"]):
        measured = qualities[qualities["metric"] == name]
        frame = measured.assign(
            run=measured["run_id"].map(names),
            x=measured["device_s"],
            mean=measured["value"],
            low=measured["low"].fillna(measured["value"]),
            high=measured["high"].fillna(measured["value"]),
        )
        metric = replace(declaration.table([name])[name], per_epoch=True)
        by_run = {run: colors[series_by_run[run]] for run in dict.fromkeys(frame["run"])}
        # A logarithmic axis has no place for values of 0 and below.
        style = CurveStyle("none", "log" if (frame["mean"] > 0).all() else "linear")
        _draw(
            compare_charts.run_curves(frame, by_run, "device_s", metric, style),
            f"compare.quality.{name}",
        )
    st.caption("Band: 95% interval. Lower is better.")


def against_time(
    results: pd.DataFrame, rows: list[RunRow], series: list[Series], declaration: Declarations
) -> None:
    """A result of each run against its training seconds."""
    st.header("Numbers against time")
    results_by_name = compare_results.results(declaration)
    numbers = [name for name in results_by_name if name not in compare_results.TIMES]
    name = st.selectbox(
        "Number",
        numbers,
        index=numbers.index(_most_recorded_first(numbers, results)[0]),
        format_func=lambda name: results_by_name[name].title,
        key="compare.result",
        width=300,
        label_visibility="collapsed",
    )
    measured = _with_names(results, rows, series).dropna(subset=["seconds", name])
    if measured.empty:
        st.info(
            f"No run has recorded '{results_by_name[name].title}' yet. It appears after the first"
            " epoch."
        )
        return
    measured = measured.assign(text=[compare_results.text(name, value) for value in measured[name]])
    front = compare_results.front(measured, name, results_by_name[name])
    _draw(
        compare_charts.scatter(measured, front, _colors(series), results_by_name[name], name),
        f"compare.scatter.{name}",
    )
    missing = len(rows) - len(measured)
    if missing:
        st.caption(
            f"{missing} of the {len(rows)} runs {'has' if missing == 1 else 'have'} not"
            " recorded this number."
        )


def options_and_results(
    results: pd.DataFrame, rows: list[RunRow], series: list[Series], declaration: Declarations
) -> None:
    """Parallel coordinates over the options that differ and the results."""
    options = {option.name: option for option in grouping.differing(rows)}
    results_by_name = compare_results.results(declaration)
    defaults = [*list(options)[:DEFAULT_OPTIONS], *_default_results(results_by_name, results)]
    axis_names = st.multiselect(
        "Axes",
        [*options, *results_by_name],
        default=defaults,
        format_func=lambda name: (
            options[name].label if name in options else results_by_name[name].title
        ),
        key=f"compare.axes.{','.join(options)}",
        placeholder="Pick two or more options and numbers",
    )
    if len(axis_names) < 2:
        st.info("Pick two or more axes above: options that differ, or numbers.")
        return
    axes = [
        (
            _option_axis(options[name], rows)
            if name in options
            else _result_axis(name, results_by_name[name].title, results, rows)
        )
        for name in axis_names
    ]
    crossings = compare_results.crossings(axes)
    series_by_run = _series_by_run(rows, series)
    crossings = crossings.assign(series=crossings["run"].map(series_by_run))
    _draw(
        compare_charts.parallel(crossings, compare_results.ticks(axes), _colors(series)),
        "compare.parallel",
    )


def _most_recorded_first(names: list[str], results: pd.DataFrame) -> list[str]:
    """The names of results, those that most runs have first; otherwise in their order."""
    recorded = results.count()
    return sorted(names, key=lambda name: -int(recorded[name]))


def _default_results(results_by_name: dict[str, Result], results: pd.DataFrame) -> list[str]:
    """The rated results that at least half of the runs have, else the spread of images; then the
    time.
    """
    rated = [
        name
        for name, result in results_by_name.items()
        if result.best != "none" and 2 * results[name].count() >= len(results)
    ][:DEFAULT_RESULTS]
    return [*(rated or ["spread_ratio_last"] * ("spread_ratio_last" in results_by_name)), "seconds"]


def _option_axis(option: Option, rows: list[RunRow]) -> Axis:
    names = run_selection.unique_names(rows)
    stored = {names[row.run_id]: grouping.full_spec(row)[option.name] for row in rows}
    texts = {name: option_words.value(option, value) for name, value in stored.items()}
    values = {name: None if value == grouping.ABSENT else value for name, value in stored.items()}
    return Axis(option_words.label(option), values, texts, option.choices)


def _result_axis(name: str, title: str, results: pd.DataFrame, rows: list[RunRow]) -> Axis:
    names = run_selection.unique_names(rows)
    values = {
        names[run_id]: float(value)
        for run_id, value in zip(results["run_id"], results[name], strict=True)
    }
    texts = {run: compare_results.text(name, value) for run, value in values.items()}
    return Axis(title, values, texts)


def _with_names(results: pd.DataFrame, rows: list[RunRow], series: list[Series]) -> pd.DataFrame:
    names = run_selection.unique_names(rows)
    rows_with_names = results.assign(run=results["run_id"].map(names))
    return rows_with_names.assign(series=rows_with_names["run"].map(_series_by_run(rows, series)))


def _series_by_run(rows: list[RunRow], series: list[Series]) -> dict[str, str]:
    """Name of a run → name of its curve."""
    names = run_selection.unique_names(rows)
    return {names[run_id]: line.name for line in series for run_id in line.run_ids}


def _colors(series: list[Series]) -> dict[str, str]:
    return {line.name: line.color for line in series}


def _draw(chart: alt.LayerChart, key: str) -> None:
    plots.chart(
        chart,
        key=key,
        on_select=lambda: compare_view.pick(key, compare_view.RESULTS),
        selection_mode=[compare_charts.PICK],
    )
