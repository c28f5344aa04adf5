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


# Of every chart's specification: labels, titles and legend in that color; what a chart says itself stays. A chart is described as a
# whole: a sentence for each of its marks took a browser half of the time that it draws the chart in.
CONFIG = alt.Config(
    mark=alt.MarkConfig(aria=False),
    axis=alt.AxisConfig(labelColor=ink(), titleColor=ink()),
    legend=alt.LegendConfig(labelColor=ink(), titleColor=ink()),
    header=alt.HeaderConfig(labelColor=ink(), titleColor=ink()),
    title=alt.TitleConfig(subtitleColor=ink()),
).to_dict(validate=False)
