"""Charts: a DataFrame in, an altair Chart out. No Streamlit here.

The specs are constant: nothing of the data stands in them, so a live update only swaps the rows and keeps the place. A zoom
outlives new rows only where the page listens to it (`live_view`).
"""

from __future__ import annotations

from typing import cast

import altair as alt
import pandas as pd

from dashboard import palette

NETWORK_NAMES = {"loss_generator": "Generator", "loss_discriminator": "Discriminator"}
SCORE_NAMES = {"d_real": "Real images", "d_fake": "Generated images"}
SMOOTHED_BUCKETS = 9
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


def loss_curves(frame: pd.DataFrame, height: int = 300) -> alt.LayerChart:
    """Both losses of one run over its steps: raw faint, smoothed bold. `frame` as `queries.curves` gives it."""
    named = frame.assign(network=frame["metric"].map(NETWORK_NAMES))
    color = alt.Color(
        "network:N", title=None, legend=legend(), scale=_scale(NETWORK_NAMES, palette.GENERATOR, palette.DISCRIMINATOR)
    )
    return _curves(named, "network", color, "Step", "Loss (nats)", "Generator and discriminator loss", height)


def score_curves(frame: pd.DataFrame, height: int = 260) -> alt.LayerChart:
    """D's mean belief that real and generated images are real, over the steps of one run."""
    named = frame.assign(images=frame["metric"].map(SCORE_NAMES))
    color = alt.Color("images:N", title=None, legend=legend(), scale=_scale(SCORE_NAMES, palette.REAL, palette.GENERATOR))
    domain = alt.Scale(domain=[0, 1])
    return _curves(named, "images", color, "Step", "D's score (1 = real)", "Can the discriminator tell?", height, domain)


def _curves(
    frame: pd.DataFrame,
    series: str,
    color: alt.Color,
    x_title: str,
    y_title: str,
    title: str,
    height: int,
    y_scale: alt.Scale | None = None,
) -> alt.LayerChart:
    base = alt.Chart(frame).encode(
        x=alt.X("x:Q", title=x_title, axis=alt.Axis(tickMinStep=1, grid=False), scale=alt.Scale(zero=False, nice=False)),
        color=color,
    )
    y = alt.Y("mean:Q", title=y_title, scale=y_scale or alt.Scale(zero=False))
    smooth = base.transform_window(
        smoothed="mean(mean)", frame=[-SMOOTHED_BUCKETS + 1, 0], groupby=[series], sort=[alt.SortField("x")]
    )
    tooltip = [
        alt.Tooltip(f"{series}:N", title=series.capitalize()),
        alt.Tooltip("step:Q", title="Step", format=",d"),
        alt.Tooltip("epoch:Q", title="Epoch", format="d"),
        alt.Tooltip("mean:Q", title="Value", format=".3f"),
    ]
    band = base.mark_area(opacity=0.12, line=False).encode(y=alt.Y("low:Q", title=y_title), y2="high:Q")
    raw = base.mark_line(opacity=0.35, strokeWidth=1).encode(y=y)
    bold = smooth.mark_line(strokeWidth=2.5).encode(y=alt.Y("smoothed:Q", title=y_title))
    reader = base.mark_circle(size=90, opacity=0).encode(y=y, tooltip=tooltip)
    zoom = alt.selection_interval(bind="scales", encodings=["x"], name="zoom")
    layers = alt.layer(band, raw, bold, reader.add_params(zoom))
    return cast(alt.LayerChart, layers.properties(title=title, height=height, usermeta={"embedOptions": {"renderer": "svg"}}))


def epoch_bars(frame: pd.DataFrame, height: int = 260) -> alt.Chart:
    """Training seconds of each epoch of one run. `frame` as `queries.epoch_times` gives it."""
    return (
        alt.Chart(frame)
        .transform_calculate(begin="datum.epoch - 0.4", end="datum.epoch + 0.4")
        .mark_bar(color=palette.NEUTRAL)
        .encode(
            x=alt.X("begin:Q", title="Epoch", axis=alt.Axis(tickMinStep=1, grid=False, format="d"), scale=alt.Scale(zero=False)),
            x2="end:Q",
            y=alt.Y("seconds:Q", title="Training time (s)"),
            y2=alt.datum(0),
            tooltip=[
                alt.Tooltip("epoch:Q", title="Epoch", format="d"),
                alt.Tooltip("seconds:Q", title="Seconds", format=".2f"),
                alt.Tooltip("images_per_s:Q", title="Images/s", format=",.0f"),
            ],
        )
        .properties(title="How long does an epoch take?", height=height)
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
            color=alt.Color("part:N", title=None, legend=legend(), scale=_scale(parts, palette.NEUTRAL, palette.WAITING)),
            order=alt.Order("part:N"),
            tooltip=[
                alt.Tooltip("worker:N", title="Worker"),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("milliseconds:Q", title="Milliseconds", format=".1f"),
                alt.Tooltip("wait_share:Q", title="Share waited", format=".0%"),
            ],
        )
        .properties(title="Who waits for whom?", height=height)
    )


