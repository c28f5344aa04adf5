"""Compare: several stored runs beside each other: curves, what differs, samples, final numbers."""

import streamlit as st

from dashboard import first_screen, widgets, zoom
from dashboard.compare import results_view
from dashboard.compare import tables as compare_tables
from dashboard.compare import view as compare_view
from dashboard.frame import session
from dashboard.samples import players
from gan_runtime.store import queries

st.title("Compare runs")
store = session.runtime().store
rows = widgets.runs_picker(store, key="compare.runs")

if len(rows) < 2:
    st.info("Pick two or more runs above, or tick them on the Runs page and press Compare.")
    st.stop()

chosen = compare_view.choices(rows)
drawn = compare_view.series(rows, chosen.by)
compare_view.legend(drawn, chosen.by)
zoom.line(compare_view.zoom_key(chosen), compare_view.AXES[chosen.x])
known = compare_view.numbers(store, rows)
losses = compare_view.losses(known)
if first_screen.stands_alone("compare"):
    compare_view.loss_charts(store, drawn, chosen, losses[:1], first_screen.POINTS)
    first_screen.rest_follows("More losses, numbers, results and samples")
    st.stop()

compare_view.loss_charts(store, drawn, chosen, losses, queries.MOST_EACH)
compare_view.picked_line(rows, drawn, compare_view.CURVES)
compare_view.more_charts(store, drawn, chosen, compare_view.more_metrics(known))

compare_tables.numbers(store, rows)
results = queries.results(store, [row.run_id for row in rows])
declared = results_view.recorded(queries.declared_of(store, [row.run_id for row in rows]), results)
results_view.best_and_last(results, rows, declared)
compare_tables.differences(rows)

results_view.against_time(results, rows, drawn, declared)
results_view.options_and_results(results, rows, drawn, declared)
compare_view.picked_line(rows, drawn, compare_view.RESULTS)

st.header("Samples and scores at the same epoch")
players.sample_player(store, rows, key="compare.samples", histograms=True)
