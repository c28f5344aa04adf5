"""The script of every page view: page config, navigation, then the page itself.

It has no folder pages/ next to it: Streamlit would take that for its old automatic navigation, and
the first deep link after a start would show a page without its frame.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard.frame import notices, places, session
from dashboard.launch import fields

FRAME = Path(__file__).with_name("frame")
st.set_page_config(
    page_title="GAN training",
    page_icon=FRAME / "favicon.svg",
    layout="wide",
    initial_sidebar_state=200,
)
st.html(FRAME / "style.css")

page = st.navigation(
    [
        st.Page(places.HOME, title="Home", icon=":material/home:", default=True),
        st.Page(places.LAUNCH, title="Launch", icon=":material/rocket_launch:", url_path="launch"),
        st.Page(places.DATA, title="Data", icon=":material/photo_library:", url_path="data"),
        st.Page(places.RUNS, title="Runs", icon=":material/table_rows:", url_path="runs"),
        st.Page(
            places.RUN,
            title="Run",
            icon=":material/monitoring:",
            url_path="run",
            visibility="visible" if places.has_run() else "hidden",
        ),
        st.Page(
            places.COMPARE,
            title="Compare",
            icon=":material/stacked_line_chart:",
            url_path="compare",
        ),
        st.Page(places.STUDIES, title="Studies", icon=":material/science:", url_path="studies"),
        st.Page(
            places.TPU,
            title="TPU check",
            icon=":material/memory:",
            url_path="tpu",
            visibility="hidden",
        ),
        st.Page(
            places.GPU,
            title="GPU check",
            icon=":material/memory:",
            url_path="gpu",
            visibility="hidden",
        ),
        st.Page(
            places.STAGE,
            title="Stage",
            icon=":material/slideshow:",
            url_path="stage",
            visibility="hidden",
        ),
    ]
)
st.set_page_config(page_title=f"{page.title} – GAN training")
fields.kept().read()
notices.take_over()
notices.show_role()
was_reading = notices.is_reading()
notices.show_home_state()
notices.show_disk()
notices.offer_browser_notices()
try:
    page.run()
finally:  # a page may stop early
    session.prepare_other_pages()
    notices.redraw_if_rebuilt(was_reading)
