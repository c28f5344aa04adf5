"""A page with one line, whose time on this machine is the reference for the views of our pages."""

import streamlit as st

st.title("A page of one line")
