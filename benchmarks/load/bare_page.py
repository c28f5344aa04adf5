"""A page of one line: what Streamlit itself takes on this machine, beside which the views of
our pages stand.
"""

import streamlit as st

st.title("A page of one line")
