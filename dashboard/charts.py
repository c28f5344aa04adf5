"""Charts: a DataFrame in, an altair Chart out. No Streamlit here.

The specs are constant: nothing of the data stands in them, so a live update only swaps the rows and keeps the place. The
wheel is left to the page: a drag across a chart is a zoom, which the page answers with the rows of that part (`zoom.py`).
"""

from __future__ import annotations

import json
from typing import cast

import altair as alt
import pandas as pd

from dashboard import palette

NETWORK_NAMES = {"loss_generator": "Generator", "loss_discriminator": "Discriminator"}
SCORE_NAMES = {"d_real": "Real images", "d_fake": "Generated images"}
SMOOTHED_BUCKETS = 9
ZOOM, WHOLE = (
    "zoom",
    "whole",
)  # parameters of a chart that can be zoomed: a drag across it, and a double-click
Rows = pd.DataFrame | alt.NamedData  # the rows themselves, or the name under which they come later
WORK_NAMES = {
    "forward": "Forward",
    "backward": "Backward",
    "optimizer": "Optimizer",
    "gradient_all_reduce": "Gradient all-reduce",
    "batch_norm_all_reduce": "Batch-norm all-reduce",
    "input": "Input",
    "idle": "Idle",
    "unattributed": "Unattributed",
}


def loss_curves(rows: Rows, height: int = 400) -> alt.LayerChart:
    """Both losses of one run over its steps: raw faint, smoothed bold. `rows` as `queries.curves` gives them."""
    color = alt.Color(
        "network:N",
        title=None,
        legend=legend(),
        scale=_scale(NETWORK_NAMES, palette.GENERATOR, palette.DISCRIMINATOR),
    )
    what = "Lines over the training steps: the generator's loss and the discriminator's, each as measured and smoothed."
    drawn = _curves(rows, "network", NETWORK_NAMES, color, "Loss (nats)", alt.Scale(zero=False))
    return _finished(drawn, "Generator and discriminator loss", what, height)


def score_curves(rows: Rows, height: int = 260) -> alt.LayerChart:
    """D's mean belief that real and generated images are real, over the steps of one run."""
    color = alt.Color(
        "images:N", title=None, legend=legend(), scale=_scale(SCORE_NAMES, palette.REAL, palette.GENERATOR)
    )
    what = "Lines over the training steps: the discriminator's mean score of real images and of generated ones, 0 to 1."
    drawn = _curves(rows, "images", SCORE_NAMES, color, "D's score (1 = real)", alt.Scale(domain=[0, 1]))
    return _finished(drawn, "Can the discriminator tell?", what, height)


def _curves(
    rows: Rows, series: str, names: dict[str, str], color: alt.Color, y_title: str, y_scale: alt.Scale
) -> alt.LayerChart:
    """Band, raw line, smoothed line and what is pointed at, one color for each of `names`: metric → what it is called."""
    axis = alt.Axis(tickMinStep=1, grid=False)
    base = (
        alt.Chart(rows)
        .transform_calculate(**{series: f"{json.dumps(names)}[datum.metric]"})
        .encode(x=alt.X("x:Q", title="Step", axis=axis, scale=alt.Scale(zero=False, nice=False)), color=color)
    )

    def of(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=y_title, scale=y_scale)

    smooth = base.transform_window(
        smoothed="mean(mean)", frame=[-SMOOTHED_BUCKETS + 1, 0], groupby=[series], sort=[alt.SortField("x")]
    )
    tooltip = [
        alt.Tooltip(f"{series}:N", title=series.capitalize()),
        alt.Tooltip("step:Q", title="Step", format=",d"),
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
        alt.Tooltip("mean:Q", title="Value", format=".3f"),
    ]
    band = base.mark_area(opacity=0.12, line=False).encode(y=of("low"), y2="high:Q")
    raw = base.mark_line(opacity=0.35, strokeWidth=1).encode(y=of("mean"))
    bold = smooth.mark_line(strokeWidth=2.5).encode(y=of("smoothed"))
    reader = base.mark_circle(size=90, opacity=0).encode(y=of("mean"), tooltip=tooltip)
    return cast(alt.LayerChart, alt.layer(ground(), band, raw, bold, reader.add_params(drag())))


