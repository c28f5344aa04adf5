"""The frame of a figure of the paper: the paper's sentences, the source of our numbers, and whether
both agree.
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
    """A sentence of the paper, and below it whether runs agree."""
    quote(quotation)
    verdict(judgement)


def quote(quotation: Quotation) -> None:
    """A sentence of the paper, word for word, with its section."""
    st.caption(f"The paper, {quotation.section}: “{words.plain(quotation.sentence)}”")


def without_claim(quotation: Quotation) -> None:
    """The paper's text about a figure that makes no claim."""
    quote(quotation)
    st.caption("The paper says nothing else about this figure, so there is no verdict.")


def source(store: Store, ranked: Sequence[Candidate], study: StudyRow, run_ids: list[str]) -> None:
    """The study of a figure, its conditions, whether its runs are judged, and why other studies are
    not drawn.
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
    """As `source`, for a figure of one run."""
    sentences = (
        f"{studies_words.conditions(queries.conditions(store, [run_id]))}.",
        verdicts.reasons(shortfalls),
    )
    st.caption("  \n".join(filter(None, sentences)))


def verdict(judgement: Verdict) -> None:
    """Agrees, differs, or not enough runs, and why."""
    st.markdown(f"{judgement.icon} **{judgement.word}:** {judgement.why}")


def points(results: pd.DataFrame, *measures: str) -> None:
    """Measures of a study side by side."""
    for column, measure in zip(st.columns(len(measures), gap="medium"), measures, strict=True):
        with column:
            figures.show_measure(results, measure, "paper")
