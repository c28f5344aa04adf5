"""Small charts of a run's health. As charts.py: a frame in, an altair Chart out, and nothing of the data in the spec.

The frames are those of `queries.epoch_scores`, and of `queries.changing_curves` where a chart runs over steps.
"""

from __future__ import annotations

from typing import cast

import altair as alt
import pandas as pd

from dashboard import charts, palette
from dashboard.metric_words import METRICS

IMAGES = {"real": "Real images", "fake": "Generated images"}
NETWORKS = {"generator": "Generator", "discriminator": "Discriminator"}
COLORS = {
    "Real images": palette.REAL,
    "Generated images": palette.GENERATOR,
    "Generator": palette.GENERATOR,
    "Discriminator": palette.DISCRIMINATOR,
}
DASHES = (
    [1, 0],
    [6, 4],
)  # equal values lie on each other: the second line's dashes let the first one through
HEIGHT = 290  # with title, legend and axes: the curves themselves get about half
USUAL_BAND = (
    3e-4,
    3e-3,
)  # around 1e-3, a rule of thumb (A. Karpathy, CS231n notes, "Ratio of weights:updates")
GUESSING = 0.5


def accuracies(frame: pd.DataFrame) -> alt.LayerChart:
    """Share of real and of generated images that D takes for what they are."""
    scale = alt.Scale(domain=[0, 1])
    lines = _lines(
        frame,
        IMAGES,
        alt.Y("value:Q", title="Share judged correctly", scale=scale, axis=alt.Axis(format="%")),
        ".1%",
    )
    guess = (
        alt.Chart(_level(GUESSING, GUESSING))
        .mark_rule(color=palette.NEUTRAL, strokeDash=[2, 3])
        .encode(y="low:Q")
    )
    title = charts.heading(
        "How often is the discriminator right?", "100 % on both: it wins. 50 % (dotted): it guesses."
    )
    return _small(title, guess, *lines)


def spreads(frame: pd.DataFrame) -> alt.LayerChart:
    """Variance within a batch, of real and of generated images."""
    y = alt.Y("value:Q", title="Variance of a pixel", scale=alt.Scale(zero=True))
    title = charts.heading("Do the generated images vary?", "Far below the real ones: all the same image.")
    return _small(title, *_lines(frame, IMAGES, y, ".3f"))


def gradient_norms(frame: pd.DataFrame) -> alt.LayerChart:
    """Norm of the gradient of all weights of each network."""
    y = alt.Y("value:Q", title="Norm (log)", scale=alt.Scale(type="log"), axis=_decades("~g"))
    title = charts.heading(
        "How large are the gradients?", "Towards 0 nothing is learnt; a jump is an explosion."
    )
    return _small(title, *_lines(frame, NETWORKS, y, ".3~g"))


def update_ratios(frame: pd.DataFrame) -> alt.LayerChart:
    """Norm of one update over the norm of the weights, of each network, beside the usual size."""
    y = alt.Y("value:Q", title="Update / weights (log)", scale=alt.Scale(type="log"), axis=_decades("~e"))
    band = (
        alt.Chart(_level(*USUAL_BAND))
        .mark_rect(color=palette.NEUTRAL, opacity=0.15)
        .encode(y="low:Q", y2="high:Q")
    )
    title = charts.heading(
        "How large is one update?", "Grey band: rule of thumb, about 0.001 of the weights."
    )
    return _small(title, band, *_lines(frame, NETWORKS, y, ".2~e"))


def learning_rates(frame: pd.DataFrame) -> alt.LayerChart:
    """The recorded rates over the steps."""
    y = alt.Y("mean:Q", title="Learning rate", axis=alt.Axis(format="~g", tickCount=4))
    return _small(charts.heading("How large are the learning rates?"), _step_lines(frame, y))


def loss_scales(frame: pd.DataFrame) -> alt.LayerChart:
    """By how much the loss is multiplied so that float16 gradients do not vanish."""
    axis = alt.Axis(format="~s", tickCount=4)
    y = alt.Y("mean:Q", title="Loss scale (log)", scale=alt.Scale(type="log", base=2), axis=axis)
    title = charts.heading(
        "How far are float16 gradients scaled up?", "Halved whenever one of them overflows."
    )
    return _small(title, _step_lines(frame, y))


