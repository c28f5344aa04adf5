"""Precision: what each setting costs to start and to train, when that is paid back, and whether the losses stay the same."""

import streamlit as st

from dashboard.frame import session
from dashboard.variants import view as variants_view

st.title("Precision")
variants_view.show(session.runtime(), "precision")
