"""Compare: several stored runs beside each other: curves, what differs, samples, final numbers."""

import streamlit as st

from dashboard import compare_view, palette, session, widgets
from gan_runtime.store import queries

st.title("Compare runs")
store = session.runtime().store
pick, axis = st.columns([4, 2], vertical_alignment="bottom")
with pick:
    rows = widgets.runs_picker(store, key="compare.runs")
x = compare_view.x_axis(axis)

if len(rows) < 2:
    st.info("Pick two or more runs above, or tick them on the Runs page and press Compare.")
    st.stop()

names = compare_view.unique_names(rows)
colors = {names[row.run_id]: palette.run_color(row.color) for row in rows}
metrics = [*queries.LOSSES, *compare_view.more_metrics(store, rows)]
for begin in range(0, len(metrics), 2):
    for column, metric in zip(st.columns(2, gap="medium"), metrics[begin : begin + 2], strict=False):
        with column:
            compare_view.curves(queries.curves(store, list(names), (metric,), x), names, colors, x, metric)

compare_view.numbers(store, rows, names)
compare_view.differences(rows, names)
st.subheader("Samples at the same epoch")
widgets.sample_player(store, rows, key="compare.samples")
