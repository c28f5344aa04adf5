"""A run: while it waits, while it trains and after it has ended.

The address holds the run and the open tab.
"""

import streamlit as st

from dashboard.frame import places, session
from dashboard.run import view as run_view

runtime = session.runtime()
row = run_view.pick(runtime)
st.set_page_config(page_title=f"{row.name} – GAN training")
head = run_view.head(row)
tab, place = places.open_tab(run_view.PAGE, run_view.titles(runtime, row))
run_view.show(runtime, row, tab, place, head)