def _finished(layers: alt.LayerChart, title: str, description: str, height: int) -> alt.LayerChart:
    svg = {"embedOptions": {"renderer": "svg"}}
    return layers.properties(title=title, description=description, height=height, usermeta=svg)


def drag() -> alt.Parameter:
    """What the page hears of a drag: the range of x."""
    return alt.selection_interval(name=ZOOM, encodings=["x"], translate=False, zoom=False)


def ground() -> alt.Chart:
    """An unseen rectangle behind everything: a double-click on it is what shows everything again."""
    corners = {"x": alt.value(0), "x2": alt.value("width"), "y": alt.value(0), "y2": alt.value("height")}
    rectangle = alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rect(opacity=0).encode(**corners)
    return rectangle.add_params(alt.selection_point(name=WHOLE, fields=["x"], on="dblclick", clear=False))


def epoch_bars(frame: pd.DataFrame, height: int = 260) -> alt.Chart:
    """Training seconds of each epoch of one run. `frame` as `queries.epoch_times` gives it."""
    return (
        alt.Chart(frame)
        .transform_calculate(begin="datum.epoch - 0.4", end="datum.epoch + 0.4")
        .mark_bar(color=palette.NEUTRAL)
        .encode(
            x=alt.X(
                "begin:Q",
                title="Epoch",
                axis=alt.Axis(tickMinStep=1, grid=False, format="d"),
                scale=alt.Scale(zero=False),
            ),
            x2="end:Q",
            y=alt.Y("seconds:Q", title="Training time (s)"),
            y2=alt.datum(0),
            tooltip=[
                alt.Tooltip("epoch:Q", title="Epoch", format="d"),
                alt.Tooltip("seconds:Q", title="Seconds", format=".2f"),
                alt.Tooltip("images_per_s:Q", title="Images/s", format=",.0f"),
            ],
        )
        .properties(
            title="How long does an epoch take?",
            description="Bars: training seconds of each epoch.",
            height=height,
        )
    )


def worker_bars(frame: pd.DataFrame, height: int = 160) -> alt.Chart:
    """Own work and waiting of each worker in a step. `frame` as `queries.worker_times` gives it."""
    parts = {"compute_s": "Own work", "wait_s": "Waiting for others and transfer"}
    long = frame.melt(["rank", "wait_share"], list(parts), "part", "seconds").assign(
        worker=lambda rows: "Worker " + rows["rank"].astype(str),
        milliseconds=lambda rows: rows["seconds"] * 1000,
        part=lambda rows: rows["part"].map(parts),
    )
    return (
        alt.Chart(long)
        .mark_bar()
        .encode(
            x=alt.X("milliseconds:Q", title="Time per step (ms)", axis=alt.Axis(grid=False)),
            y=alt.Y("worker:N", title=None, sort=alt.SortField("rank")),
            color=alt.Color(
                "part:N", title=None, legend=legend(), scale=_scale(parts, palette.NEUTRAL, palette.WAITING)
            ),
            order=alt.Order("part:N"),
            tooltip=[
                alt.Tooltip("worker:N", title="Worker"),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("milliseconds:Q", title="Milliseconds", format=".1f"),
                alt.Tooltip("wait_share:Q", title="Share waited", format=".0%"),
            ],
        )
        .properties(
            title="Who waits for whom?",
            description="A bar for each worker: milliseconds of a step that it computes, and that it waits for others.",
            height=height,
        )
    )


