"""The tab Speed and literature: what others have published, from the declaration and from the domain."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import tables
from dashboard.evaluation.shown import Shown, number
from gan_runtime.commands.runtime import Runtime


def draw(runtime: Runtime, shown: Shown) -> None:
    """The domain's tables, then the published scores."""
    if shown.page.literature is not None:
        shown.page.literature(runtime, shown)
    if shown.evaluation.published:
        st.markdown("**Published scores**")
        tables.show(published(shown), hide_index=True, key="evaluation.published", height="content")


def published(shown: Shown) -> pd.DataFrame:
    """A row for each published score of the declaration, next to the value of each answer."""
    rows = []
    for one in shown.evaluation.published:
        metric = next((known for known in shown.page.scores if known.name == one.score), None)
        if metric is None:
            continue
        own = {
            name: "–" if one.score not in scores else number(metric, scores[one.score].value)
            for name in shown.answers
            for scores in [shown.scores_of(name)]
        }
        error = float("nan") if one.error is None else one.error
        rows.append(
            {
                "Score": metric.title,
                "Published": number(metric, one.value, error),
                **own,
                "Of": one.what,
                "Source": one.source,
            }
        )
    return pd.DataFrame(rows)
