"""Compare: several stored runs beside each other: curves, what differs, samples, final numbers."""

import streamlit as st

from dashboard import charts, compare_view, palette, session, widgets
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
left, right = st.columns(2, gap="medium")
for column, (metric, network) in zip((left, right), charts.NETWORK_NAMES.items(), strict=True):
    frame = queries.curves(store, list(names), (metric,), x)
    with column:
        compare_view.curves(frame, names, colors, x, f"{network} loss", key=f"compare.{metric}.{x}")

compare_view.numbers(store, rows, names)
compare_view.differences(rows, names)
st.subheader("Samples at the same epoch")
widgets.sample_player(store, rows, key="compare.samples")
