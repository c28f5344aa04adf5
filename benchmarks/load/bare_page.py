"""A page with one line: the reference for the first views of our pages."""

import streamlit as st

st.title("A page of one line")