def step_profile(frame: pd.DataFrame, height: int = 270) -> alt.Chart:
    """Where the time of a training step goes, one bar a network. `frame` as `queries.profile` gives it."""
    networks = frame["network"].str.capitalize().replace("", "Neither")
    named = frame.assign(
        row=networks,
        work=frame["category"].map(WORK_NAMES),
        order=frame["category"].map(list(WORK_NAMES).index),
    )
    legend = alt.Legend(orient="top", columns=4, offset=0, labelLimit=260, symbolOpacity=1)
    colors = alt.Scale(domain=list(WORK_NAMES.values()), range=[palette.WORK[name] for name in WORK_NAMES])
    return (
        alt.Chart(named)
        .mark_bar()
        .encode(
            x=alt.X(
                "sum(share):Q",
                title="Share of a step's time",
                stack="zero",
                axis=alt.Axis(format="%", grid=False, tickCount=6),
            ),
            y=alt.Y(
                "row:N",
                title=None,
                sort=["Generator", "Discriminator", "Neither"],
                axis=alt.Axis(labelLimit=160),
            ),
            color=alt.Color("work:N", title=None, legend=legend, scale=colors),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("row:N", title="Network"),
                alt.Tooltip("work:N", title="Work"),
                alt.Tooltip("share:Q", title="Share", format=".1%"),
                alt.Tooltip("seconds_per_step:Q", title="Seconds per step", format=".4f"),
            ],
        )
        .properties(
            title="Where does a step's time go?",
            description="A bar for each network: the shares of a step's time that go into each kind of work.",
            height=height,
        )
    )


def score_histogram(frame: pd.DataFrame, height: int = 260) -> alt.Chart:
    """D's scores of real and generated images at one epoch. `frame` as `queries.histogram` gives it."""
    names = {"score/real": "Real images", "score/fake": "Generated images"}
    color = alt.Color(
        "images:N", title=None, legend=legend(), scale=_scale(names, palette.REAL, palette.GENERATOR)
    )
    return (
        alt.Chart(frame.assign(images=frame["name"].map(names)))
        .mark_bar(opacity=0.65, binSpacing=0)
        .encode(
            x=alt.X(
                "left:Q",
                title="D's score (1 = real)",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(grid=False),
            ),
            x2="right:Q",
            y=alt.Y("share:Q", title="Share of images", stack=None, axis=alt.Axis(format="%")),
            y2=alt.datum(0),
            color=color,
            tooltip=[
                alt.Tooltip("images:N", title="Images"),
                alt.Tooltip("left:Q", title="Score from", format=".3f"),
                alt.Tooltip("share:Q", title="Share", format=".1%"),
            ],
        )
        .properties(
            title="Where do the scores lie?",
            description="Histogram of the discriminator's scores of real and of generated images after one epoch, 0 to 1.",
            height=height,
        )
    )


def value_histogram(frame: pd.DataFrame, kind: str, height: int = 180) -> alt.Chart:
    """Weights or gradients of one network at one epoch, counts on a log scale that begins at 0, so that tails show."""
    network = "generator" if str(frame["name"].iloc[0]).endswith("generator") else "discriminator"
    color = palette.GENERATOR if network == "generator" else palette.DISCRIMINATOR
    counts = alt.Axis(format="~s", values=[0, *(10**power for power in range(1, 10, 2))])
    return (
        alt.Chart(frame)
        .mark_bar(color=color, binSpacing=0)
        .encode(
            x=alt.X("left:Q", title=kind.capitalize(), axis=alt.Axis(grid=False, format="~g")),
            x2="right:Q",
            y=alt.Y("count:Q", title="Count (log scale)", scale=alt.Scale(type="symlog"), axis=counts),
            y2=alt.datum(0),
            tooltip=[
                alt.Tooltip("left:Q", title="From", format=".3g"),
                alt.Tooltip("right:Q", title="To", format=".3g"),
                alt.Tooltip("count:Q", title="Count", format=","),
            ],
        )
        .properties(
            title=f"{network.capitalize()} {kind}",
            description=f"Histogram of the {network}'s {kind} after one epoch, counts on a log scale.",
            height=height,
        )
    )


def heading(text: str, subtitle: str = "") -> alt.Title:
    """A chart's title, with a quieter line under it."""
    return alt.Title(text, subtitle=subtitle, subtitleFontSize=12, subtitlePadding=4)


def legend() -> alt.Legend:
    """Above the chart, its symbols strong enough to be told apart."""
    return alt.Legend(
        orient="top", direction="horizontal", offset=0, labelLimit=260, symbolOpacity=1, symbolStrokeWidth=3
    )


def _scale(names: dict[str, str], *colors: str) -> alt.Scale:
    return alt.Scale(domain=list(names.values()), range=list(colors))
