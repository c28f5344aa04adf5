"""Runs: all stored runs in one table; open, compare, rename or delete them; and the trash."""

import streamlit as st

from dashboard import actions, run_selection
from dashboard.frame import places, session
from dashboard.runs import changes, columns
from dashboard.runs import view as runs_view
from gan_runtime.store import queries

st.title("Runs")
runtime = session.runtime()
stored = columns.with_quality(
    queries.run_table(runtime.store), queries.best_qualities(runtime.store)
)
table = runs_view.in_words(stored, run_selection.verdicts(runtime.store, stored["run_id"]))
runs_view.show_unreadable(runtime.store)
if table.empty:
    st.info(
        "No run is stored yet. Start one on the Launch page, and it appears here as soon as it"
        " waits or trains."
    )
    st.page_link(places.LAUNCH, label="Go to Launch", icon=":material/rocket_launch:")
    changes.show_trash(runtime)
    st.stop()

rows = runs_view.filtered(table)
selection = runs_view.table(
    columns.with_space(rows, runtime.maintenance.space), set(table["run_id"])
)
runs_view.buttons(runtime, selection)
columns.show_space(runtime)
changes.show_trash(runtime)
actions.offer_examples(runtime, "runs", queries.runs(runtime.store))
runs_view.redraw_when_states_change(runtime.store, table)
