"""A page of one line: the time of Streamlit itself on this machine, the reference for the views of
our pages.
"""

import streamlit as st

st.title("A page of one line")
