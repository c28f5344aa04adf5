"""The section Health of the Live page: whether the training is in order, in small charts over the epochs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import widgets
from dashboard.live import health_charts
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

Draw = Callable[[pd.DataFrame], alt.LayerChart]

EPOCH_CHARTS: tuple[tuple[tuple[str, ...], Draw], ...] = (
    (queries.ACCURACIES, health_charts.accuracies),
    (queries.SPREADS, health_charts.spreads),
    (queries.GRADIENT_NORMS, health_charts.gradient_norms),
    (queries.UPDATE_RATIOS, health_charts.update_ratios),
)
STEP_CHARTS: tuple[tuple[tuple[str, ...], Draw], ...] = (
    (queries.RATES, health_charts.learning_rates),
    (queries.LOSS_SCALES, health_charts.loss_scales),
    (queries.PENALTIES, health_charts.penalty),
)
HELP = (
    "Measured at the end of each epoch on the first 256 images of the set and as many generated ones. Rules of thumb, no "
    "verdict: a GAN is judged by its images."
)


def show(store: Store, row: RunRow) -> None:
    """Two small charts beside each other; what changes over the steps follows below, where the options say that it may."""
    st.header("Health", help=HELP)
    scores = queries.epoch_scores(
        store, row.run_id, tuple(metric for metrics, _ in EPOCH_CHARTS for metric in metrics)
    )
    if scores.empty:
        _awaited(row)
    drawn = [(draw, scores[scores["metric"].isin(metrics)]) for metrics, draw in EPOCH_CHARTS]
    wanted = changing_metrics(json.loads(row.spec))
    if wanted:
        curves = queries.changing_curves(store, row.run_id, wanted)
        drawn += [(draw, curves[curves["metric"].isin(metrics)]) for metrics, draw in STEP_CHARTS]
    filled = [(draw, frame) for draw, frame in drawn if not frame.empty]
    for begin in range(0, len(filled), 2):
        for column, (draw, frame) in zip(
            st.columns(2, gap="medium"), filled[begin : begin + 2], strict=False
        ):
            with column:
                widgets.steady_chart(draw, frame, f"{draw.__name__}.{row.run_id}")


def changing_metrics(spec: dict[str, Any]) -> tuple[str, ...]:
    """Per-step metrics that the options of a run let change. Others need no query, and this page asks every second.

    Options that a stored run does not have are at their default.
    """
    moving = spec.get("learning_rate_schedule", "constant") != "constant" or spec.get("warmup_epochs", 0) > 0
    rates = queries.RATES if moving or spec.get("alarm_action") == "roll_back" else ()
    scales = queries.LOSS_SCALES if spec["precision"] == "mixed_float16" else ()
    return (*rates, *scales, *(queries.PENALTIES if spec.get("r1_weight", 0) > 0 else ()))


def _awaited(row: RunRow) -> None:
    """As high as the charts that are to come, so that nothing below them jumps when they do."""
    if not row.is_live:
        st.caption(_nothing_yet(row))
        return
    height = health_charts.HEIGHT * (len(EPOCH_CHARTS) // 2)
    with st.container(border=True, height=height, vertical_alignment="center", horizontal_alignment="center"):
        st.caption(_nothing_yet(row), width="content")


def _nothing_yet(row: RunRow) -> str:
    what = "Charts of how often D is right, how much the images vary and how large gradients and updates are"
    return (
        f"{what} appear here after the first epoch."
        if row.is_live
        else "This run has recorded no scores of an epoch."
    )
