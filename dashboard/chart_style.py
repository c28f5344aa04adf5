"""What all charts have in common: words that can be read in the light and in the dark theme."""

from __future__ import annotations

import altair as alt

from dashboard import palette

# Streamlit gives axis labels a gray of contrast 3.7 in the light theme. Vega knows the background it draws on, so one
# expression serves both themes; nothing in a chart's specification depends on the viewer.
READABLE = f"luminance(background) > 0.5 ? '{palette.WORDS_ON_LIGHT}' : '{palette.WORDS_ON_DARK}'"


def ink() -> alt.ExprRef:
    """The color of words beside marks."""
    return alt.ExprRef(READABLE)


CONFIG = alt.Config(
    axis=alt.AxisConfig(labelColor=ink(), titleColor=ink()),
    legend=alt.LegendConfig(labelColor=ink(), titleColor=ink()),
    header=alt.HeaderConfig(labelColor=ink(), titleColor=ink()),
    title=alt.TitleConfig(subtitleColor=ink()),
)


def readable(chart: alt.Chart | alt.LayerChart) -> alt.Chart | alt.LayerChart:
    """The chart with its labels, titles and legend in that color; what the chart says itself stays."""
    drawn = chart.copy(deep=False)  # each of Altair's configure_… copies the whole chart
    drawn.config = CONFIG
    return drawn
