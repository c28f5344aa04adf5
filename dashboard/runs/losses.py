"""The losses in the table of Runs: a column each, or one for all of them where the runs have several workloads."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import words
from gan_runtime.catalog import declared
from gan_runtime.catalog.declared import Declared

TOGETHER = "losses"


def columns(known: Declared, workloads: int) -> dict[str, Any]:
    """By the name of the number. Losses of several workloads take one column: beside those of others each would be mostly empty."""
    if workloads > 1:
        return {TOGETHER: st.column_config.TextColumn("Losses", width="medium", help="At the last step.")}
    return {
        loss.name: st.column_config.NumberColumn(
            known.loss_title(loss),
            help=f"At the last step, in {loss.unit}." if loss.unit else "At the last step.",
        )
        for loss in known.losses
    }


def in_words(row: Mapping[Hashable, Any]) -> str:
    """G 0.942 · D 1.082; "–" before the first step. `row`: of the table of runs."""
    known = declared.of(row["workload"])
    values = [(known.loss_name(loss), row[loss.name]) for loss in known.losses]
    return " · ".join(f"{name} {words.loss(value)}" for name, value in values if not pd.isna(value)) or "–"