def penalty(frame: pd.DataFrame) -> alt.LayerChart:
    """The R1 penalty before its weight."""
    y = alt.Y("mean:Q", title=METRICS["r1_penalty"].axis, axis=alt.Axis(format="~g", tickCount=4))
    title = charts.heading(
        "How steep is the discriminator at real images?", "What the R1 penalty keeps small."
    )
    tooltip = [
        alt.Tooltip("step:Q", title="Step", format=",d"),
        alt.Tooltip("mean:Q", title="Penalty", format=".4~g"),
    ]
    line = (
        alt.Chart(frame)
        .mark_line(strokeWidth=2, color=palette.DISCRIMINATOR)
        .encode(x=_x("step"), y=y, tooltip=tooltip)
    )
    return _small(title, line)


def planned_rates(frame: pd.DataFrame) -> alt.LayerChart:
    """Learning rates over the epochs of a run to come. Columns: epoch (from 0), network, rate."""
    y = alt.Y("rate:Q", title="Learning rate", axis=alt.Axis(format="~g", tickCount=4))
    lines = _dashed(frame.assign(series=frame["network"].map(NETWORKS)), _x("epoch"), y, "rate", ".3~g")
    return _small(charts.heading("Learning rates over the epochs"), lines)


def _small(title: alt.Title, *layers: alt.Chart) -> alt.LayerChart:
    """Described by what its title asks: a line for each network, or for real and for generated images."""
    words = title.to_dict()
    what = f"{words['text']} Lines over the training. {words.get('subtitle', '')}".strip()
    return cast(alt.LayerChart, alt.layer(*layers).properties(title=title, description=what, height=HEIGHT))


def _lines(frame: pd.DataFrame, names: dict[str, str], y: alt.Y, form: str) -> tuple[alt.Chart, ...]:
    """One line for each metric, named by its ending, with a point at every epoch."""
    named = frame.assign(series=frame["metric"].str.rpartition("_")[2].map(names))
    base = alt.Chart(named).encode(x=_x("epoch"), y=y, color=_color(names))
    if isinstance(y.scale, alt.Scale) and y.to_dict()["scale"].get("type") == "log":
        base = base.transform_filter("datum.value > 0")  # a logarithm has no place for 0: a gap
    tooltip = [
        alt.Tooltip("series:N", title="Of"),
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
        alt.Tooltip("step:Q", title="Step", format=",d"),
        alt.Tooltip("value:Q", title="Value", format=form),
    ]
    return (
        base.mark_line(strokeWidth=2),
        base.mark_circle(size=22, opacity=1),
        base.mark_circle(size=140, opacity=0).encode(tooltip=tooltip),
    )


def _step_lines(frame: pd.DataFrame, y: alt.Y) -> alt.Chart:
    series = frame["metric"].str.rpartition("_")[2].map(NETWORKS)
    return _dashed(frame.assign(series=series), _x("step"), y, "mean", ".4~g")


def _dashed(frame: pd.DataFrame, x: alt.X, y: alt.Y, value: str, form: str) -> alt.Chart:
    dash = alt.StrokeDash(
        "series:N",
        title=None,
        legend=charts.legend(),
        scale=alt.Scale(domain=list(NETWORKS.values()), range=DASHES),
    )
    tooltip = [alt.Tooltip("series:N", title="Of"), alt.Tooltip(f"{value}:Q", title="Value", format=form)]
    drawn = frame.sort_values(
        "series", ascending=False, kind="stable"
    )  # the generator's line first, the dashes over it
    return (
        alt.Chart(drawn)
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=_color(NETWORKS), strokeDash=dash, tooltip=tooltip)
    )


def _level(low: float, high: float) -> alt.InlineData:
    """A constant of a chart, as data that never changes."""
    return alt.InlineData(values=[{"low": low, "high": high}])


def _x(name: str) -> alt.X:
    axis = alt.Axis(tickMinStep=1, grid=False, format="~s" if name == "step" else "d")
    return alt.X(f"{name}:Q", title=name.capitalize(), axis=axis, scale=alt.Scale(zero=False, nice=False))


def _decades(form: str) -> alt.Axis:
    """A line for each power of ten; Vega would draw one for each digit between them."""
    return alt.Axis(values=[10.0**power for power in range(-12, 9)], format=form)


def _color(names: dict[str, str]) -> alt.Color:
    series = list(names.values())
    return alt.Color(
        "series:N",
        title=None,
        legend=charts.legend(),
        scale=alt.Scale(domain=series, range=[COLORS[one] for one in series]),
    )
