"""The tabs of the Compare page. Only the open one is drawn."""

from __future__ import annotations

from dashboard import plots, rendering
from dashboard.compare import results_view
from dashboard.compare import tables as compare_tables
from dashboard.compare import view as compare_view
from dashboard.histograms import view as histogram_view
from dashboard.samples import players
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

PAGE = "compare"
TITLES = {"results": "Results", "curves": "Curves", "samples": "Samples", "histograms": "Histograms"}


def show(store: Store, rows: list[RunRow], tab: str) -> None:
    """The open tab. `rows`: at least two runs."""
    if tab == "results":
        _results(store, rows)
    elif tab == "curves":
        _curves(store, rows)
    elif tab == "samples":
        players.sample_player(store, rows, key="compare.samples", histograms=True)
    else:
        histogram_view.show(store, rows)


def _results(store: Store, rows: list[RunRow]) -> None:
    """Tables first, as they are drawn in no time; then each result against time, and options beside results."""
    run_ids = [row.run_id for row in rows]
    results = queries.results(store, run_ids)
    declared = results_view.recorded(queries.declared_of(store, run_ids), results)
    compare_tables.numbers(store, rows)
    results_view.best_and_last(results, rows, declared)
    if rendering.stands_alone(PAGE):
        rendering.rest_follows("What differs, and charts of the results,")
        return
    compare_tables.differences(rows)
    by = compare_view.group_by(rows)
    drawn = compare_view.series(rows, by)
    compare_view.legend(drawn, by)
    results_view.against_time(results, rows, drawn, declared)
    results_view.options_and_results(results, rows, drawn, declared)
    compare_view.picked_line(rows, drawn, compare_view.RESULTS)


def _curves(store: Store, rows: list[RunRow]) -> None:
    """The losses below each other, then what else a person picks."""
    chosen = compare_view.choices(rows)
    drawn = compare_view.series(rows, chosen.by)
    compare_view.legend(drawn, chosen.by)
    plots.line(compare_view.zoom_key(chosen), compare_view.AXES[chosen.x])
    numbers = compare_view.numbers(store, rows)
    losses = compare_view.losses(numbers)
    if rendering.stands_alone(PAGE):
        compare_view.loss_charts(store, drawn, chosen, losses[:1], rendering.POINTS)
        rendering.rest_follows("More curves")
        return
    compare_view.loss_charts(store, drawn, chosen, losses, queries.MOST_EACH)
    compare_view.picked_line(rows, drawn, compare_view.CURVES)
    compare_view.more_charts(store, drawn, chosen, compare_view.more_metrics(numbers))
