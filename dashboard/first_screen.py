"""The first screen of a page before what lies below it, once in each browser window.

A chart costs a browser 70 ms and more, whether or not it can be seen. So the first pass over a page draws what stands on its first screen
with fewer points of its curves, and says what is to come; the browser draws that, asks again by itself, and gets the page as a whole. What stands
above does not move.
The reasons stand in docs/decisions/0063-first-views.md.
"""

from __future__ import annotations

from itertools import count

import streamlit as st

PAGES = ("run", "compare")  # what lies below the first screen of the others costs little
POINTS = 80  # of a curve: what a browser takes for each point is half of what it draws a chart in
REST_SECONDS = 1.2  # a slow browser has drawn the first screen by then, undisturbed
MARK = "rest_follows"  # on the page, until the rest is there
SEEN = "first_screen.seen"  # in the session, which is the window's


def stands_alone(page: str) -> bool:
    """Whether this pass draws the first screen alone: the first one over this page in this window. Else the page is drawn whole."""
    seen = st.session_state.get(SEEN, frozenset())
    st.session_state[SEEN] = seen | {page}
    return page not in seen


def rest_follows(what: str) -> None:
    """At the end of such a pass: a sentence, and the browser asks for the page once more. `what`: "Numbers and results"."""
    with st.container(key=MARK):
        st.caption(f"{what} follow in a moment.")
    passes = count()

    def ask_again() -> None:
        if next(passes):
            st.rerun()

    st.fragment(ask_again, run_every=REST_SECONDS)()
