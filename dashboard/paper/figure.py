"""The frame of a figure on the Paper page: the paper's sentence, where our numbers come from, and whether they agree."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import words
from dashboard.paper.verdicts import Verdict
from dashboard.studies import condition_words, study_points
from gan_runtime.store import queries
from gan_runtime.store.queries import StudyRow
from gan_runtime.store.store import Store


def box(number: str, title: str, says: str) -> st.delta_generator.DeltaGenerator:
    """A section with the paper's sentence on top."""
    found = st.container(border=True)
    found.header(f"Fig. {number} · {title}")
    found.caption(f"The paper: {says}")
    return found


def source(store: Store, study: StudyRow, run_ids: list[str]) -> None:
    """Which study a figure is drawn from, and under what its runs were measured."""
    conditions = condition_words.line(queries.conditions(store, run_ids))
    st.caption(f"From {words.plain(study.title)} ({words.plain(study.study_id)}): {conditions}.")


def source_of_run(store: Store, run_id: str) -> None:
    """As `source`, for a figure that is drawn from one run."""
    st.caption(f"{condition_words.line(queries.conditions(store, [run_id]))}.")


def verdict(found: Verdict) -> None:
    """Agrees, differs, or too little is known, and why."""
    st.markdown(f"{found.icon} **{found.word}:** {found.why}")


def points(results: pd.DataFrame, *measures: str) -> None:
    """Measures of a study side by side."""
    for column, measure in zip(st.columns(len(measures), gap="medium"), measures, strict=True):
        with column:
            study_points.show(results, measure, "paper")
