"""One measure of a study's runs as a chart on the page, or a sentence while nobody has measured it."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from dashboard import plots
from dashboard.studies import charts as study_charts
from dashboard.studies import measures as study_measures
from dashboard.studies import words as study_words


def show(results: pd.DataFrame, measure: str, page: str) -> None:
    """`measure`: a column of `queries.study_results`; `results` as `queries.study_results` gives them."""
    shown, frame = study_measures.measure_of(measure, results), study_words.points(results, measure)
    if frame.empty:
        st.caption(study_words.missing(results, measure))
        return
    draw = partial(study_charts.variant_points, unit=shown.unit, title=shown.title, mean_word=shown.mean_word)
    plots.steady_chart(draw, frame, f"{page}.{measure}")