def step_profile(frame: pd.DataFrame, height: int = 270) -> alt.Chart:
    """Where the time of a training step goes, one bar a network. `frame` as `queries.profile` gives it."""
    networks = frame["network"].str.capitalize().replace("", "Neither")
    named = frame.assign(
        row=networks, work=frame["category"].map(WORK_NAMES), order=frame["category"].map(list(WORK_NAMES).index)
    )
    legend = alt.Legend(orient="top", columns=4, offset=0, labelLimit=260, symbolOpacity=1)
    colors = alt.Scale(domain=list(WORK_NAMES.values()), range=[palette.WORK[name] for name in WORK_NAMES])
    return (
        alt.Chart(named)
        .mark_bar()
        .encode(
            x=alt.X(
                "sum(share):Q", title="Share of a step's time", stack="zero", axis=alt.Axis(format="%", grid=False, tickCount=6)
            ),
            y=alt.Y("row:N", title=None, sort=["Generator", "Discriminator", "Neither"], axis=alt.Axis(labelLimit=160)),
            color=alt.Color("work:N", title=None, legend=legend, scale=colors),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("row:N", title="Network"),
                alt.Tooltip("work:N", title="Work"),
                alt.Tooltip("share:Q", title="Share", format=".1%"),
                alt.Tooltip("seconds_per_step:Q", title="Seconds per step", format=".4f"),
            ],
        )
        .properties(title="Where does a step's time go?", height=height)
    )


def score_histogram(frame: pd.DataFrame, height: int = 260) -> alt.Chart:
    """D's scores of real and generated images at one epoch. `frame` as `queries.histogram` gives it."""
    names = {"score/real": "Real images", "score/fake": "Generated images"}
    color = alt.Color("images:N", title=None, legend=legend(), scale=_scale(names, palette.REAL, palette.GENERATOR))
    return (
        alt.Chart(frame.assign(images=frame["name"].map(names)))
        .mark_bar(opacity=0.65, binSpacing=0)
        .encode(
            x=alt.X("left:Q", title="D's score (1 = real)", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(grid=False)),
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
        .properties(title="Where do the scores lie?", height=height)
    )


def value_histogram(frame: pd.DataFrame, kind: str, height: int = 180) -> alt.Chart:
    """Weights or gradients of one network at one epoch, on a symmetric log scale of counts so that tails show."""
    network = "generator" if str(frame["name"].iloc[0]).endswith("generator") else "discriminator"
    color = palette.GENERATOR if network == "generator" else palette.DISCRIMINATOR
    return (
        alt.Chart(frame)
        .mark_bar(color=color, binSpacing=0)
        .encode(
            x=alt.X("left:Q", title=kind.capitalize(), axis=alt.Axis(grid=False, format="~g")),
            x2="right:Q",
            y=alt.Y("count:Q", title="Count", scale=alt.Scale(type="symlog"), axis=alt.Axis(format="~s", tickCount=4)),
            y2=alt.datum(0),
            tooltip=[
                alt.Tooltip("left:Q", title="From", format=".3g"),
                alt.Tooltip("right:Q", title="To", format=".3g"),
                alt.Tooltip("count:Q", title="Count", format=","),
            ],
        )
        .properties(title=f"{network.capitalize()} {kind}", height=height)
    )


def heading(text: str, subtitle: str = "") -> alt.Title:
    """A chart's title, with a quieter line under it."""
    return alt.Title(text, subtitle=subtitle, subtitleColor=palette.NEUTRAL, subtitleFontSize=12, subtitlePadding=4)


def legend() -> alt.Legend:
    """Above the chart, its symbols strong enough to be told apart."""
    return alt.Legend(orient="top", direction="horizontal", offset=0, labelLimit=260, symbolOpacity=1, symbolStrokeWidth=3)


def _scale(names: dict[str, str], *colors: str) -> alt.Scale:
    return alt.Scale(domain=list(names.values()), range=list(colors))
