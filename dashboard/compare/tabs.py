"""The tabs of the Compare page, and its tables of numbers and of options that differ.

Draws only the open tab.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import histogram_view, option_words, plots, run_selection, tables, words
from dashboard.compare import grouping, results_view
from dashboard.compare import view as compare_view
from dashboard.evaluation.answers import cautions
from dashboard.samples import players
from gan_runtime.base import formats
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

PHASES = {"trace": "Trace", "compile": "Compile", "steady_step": "Steady step"}


def numbers(store: Store, rows: list[RunRow]) -> None:
    """The table of final numbers."""
    st.header("Final numbers")
    tables.show(number_table(store, rows), hide_index=True, key="compare.numbers")


def number_table(store: Store, rows: list[RunRow]) -> pd.DataFrame:
    """A row for each run: state, epochs, losses, speed and times, in words."""
    declaration = queries.declared_of(store, [row.run_id for row in rows])
    table = queries.run_table(store).set_index("run_id").loc[[row.run_id for row in rows]]
    verdicts = run_selection.verdicts(store, [row.run_id for row in rows])
    titles = [verdicts[row.run_id].title for row in rows]
    return pd.DataFrame(
        {
            "Run": list(run_selection.unique_names(rows).values()),
            "State": list(table["status"]),
            **({"Verdict": [title or "–" for title in titles]} if any(titles) else {}),
            "Epochs": [
                f"{done} / {epochs}"
                for done, epochs in zip(table["epochs_done"], table["epochs"], strict=True)
            ],
            **{
                declaration.loss_title(loss): [
                    formats.loss(_finite_or_none(value)) for value in table[loss.name]
                ]
                for loss in declaration.losses
            },
            "Images/s": [formats.count(_finite_or_none(value)) for value in table["images_per_s"]],
            "Training time": [
                formats.duration(_finite_or_none(value)) for value in table["seconds"]
            ],
            **{
                label: [
                    formats.duration(queries.phases(store, row.run_id).get(phase)) for row in rows
                ]
                for phase, label in PHASES.items()
            },
        }
    )


def differences(rows: list[RunRow]) -> None:
    """The options in which the runs differ, a column for each run."""
    st.header("What differs")
    table = difference_table(rows)
    if table.empty:
        st.caption("These runs have the same options.")
        return
    tables.show(table, hide_index=True, key="compare.differences")


def difference_table(rows: list[RunRow]) -> pd.DataFrame:
    """A row for each option in which the runs differ, a column for each run, in words."""
    differing = grouping.differing(rows)
    names = run_selection.unique_names(rows)
    specs = {names[row.run_id]: grouping.full_spec(row) for row in rows}
    columns = {
        name: [option_words.value(option, spec[option.name]) for option in differing]
        for name, spec in specs.items()
    }
    return tables.of_runs({"Option": [option_words.label(option) for option in differing]}, columns)


def _finite_or_none(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


PAGE = "compare"
TITLES = {
    "results": "Results",
    "curves": "Curves",
    "samples": "Samples",
    "histograms": "Histograms",
}


def show(store: Store, rows: list[RunRow], tab: str) -> None:
    """Draws the open tab. `rows`: at least two runs."""
    if tab == "results":
        _results(store, rows)
    elif tab == "curves":
        _curves(store, rows)
    elif tab == "samples":
        players.sample_player(store, rows, key="compare.samples", histograms=True)
    else:
        histogram_view.show(store, rows)


def _results(store: Store, rows: list[RunRow]) -> None:
    """Tables first, which draw at once; then results against time, and options next to results."""
    run_ids = [row.run_id for row in rows]
    results = queries.results(store, run_ids)
    declaration = results_view.recorded(queries.declared_of(store, run_ids), results)
    numbers(store, rows)
    qualities = queries.qualities(store, run_ids)
    results_view.best_and_last(results, qualities, rows, declaration)
    differences(rows)
    by = compare_view.group_by(rows)
    series = compare_view.series(rows, by)
    compare_view.legend(series, by)
    results_view.quality_against_time(qualities, rows, series, declaration)
    if caution := cautions(queries.evaluations(store, run_ids)):
        st.caption(words.plain(caution))
    results_view.against_time(results, rows, series, declaration)
    results_view.options_and_results(results, rows, series, declaration)
    compare_view.picked_runs(rows, series, compare_view.RESULTS)


def _curves(store: Store, rows: list[RunRow]) -> None:
    """The losses below each other, then the numbers that the user adds."""
    choices = compare_view.choices(rows)
    series = compare_view.series(rows, choices.by)
    compare_view.legend(series, choices.by)
    plots.zoom_line(compare_view.zoom_key(choices), compare_view.AXES[choices.x])
    numbers = compare_view.numbers(store, rows)
    losses = compare_view.losses(numbers)
    compare_view.loss_charts(store, series, choices, losses, queries.MOST_EACH)
    compare_view.picked_runs(rows, series, compare_view.CURVES)
    compare_view.more_charts(store, series, choices, compare_view.more_metrics(numbers))
