"""The speed of devices, and the time of a training step: a bar for each network or phase of a run,
or for each of several variants. No Streamlit.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard import palette
from dashboard.charts import Rows, layered, legend, scale_of

NEITHER = "Neither"  # work of no network, or of no phase
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
HEIGHT = 270
LEAST_SHARE = 0.0005  # below it a kind of work is not named
AROUND, BAR = 130, 46  # pixels: title, legend and axis, and each bar
SECONDS = alt.Tooltip("seconds_per_step:Q", title="Seconds per step", format=".4f")


def by_network(frame: pd.DataFrame, titles: dict[str, str]) -> alt.Chart:
    """`frame`: as `queries.profile`; `titles`: of the networks by name, in their order."""
    rows = _summed(frame.assign(bar=frame["network"].map(titles).fillna(NEITHER)))
    return _bars(rows, "Network", [*titles.values(), NEITHER], SECONDS, HEIGHT)


def by_phase(frame: pd.DataFrame, phases: list[str]) -> alt.Chart:
    """`frame`: as `queries.profile`; `phases`: names in the order of the bars."""
    rows = _summed(frame.assign(bar=frame["phase"].replace("", NEITHER)))
    return _bars(rows, "Phase", [*phases, NEITHER], SECONDS, AROUND + BAR * (len(phases) + 1))


def by_variant(frame: pd.DataFrame) -> alt.Chart:
    """`frame`: as `queries.variant_profiles`."""
    order = list(dict.fromkeys(frame["variant"]))
    runs = alt.Tooltip("runs:Q", title="Runs profiled", format="d")
    rows = frame.assign(bar=frame["variant"], category=_known_work(frame))
    return _bars(rows, "Variant", order, runs, AROUND + BAR * len(order))


def totals(frame: pd.DataFrame) -> str:
    """All networks and phases together: "Forward 36.7%, Backward 61.3%, Idle 1.9%".

    `frame`: as `queries.profile`. Input and idle are named even at 0: users want to see that a step
    does not wait for input.
    """
    shares = frame["share"].groupby(_known_work(frame)).sum()
    names = (
        name
        for name in WORK_NAMES
        if shares.get(name, 0.0) >= LEAST_SHARE or name in ("input", "idle")
    )
    return ", ".join(f"{WORK_NAMES[name]} {shares.get(name, 0.0):.1%}" for name in names)


def _known_work(frame: pd.DataFrame) -> pd.Series:
    """The kind of work of each row; unknown kinds are unattributed."""
    return frame["category"].where(frame["category"].isin(list(WORK_NAMES)), "unattributed")


def _summed(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each bar and kind of work."""
    rows = frame.assign(category=_known_work(frame))
    return rows.groupby(["bar", "category"], as_index=False, sort=False)[
        ["share", "seconds_per_step"]
    ].sum()


def _bars(
    frame: pd.DataFrame, bar_title: str, order: list[str], further: alt.Tooltip, height: int
) -> alt.Chart:
    """`frame`: bar (title), category, share (0 to 1), and the field of the tooltip `further`."""
    works = list(WORK_NAMES)
    rows = frame.assign(
        work=frame["category"].map(WORK_NAMES), order=frame["category"].map(works.index)
    )
    colors = alt.Scale(
        domain=list(WORK_NAMES.values()), range=[palette.WORK[name] for name in works]
    )
    above = alt.Legend(orient="top", columns=4, offset=0, labelLimit=260, symbolOpacity=1)
    percent = alt.Axis(format="%", grid=False, tickCount=6)
    bars = alt.Chart(rows).mark_bar()
    return bars.encode(
        x=alt.X("sum(share):Q", title="Share of a step's time", stack="zero", axis=percent),
        y=alt.Y("bar:N", title=None, sort=order, axis=alt.Axis(labelLimit=160)),
        color=alt.Color("work:N", title=None, legend=above, scale=colors),
        order=alt.Order("order:Q"),
        tooltip=[
            alt.Tooltip("bar:N", title=bar_title),
            alt.Tooltip("work:N", title="Work"),
            alt.Tooltip("share:Q", title="Share", format=".1%"),
            further,
        ],
    ).properties(
        title="Where does a step's time go?",
        description=(
            f"A bar for each {bar_title.lower()}: a step's time by kind of work. The widest parts"
            " are where time can be saved."
        ),
        height=height,
    )


def speed_up(frame: pd.DataFrame, height: int = 320) -> alt.LayerChart:
    """Speed-up by number of devices, on two logarithmic axes.

    `frame`: system, detail, devices, speed_up, ours (bool).
    """
    base = alt.Chart().encode(
        x=alt.X(
            "devices:Q",
            title="Devices",
            scale=alt.Scale(type="log", base=2),
            axis=alt.Axis(grid=False, format="d"),
        ),
        y=alt.Y(
            "speed_up:Q",
            title="Times as fast as the fewest devices",
            scale=alt.Scale(type="log", base=2),
        ),
        color=alt.Color(
            "system:N", title=None, legend=legend(), scale=alt.Scale(range=list(palette.RUNS))
        ),
    )
    lines = base.mark_line(strokeWidth=2).encode(
        strokeDash=alt.condition("datum.ours", alt.value([1, 0]), alt.value([5, 4]))
    )
    points = base.mark_circle(size=60, opacity=1).encode(
        tooltip=[
            alt.Tooltip("system:N", title="System"),
            alt.Tooltip("detail:N", title="Measured with"),
            alt.Tooltip("devices:Q", title="Devices", format="d"),
            alt.Tooltip("speed_up:Q", title="Times as fast", format=".2f"),
        ]
    )
    description = (
        "How many times faster training is on more devices, both axes logarithmic. On a diagonal"
        " line, twice the devices are twice as fast."
    )
    title = "How does it scale?"
    return layered(frame, lines, points, title=title, description=description, height=height)


def epoch_bars(rows: Rows, height: int = 260) -> alt.Chart:
    """Training seconds of each epoch of one run. `rows`: as `queries.epoch_times`."""
    return (
        alt.Chart(rows)
        .transform_calculate(begin="datum.epoch - 0.4", end="datum.epoch + 0.4")
        .mark_bar(color=palette.NEUTRAL)
        .encode(
            x=alt.X(
                "begin:Q",
                title="Epoch",
                axis=alt.Axis(tickMinStep=1, grid=False, format="d"),
                scale=alt.Scale(zero=False),
            ),
            x2=alt.X2("end:Q"),
            y=alt.Y("seconds:Q", title="Training time (s)"),
            y2=alt.Y2Datum(0),
            tooltip=[
                alt.Tooltip("epoch:Q", title="Epoch", format="d"),
                alt.Tooltip("seconds:Q", title="Seconds", format=".2f"),
                alt.Tooltip("images_per_s:Q", title="Images/s", format=",.0f"),
            ],
        )
        .properties(
            title="How long does an epoch take?",
            description=(
                "Training seconds of each epoch, without images and checkpoints. The first bar of"
                " an attempt includes compiling."
            ),
            height=height,
        )
    )


def worker_bars(frame: pd.DataFrame, height: int = 160) -> alt.Chart:
    """Compute and waiting time of each worker in a step. `frame`: as `queries.worker_times`."""
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
                "part:N",
                title=None,
                legend=legend(),
                scale=scale_of(
                    dict(zip(parts.values(), (palette.NEUTRAL, palette.WAITING), strict=True))
                ),
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
            title="How long do workers wait?",
            description=(
                "Milliseconds of a step in which each worker computes, and waits for others. The"
                " one that waits least is the slowest."
            ),
            height=height,
        )
    )
