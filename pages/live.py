"""Live: one run while it trains, or as it ended. Redraws itself each second, less often where that would cost the training; the address keeps the run."""

import streamlit as st

from dashboard import first_screen, widgets
from dashboard.frame import places, session
from dashboard.live import pace
from dashboard.live import view as live_view

runtime = session.runtime()
head = st.columns([2, 3], vertical_alignment="bottom")
head[0].title("Live run")
with head[1]:
    row = widgets.run_picker(runtime.store)
if row is None:
    st.info("No run is stored yet. Start one on the Launch page, and its curves appear here.")
    st.page_link(places.LAUNCH, label="Go to Launch", icon=":material/rocket_launch:")
    st.stop()
run_id, was_live, every = row.run_id, row.is_live, pace.interval(row.accelerator)
had_results = live_view.has_results(runtime.store, run_id)
alone = first_screen.stands_alone("live")
st.set_page_config(page_title=f"{row.name} – Live")
page = live_view.places_of_page(run_id)


@st.fragment(run_every=every if was_live else None)
def newest() -> None:
    """Redraws alone, so that all widgets keep their state between refreshes; the first results are shown at once."""
    now = live_view.current(runtime.store, run_id)
    if now is None:
        live_view.gone(run_id)
        return
    is_as_drawn = now.is_live and had_results == live_view.has_results(runtime.store, run_id)
    if was_live and not (is_as_drawn and pace.is_kept(every, pace.interval(now.accelerator))):
        st.rerun()
    live_view.show_newest(runtime, now, page, alone)


@st.fragment(run_every=pace.rest_interval(row.accelerator) if was_live else None)
def rest() -> None:
    """Less often: most of it changes once an epoch."""
    now = live_view.current(runtime.store, run_id)
    if now is None:
        return
    if was_live and not now.is_live:
        st.rerun()
    live_view.show_rest(runtime, now, page, alone)


with page.words:
    newest()
with page.rest:
    rest()
if alone:
    first_screen.rest_follows("Scores, health, log and options")
