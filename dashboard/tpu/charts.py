"""Charts of a TPU compile check and their frames: numbers in, an Altair chart out."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from dashboard import charts, option_words, palette
from dashboard.charts import layered, legend
from gan_runtime.base import formats
from gan_runtime.studies import references
from gan_runtime.studies.references import MachineEpochs
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.estimates import StepEstimate
from gan_runtime.tpu.plan import CheckPlan

PREDICTED, PUBLISHED = "Predicted here", "The paper, measured"
PARTS = ("computing", "exchange", "host overhead")


def batch_rows(plan: CheckPlan, answers: Sequence[StepEstimate], overhead_s: float) -> pd.DataFrame:
    """Time of an epoch over the batch size on all cores, relative to the smallest batch, and the
    paper's two ends.

    Columns: batch, relative, seconds (NaN for the paper, which prints none), who, label. Empty for
    fewer than two batch sizes.
    """
    same = [answer for answer in answers if answer.compiled and _cores(answer) == _cores_of(plan)]
    epoch_s = {
        answer.point.batch_size_global: _epoch_s(plan, answer, overhead_s) for answer in same
    }
    rows: list[tuple[int, float, float | None, str, str]] = []
    if len(epoch_s) > 1:
        smallest = epoch_s[min(epoch_s)]
        rows = [
            (
                batch,
                epoch_s[batch] / smallest,
                epoch_s[batch],
                PREDICTED,
                formats.timing(epoch_s[batch]),
            )
            for batch in sorted(epoch_s)
        ]
    if rows and min(epoch_s) == planning.BATCHES[0]:
        ends = (
            (planning.BATCHES[0], 1.0),
            (planning.BATCHES[-1], 1.0 - references.PAPER_TIME_SAVED),
        )
        rows += [(batch, share, None, PUBLISHED, formats.percent(share)) for batch, share in ends]
    return pd.DataFrame(rows, columns=["batch", "relative", "seconds", "who", "label"])


def device_rows(
    plan: CheckPlan, answers: Sequence[StepEstimate], overhead_s: float
) -> pd.DataFrame:
    """Seconds of an epoch over the number of cores that share the batch, by part.

    Columns: devices, part (of PARTS), seconds, total. Empty for fewer than two numbers of cores.
    """
    at = plan.point
    same = [
        answer
        for answer in answers
        if answer.compiled and _batch(answer) == (at.batch_size_global, at.precision)
    ]
    rows = [
        (answer.point.devices, part, seconds, _epoch_s(plan, answer, overhead_s))
        for answer in sorted(same, key=lambda answer: answer.point.devices)
        for part, seconds in zip(PARTS, _parts(plan, answer, overhead_s), strict=True)
    ]
    return pd.DataFrame(
        rows if len(same) > 1 else [], columns=["devices", "part", "seconds", "total"]
    )


def most_expensive(answer: StepEstimate) -> pd.DataFrame:
    """The operations with the most cycles. Columns: Layer, Kind, Cycles, Share (0 to 1)."""
    rows = [
        (
            operation.layer or "not named by the compiler",
            operation.opcode,
            operation.cycles,
            operation.cycles / answer.cycles,
        )
        for operation in answer.most_expensive
    ]
    return pd.DataFrame(rows, columns=["Layer", "Kind", "Cycles", "Share"])


def accuracy_table(epochs: Sequence[MachineEpochs]) -> pd.DataFrame:
    """For each machine: what the authors measured, and the estimates of their step and of this
    project's, in words.
    """
    rows = [
        (
            row.machine,
            formats.count(row.measured_s),
            _seconds(row.plain_s),
            "–" if row.error is None else f"{row.error:+.1%}",
            _seconds(row.own_s),
            "–" if row.times_as_fast is None else f"{row.times_as_fast:.1f}",
        )
        for row in epochs
    ]
    columns = [
        *("Machine", "Authors, measured (s/epoch)", "Authors' step, estimated (s/epoch)", "Error"),
        *("This project's step, estimated (s/epoch)", "Times as fast"),
    ]
    return pd.DataFrame(rows, columns=columns)


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else formats.count(seconds)


def real_runs(rates: pd.DataFrame, images: int) -> pd.DataFrame:
    """Measured runs on a real TPU, from `queries.rates_by_device`, in words."""
    real = rates[rates["accelerator"] == "tpu"]
    precision = [option_words.choice(precision) for precision in real["precision"]]
    table = real.assign(seconds=images / real["images_per_s"], precision=precision)[
        ["devices", "precision", "batch_size_global", "runs", "seconds"]
    ]
    return table.set_axis(["Cores", "Precision", "Batch", "Runs", "Seconds per epoch"], axis=1)


def _cores(answer: StepEstimate) -> tuple[int, str]:
    return answer.point.devices, answer.point.precision


def _cores_of(plan: CheckPlan) -> tuple[int, str]:
    return plan.point.devices, plan.point.precision


def _batch(answer: StepEstimate) -> tuple[int, str]:
    return answer.point.batch_size_global, answer.point.precision


def _epoch_s(plan: CheckPlan, answer: StepEstimate, overhead_s: float) -> float:
    return answer.epoch_s(plan.steps_per_epoch(answer.point), plan.spec.steps_per_loop, overhead_s)


def _parts(plan: CheckPlan, answer: StepEstimate, overhead_s: float) -> tuple[float, float, float]:
    steps = plan.steps_per_epoch(answer.point)
    computing, exchange = steps * answer.step_s, steps * answer.exchange_s
    return computing, exchange, _epoch_s(plan, answer, overhead_s) - computing - exchange


ROOM = 1.15  # above the highest mark, for its label


def by_batch(frame: pd.DataFrame, height: int = 300) -> alt.LayerChart:
    """Training time per epoch over the batch size, relative to the smallest batch.

    `frame`: as `batch_rows`.
    """
    who = alt.Color(
        "who:N",
        title=None,
        legend=legend(),
        scale=alt.Scale(domain=[PREDICTED, PUBLISHED], range=[palette.RUNS[0], palette.NEUTRAL]),
    )
    base = alt.Chart().encode(
        x=alt.X(
            "batch:O",
            title="Global batch (images per step)",
            axis=alt.Axis(labelAngle=0, grid=False),
        ),
        y=alt.Y(
            "relative:Q",
            title="Time of an epoch, first = 100%",
            axis=alt.Axis(format="%"),
            scale=alt.Scale(zero=True),
        ),
        color=who,
    )
    lines = base.mark_line(strokeWidth=2).encode(
        strokeDash=alt.StrokeDash(
            "who:N",
            legend=None,
            scale=alt.Scale(domain=[PREDICTED, PUBLISHED], range=[[1, 0], [5, 4]]),
        )
    )
    points = base.mark_circle(size=70).encode(
        tooltip=[
            alt.Tooltip("who:N", title="Source"),
            alt.Tooltip("batch:O", title="Batch"),
            alt.Tooltip("relative:Q", title="Of the smallest", format=".0%"),
            alt.Tooltip("seconds:Q", title="Seconds per epoch", format=".3~g"),
        ]
    )
    words = alt.value(charts.ink())
    # The paper's labels are below its line and ours above; an invisible point above all keeps both
    # off the legend.
    below = (
        base.transform_filter(alt.datum.who == PUBLISHED)
        .mark_text(dy=16, fontSize=12)
        .encode(text=alt.Text("label:N"), color=words)
    )
    above = (
        base.transform_filter(alt.datum.who == PREDICTED)
        .mark_text(dy=-12, fontSize=12)
        .encode(text=alt.Text("label:N"), color=words)
    )
    room = base.transform_calculate(relative=f"datum.relative * {ROOM}").mark_point(opacity=0)
    title = "Time of an epoch by batch size, as predicted and as published"
    description = (
        "Time of an epoch by batch size, the smallest batch at 100%. A falling line means that"
        " larger batches train faster."
    )
    layers = (lines, points, below, above, room)
    return layered(frame, *layers, title=title, description=description, height=height)


def by_devices(frame: pd.DataFrame, height: int = 300) -> alt.LayerChart:
    """Seconds per epoch over the number of cores, stacked by part.

    `frame`: as `device_rows`.
    """
    order = list(PARTS)
    bars = (
        alt.Chart()
        .transform_calculate(place=f"indexof({order}, datum.part)")
        .mark_bar(size=34)
        .encode(
            x=alt.X("devices:O", title="Cores", axis=alt.Axis(labelAngle=0, grid=False)),
            y=alt.Y("seconds:Q", title="Predicted seconds per epoch", stack=True),
            color=alt.Color(
                "part:N",
                title=None,
                legend=legend(),
                scale=alt.Scale(
                    domain=order,
                    range=[palette.RUNS[0], palette.WORK["gradient_all_reduce"], palette.WAITING],
                ),
            ),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("devices:O", title="Cores"),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("seconds:Q", title="Seconds", format=".3~g"),
                alt.Tooltip("total:Q", title="All parts", format=".3~g"),
            ],
        )
    )
    text = (
        alt.Chart()
        .mark_text(dy=-8, color=charts.ink())
        .encode(
            x=alt.X("devices:O"),
            y=alt.Y("max(total):Q"),
            text=alt.Text("max(total):Q", format=".3~g"),
        )
    )
    room = (
        alt.Chart()
        .transform_calculate(top=f"datum.total * {ROOM}")
        .mark_point(opacity=0)
        .encode(x=alt.X("devices:O"), y=alt.Y("top:Q"))
    )
    title = "Predicted seconds per epoch by number of cores"
    description = (
        "Predicted seconds of an epoch by number of cores, divided into parts. The part that does"
        " not shrink limits how many cores help."
    )
    return layered(frame, bars, text, room, title=title, description=description, height=height)
