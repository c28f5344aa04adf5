"""The frame of a figure on the Paper page: the paper's sentences, where our numbers come
from, and whether they agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard import words
from dashboard.paper import verdicts
from dashboard.paper.verdicts import Candidate, Verdict
from dashboard.studies import figures
from dashboard.studies import words as studies_words
from gan_runtime.store import queries
from gan_runtime.store.queries import StudyRow
from gan_runtime.store.store import Store
from gan_runtime.studies.references import Quotation


def box(number: str, title: str) -> st.delta_generator.DeltaGenerator:
    """A section for a figure of the paper."""
    container = st.container(border=True)
    container.header(f"Fig. {number} · {title}")
    return container


def claim(quotation: Quotation, judgement: Verdict) -> None:
    """A sentence of the paper, and right below it whether runs agree with it."""
    quote(quotation)
    verdict(judgement)


def quote(quotation: Quotation) -> None:
    """A sentence of the paper, word for word, and its section."""
    st.caption(f"The paper, {quotation.section}: “{words.plain(quotation.sentence)}”")


def without_claim(quotation: Quotation) -> None:
    """All that the text says about a figure, where that is nothing that runs could agree with."""
    quote(quotation)
    st.caption("The paper says nothing else about this figure, so there is no verdict.")


def source(store: Store, ranked: Sequence[Candidate], study: StudyRow, run_ids: list[str]) -> None:
    """Which study a figure is drawn from, under what its runs were measured, whether they are
    judged, and why others are not drawn.
    """
    selection = next(
        candidate for candidate in ranked if candidate.study.study_id == study.study_id
    )
    conditions = studies_words.conditions(queries.conditions(store, run_ids))
    sentences = (
        f"From {words.plain(study.title)} ({words.plain(study.study_id)}): {conditions}.",
        verdicts.reasons(selection.shortfalls),
        verdicts.other_studies(ranked, study),
    )
    st.caption("  \n".join(filter(None, sentences)))


def source_of_run(store: Store, run_id: str, shortfalls: Sequence[str]) -> None:
    """As `source`, for a figure that is drawn from one run."""
    sentences = (
        f"{studies_words.conditions(queries.conditions(store, [run_id]))}.",
        verdicts.reasons(shortfalls),
    )
    st.caption("  \n".join(filter(None, sentences)))


def verdict(judgement: Verdict) -> None:
    """Agrees, differs, or too little is known, and why."""
    st.markdown(f"{judgement.icon} **{judgement.word}:** {judgement.why}")


def points(results: pd.DataFrame, *measures: str) -> None:
    """Measures of a study side by side."""
    for column, measure in zip(st.columns(len(measures), gap="medium"), measures, strict=True):
        with column:
            figures.show_measure(results, measure, "paper")
