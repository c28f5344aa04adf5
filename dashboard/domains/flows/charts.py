"""Charts of rollouts: numbers by step, spectra, time by stage, published training times.

A frame in, an Altair chart out.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from dashboard.charts import heading, ink, layered, legend, scale_of

# Columns of a legend, and pixels of its longest name, in a chart of a half or a third of the page.
NAMES, NARROW = (2, 190), (2, 110)
FLOW, COPIED, REPLAYED = "Flow", "First frame, copied", "Nearest training film, replayed"
DASHES = {FLOW: [1, 0], COPIED: [5, 4], REPLAYED: [2, 2]}
REPLAY_COLOR = "#8C6D31"  # no run and no stage has it
SOLVER = "Solver"
# Stages of an iteration in order, in colors with no other meaning on the page.
STAGE_COLORS = (
    "#999933",
    "#56B4E9",
    "#CC79A7",
    "#AA4499",
    "#009E73",
    "#E69F00",
    "#7C8798",
    "#882255",
)
DEVICES = ("#6B7280", "#E69F00", "#56B4E9", "#009E73")
WORD_PIXELS = 13  # from the label of one horizon to the next below it
BAR, AROUND = 50, 215  # pixels: a bar, and the space around the bars


def by_step(
    rows: pd.DataFrame,
    title: str,
    axis: str,
    colors: dict[str, str],
    horizons: dict[str, float] | None = None,
    is_narrow: bool = False,
    height: int = 280,
) -> alt.LayerChart:
    """A number of each series over the steps of a rollout, with a vertical line at each horizon,
    where a prediction gets worse than its baseline.

    `rows`: series, step, value; `FLOW`, `COPIED` and `REPLAYED` are series too. `horizons`: series
    → step. `is_narrow`: a third of the page wide.
    """
    color = alt.Color(
        "series:N",
        title=None,
        legend=legend(*(NARROW if is_narrow else NAMES), has_dashes=True),
        scale=scale_of(colors),
    )
    base = alt.Chart().encode(x=_step_axis(), y=_value_axis(axis), color=color)
    tooltip = [
        alt.Tooltip("series:N", title="Series"),
        alt.Tooltip("step:Q", title="Step", format="d"),
        alt.Tooltip("value:Q", title=title, format=".3~g"),
    ]
    lines = base.mark_line(strokeWidth=2).encode(strokeDash=_dashes(colors))
    reader = base.mark_circle(size=70, opacity=0).encode(tooltip=tooltip)
    middle = rows["step"].max() / 2.0
    layers = (*_horizons(horizons or {}, middle, color), lines, reader)
    description = (
        f"{title.rstrip('?')} over the steps of a rollout, a line for each series. A vertical line"
        " marks where a prediction gets worse than its baseline."
    )
    return layered(rows, *layers, title=heading(title), description=description, height=height)


def _step_axis() -> alt.X:
    scale, axis = alt.Scale(zero=False, nice=False), alt.Axis(grid=False, format="d", tickMinStep=1)
    return alt.X("step:Q", title="Step", scale=scale, axis=axis)


def _value_axis(title: str) -> alt.Y:
    axis = alt.Axis(tickCount=5, format=".3~g")
    return alt.Y("value:Q", title=title or None, scale=alt.Scale(zero=False), axis=axis)


def _dashes(colors: dict[str, str]) -> alt.StrokeDash:
    dashes = alt.Scale(domain=list(colors), range=[DASHES.get(name, [1, 0]) for name in colors])
    return alt.StrokeDash("series:N", legend=None, scale=dashes)


def _horizons(horizons: dict[str, float], middle: float, color: alt.Color) -> list[alt.Chart]:
    """A vertical line at each horizon, with a label on the side of the chart's middle, one below
    the other.
    """
    if not horizons:
        return []
    frame = pd.DataFrame(
        [
            {"at": step, "series": name, "word": f"horizon {step:.0f}"}
            for name, step in horizons.items()
        ]
    )
    base, readable = alt.Chart(frame).encode(x=alt.X("at:Q"), color=color), alt.value(ink())
    layers = [base.mark_rule(strokeWidth=1.5, strokeDash=[2, 2])]
    for place, step in enumerate(frame["at"]):
        side, shift = ("left", 4) if step < middle else ("right", -4)
        words = alt.Chart(frame[place : place + 1]).mark_text(
            align=side,  # type: ignore[arg-type]
            baseline="top",
            dx=shift,
            fontSize=11,
        )
        y = alt.YValue(2 + WORD_PIXELS * place)  # type: ignore[no-untyped-call]
        layers.append(words.encode(x=alt.X("at:Q"), color=readable, text=alt.Text("word:N"), y=y))
    return layers


def spectrum(
    rows: pd.DataFrame, axis: str, colors: dict[str, str], height: int = 280
) -> alt.LayerChart:
    """The frequencies in the probe's signal.

    `rows`: series, frequency, share (of the highest amplitude).
    """
    base = alt.Chart().encode(
        x=alt.X("frequency:Q", title=axis, axis=alt.Axis(grid=False, tickCount=6, format=".2~f")),
        y=alt.Y(
            "share:Q", title="Amplitude (of the highest)", axis=alt.Axis(format="%", tickCount=5)
        ),
        color=alt.Color("series:N", title=None, legend=legend(*NAMES), scale=scale_of(colors)),
    )
    tooltip = [
        alt.Tooltip("series:N", title="Series"),
        alt.Tooltip("frequency:Q", title=axis, format=".3f"),
        alt.Tooltip("share:Q", title="Amplitude", format=".1%"),
    ]
    lines = base.mark_line(strokeWidth=2)
    reader = base.mark_circle(size=70, opacity=0).encode(tooltip=tooltip)
    title = "Spectrum at the probe"
    description = (
        "Amplitude of each frequency at the probe, as a share of the highest. Peaks at equal places"
        " mean that vortices shed equally often."
    )
    return layered(
        rows, lines, reader, title=heading(title), description=description, height=height
    )


def stages(
    rows: pd.DataFrame, title: str, axis: str, solver: float | None = None
) -> alt.LayerChart:
    """A bar of time for each method, divided into stages, with its name above it.

    `rows`: bar, stage, place (of the stage), amount; `solver`: the solver's time, a line across.
    """
    order = list(dict.fromkeys(rows["bar"]))
    ordered = rows.sort_values("place")
    places: dict[str, int] = dict(zip(ordered["stage"], ordered["place"], strict=True))
    colors = {stage: STAGE_COLORS[place] for stage, place in places.items()}
    above = legend(2, 110)
    above["offset"] = 18  # room for the solver's name
    y = alt.Y("bar:N", title=None, sort=order, axis=None)
    bars = (
        alt.Chart()
        .mark_bar(size=20, yOffset=9)
        .encode(
            x=alt.X(
                "sum(amount):Q", title=axis, stack="zero", axis=alt.Axis(grid=False, tickCount=5)
            ),
            y=y,
            color=alt.Color("stage:N", title=None, legend=above, scale=scale_of(colors)),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("bar:N", title="Method"),
                alt.Tooltip("stage:N", title="Stage"),
                alt.Tooltip("amount:Q", title=axis, format=".3~g"),
            ],
        )
    )
    names = alt.Chart(pd.DataFrame({"bar": order})).mark_text(align="left", dy=-13, color=ink())
    left = alt.XValue(0)  # type: ignore[no-untyped-call]
    layers: list[alt.Chart] = [bars, names.encode(x=left, y=y, text=alt.Text("bar:N"))]
    if solver is not None:
        layers += _solver(solver, axis)
    description = (
        "A bar for each prediction method, divided into its stages. The dashed line is the time of"
        " the solver."
    )
    height = AROUND + BAR * len(order)
    return layered(rows, *layers, title=heading(title), description=description, height=height)


def _solver(amount: float, axis: str) -> list[alt.Chart]:
    """A vertical line with its label."""
    base = alt.Chart(pd.DataFrame([{"amount": amount, "who": SOLVER}])).encode(
        x=alt.X("amount:Q"),
        tooltip=[alt.Tooltip("who:N", title="Method"), alt.Tooltip("amount:Q", title=axis)],
    )
    line = base.mark_rule(strokeWidth=2, strokeDash=[5, 4], color=ink())
    top = alt.YValue(-2)  # type: ignore[no-untyped-call]
    word = base.mark_text(align="left", baseline="bottom", dx=4, color=ink()).encode(
        text=alt.Text("who:N"), y=top
    )
    return [line, word]


def training_times(rows: pd.DataFrame, height: int = 320) -> alt.LayerChart:
    """Published training times over the batch size.

    `rows`: device, batch_size, seconds. Lines are dashed, as all published numbers.
    """
    devices = list(dict.fromkeys(rows["device"]))
    batches: dict[str, Any] = {
        "values": sorted(set(rows["batch_size"])),
        "grid": False,
        "format": "d",
    }
    base = alt.Chart().encode(
        x=alt.X(
            "batch_size:Q",
            title="Batch",
            scale=alt.Scale(type="log", base=2),
            axis=alt.Axis(**batches),
        ),
        y=alt.Y("seconds:Q", title="Training time (s)", axis=alt.Axis(tickCount=5)),
        color=alt.Color(
            "device:N",
            title=None,
            legend=legend(*NAMES),
            scale=scale_of(dict(zip(devices, DEVICES, strict=False))),
        ),
    )
    tooltip = [
        alt.Tooltip("device:N", title="Device"),
        alt.Tooltip("batch_size:Q", title="Batch", format="d"),
        alt.Tooltip("seconds:Q", title="Seconds", format=",.0f"),
    ]
    lines = base.mark_line(strokeWidth=2, strokeDash=[5, 4])
    points = base.mark_circle(size=60, opacity=1).encode(tooltip=tooltip)
    title = "Training time by batch, as published"
    description = (
        "Published training times over the batch size, a line for each device. They come from"
        " other machines: compare shapes, not seconds."
    )
    return layered(
        rows, lines, points, title=heading(title), description=description, height=height
    )
