"""Compare: several runs side by side: results, curves, samples, histograms.

The address holds the runs and the tab.
"""

import streamlit as st

from dashboard import actions, widgets
from dashboard.compare import report, tabs
from dashboard.compare import view as compare_view
from dashboard.frame import places, session
from gan_runtime.store import queries

st.title("Compare runs")
runtime = session.runtime()
rows = widgets.runs_picker(runtime.store, "compare.runs", usual=compare_view.last_compared())
if len(rows) < 2:
    st.info("Pick two or more runs above, or tick them on the Runs page and press Compare.")
    actions.offer_examples(runtime, "compare", queries.runs(runtime.store))
    st.stop()

st.session_state[compare_view.COMPARED] = [row.run_id for row in rows]
report.button(runtime.store, rows)
tab, place = places.open_tab(tabs.PAGE, tabs.TITLES)
with place:
    tabs.show(runtime.store, rows, tab)
