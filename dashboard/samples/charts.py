"""The scores under the pictures of several runs: a frame in, an Altair chart out, no Streamlit."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard import charts
from dashboard.panels import Group


def score_bars(frame: pd.DataFrame, judged: Group, height: int = 180) -> alt.LayerChart:
    """The scores of one run at one epoch. `frame`: the rows of one run of `queries.score_histograms`.

    Its axis reaches to the largest share of all runs and epochs, so the charts of several runs can be compared, and none
    jumps while the epochs play. That value comes as an unseen point: in the spec it would be a new chart each time. After a
    first epoch all scores may lie in one bin; the root scale leaves room for those of all others.
    """
    y = alt.Y(
        "share:Q",
        title="Share (root scale)",
        axis=alt.Axis(format="%", values=[0, 0.05, 0.2, 0.5, 1]),
        scale=alt.Scale(type="sqrt"),
    )
    x = alt.X(
        "left:Q",
        title=judged.axis,
        scale=alt.Scale(domain=list(judged.panel.domain)) if judged.panel.domain else alt.Scale(zero=False),
        axis=alt.Axis(grid=False, tickCount=5),
    )
    tooltip = [
        alt.Tooltip("series:N", title=judged.panel.series),
        alt.Tooltip("left:Q", title="Score from", format=".3f"),
        alt.Tooltip("share:Q", title="Share", format=".1%"),
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
    ]
    colors = alt.Scale(domain=list(judged.colors), range=list(judged.colors.values()))
    base = alt.Chart()
    bars = base.mark_bar(opacity=0.65, binSpacing=0).encode(
        x=x,
        x2=alt.X2("right:Q"),
        y=y.stack(None),
        y2=alt.Y2Datum(0),
        color=alt.Color("series:N", legend=None, scale=colors),
        tooltip=tooltip,
    )
    top = base.mark_point(opacity=0).encode(y=alt.Y("top:Q"))
    what = f"Histograms of scores at one epoch: {', '.join(judged.colors)}."
    rows = frame.assign(series=frame["name"].map(judged.labels))
    return charts.layered(rows, bars, top, height=height, description=what)
