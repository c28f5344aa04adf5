"""The tab Curves of an evaluation without views of its own: each stored curve or map of the answers that are shown."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard import plots
from dashboard.evaluation import charts as evaluation_charts
from dashboard.evaluation.shown import Shown
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store import queries

ACROSS = 2


def draw(runtime: Runtime, shown: Shown) -> None:
    """Answer by answer."""
    drawn = 0
    for name, row in shown.answers.items():
        curves = queries.evaluation_curves(runtime.store, row)
        points = queries.curve_points(runtime.store, row, [curve.number for curve in curves])
        if curves:
            st.markdown(f"**{name}**")
        for begin in range(0, len(curves), ACROSS):
            for column, curve in zip(st.columns(ACROSS), curves[begin : begin + ACROSS], strict=False):
                own = points[points["number"] == curve.number]
                is_map = "columns" in curve.facts and bool(own["y"].notna().all())
                chart = evaluation_charts.heat_map if is_map else evaluation_charts.lines
                title = curve.name.replace("_", " ").capitalize()
                with column:
                    draw_one = partial(chart, title=title)
                    plots.steady_chart(
                        draw_one, own, f"evaluation.curve.{row.run_id}.{row.key}.{curve.number}"
                    )
                drawn += 1
    if not drawn:
        st.info("These answers hold no curves.")
