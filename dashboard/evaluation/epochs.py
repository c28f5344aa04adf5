"""The best epoch: scores over the measured epochs, and a button that makes an epoch the best
checkpoint.
"""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from dashboard import actions, plots, widgets, words
from dashboard.evaluation import charts as evaluation_charts
from dashboard.evaluation.answers import Selection, bar, bar_words, identity, number
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog import declarations
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import EvaluationRow, RunRow
from gan_runtime.training import inference

ACROSS = 3
ONE_EPOCH = (
    "Only one epoch of these runs is measured, so there is no best one. With"
    " Weight snapshots on, a run stores its weights after each epoch, and Measure again can"
    " measure each."
)
IN_TRAINING = "Training chooses the best checkpoint on fewer rows."
BEST_HELP = (
    "The weights of that epoch become the best checkpoint, for images and evaluations. Stored"
    " weights have half precision. If training continues, the run chooses its best checkpoint"
    " again."
)


def draw(runtime: Runtime, selection: Selection) -> None:
    """The tab `Epochs`."""
    frame = over_epochs(selection)
    if frame.empty or frame["epoch"].nunique() < 2:
        st.info(ONE_EPOCH)
    else:
        _charts(selection, frame)
    keep_as_best(runtime, list(selection.runs.values()))


def over_epochs(selection: Selection) -> pd.DataFrame:
    """series, score, epoch, value, low, high, floor: for each run, the answers that differ from
    its shown answer only in the epoch.
    """
    rows = []
    for name, answer in _of_each_run(selection).items():
        for row in selection.stored:
            if row.run_id != answer.run_id or selection.page.about(row) != selection.page.about(
                answer
            ):
                continue
            rows += [
                {
                    "series": name,
                    "score": score.name,
                    "epoch": row.epoch,
                    "value": score.value,
                    **dict(zip(("low", "high"), bar(score), strict=True)),
                    "floor": score.floor,
                }
                for score in selection.scores[identity(row)].values()
            ]
    frame = pd.DataFrame(
        rows, columns=["series", "score", "epoch", "value", "low", "high", "floor"]
    )
    return frame.drop_duplicates(["series", "score", "epoch"]).sort_values(["series", "epoch"])


def _of_each_run(selection: Selection) -> dict[str, EvaluationRow]:
    """The first answer of each run, by name."""
    first: dict[str, tuple[str, EvaluationRow]] = {}
    for name, row in selection.answers.items():
        first.setdefault(row.run_id, (name, row))
    return dict(first.values())


def _charts(selection: Selection, frame: pd.DataFrame) -> None:
    scores = set(frame["score"])
    usual = selection.page.among(selection.page.over_epochs, scores)
    metrics = {
        metric.name: metric
        for metric in selection.page.scores
        if metric.name in scores and metric.better
    }
    usual = [name for name in usual if name in metrics]
    names = st.multiselect(
        "Scores",
        list(metrics),
        default=usual,
        format_func=lambda name: metrics[name].title,
        key=f"evaluation.over_epochs.{selection.evaluation.name}",
        max_selections=9,
    )
    colors = {
        name: color for name, color in selection.colors.items() if name in set(frame["series"])
    }
    for begin in range(0, len(names), ACROSS):
        for column, name in zip(st.columns(ACROSS), names[begin : begin + ACROSS], strict=False):
            with column:
                points = frame[frame["score"] == name]
                draw = partial(evaluation_charts.over_epochs, metric=metrics[name], colors=colors)
                plots.steady_chart(draw, points, f"evaluation.epochs.{name}")
    st.caption(f"{best_words(selection, frame)} {_bars(selection)}".strip())


def _bars(selection: Selection) -> str:
    """What the marks of the charts are, and how training chooses its best epoch, if it does."""
    scores = selection.scores_of(selection.first[0]).values()
    marks = f"Bars: {bar_words(scores)}. Dashed: the score of {selection.page.real}."
    runs = selection.runs.values()
    chooses = any(declarations.of(row.workload).of_role("quality") for row in runs)
    return f"{marks} {IN_TRAINING}" if chooses else marks


def best_words(selection: Selection, frame: pd.DataFrame) -> str:
    """The best epoch of each run by the first score drawn over epochs, in a sentence; "" if it is
    not stored.
    """
    names = selection.page.among(selection.page.over_epochs[:1], set(frame["score"]))
    if not names:
        return ""
    metric = selection.metric(names[0])
    errors = frame[frame["score"] == metric.name].dropna(subset=["value"])
    if errors.empty:
        return ""
    by_series = errors.groupby("series", sort=False)["value"]
    best = errors.loc[by_series.idxmax() if metric.better == "higher" else by_series.idxmin()]
    epochs = ", ".join(
        f"epoch {row['epoch']} of {words.plain(row['series'])} ({number(metric, row['value'])})"
        for row in best.to_dict("records")
    )
    return f"{selection.page.best_rule}, the best of the measured epochs is {epochs}."


def keep_as_best(runtime: Runtime, rows: list[RunRow]) -> None:
    """One row: run, score, button.

    Draws nothing if no run has two measured epochs with stored weights here.
    """
    offered = {
        widgets.title(row): (row, best) for row in rows if (best := _best_epochs(runtime, row))
    }
    if not offered:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = next(iter(offered))
        if len(offered) > 1:
            name = st.selectbox("Run", list(offered), key="evaluation.best.run", width=220)
        row, best = offered[name]
        titles = {metric.name: _title(metric) for metric in _qualities(row) if metric.name in best}
        by = st.selectbox(
            "Best checkpoint by",
            list(titles),
            format_func=lambda name: f"{titles[name]}: epoch {best[name][0]}",
            key=f"evaluation.best.{row.run_id}",
            help=BEST_HELP,
            width=420,
        )
        epoch = best[by][0]
        pressed = actions.button(
            f"Keep epoch {epoch} as the best", key="evaluation.best.keep", icon=":material/star:"
        )
    if pressed and actions.succeeded(
        partial(_keep, runtime, row, epoch, f"{titles[by]} ({best[by][1]:.4g})")
    ):
        runtime.refresh()
        st.toast(
            f"The best checkpoint of {words.plain(widgets.title(row))} is now that of epoch"
            f" {epoch}."
        )


def _keep(runtime: Runtime, row: RunRow, epoch: int, reason: str) -> None:
    runtime.commands.keep_best(row.run_id, epoch, reason)


def _best_epochs(runtime: Runtime, row: RunRow) -> dict[str, tuple[int, float]]:
    """By metric: the best epoch and its value; empty for a run that is not here or is training."""
    try:
        epochs = inference.stored_epochs(runtime.home.run_dir(row.run_id))
    except GanRuntimeError:
        return {}
    if row.is_live or not epochs:
        return {}
    return queries.best_epochs(runtime.store, row.run_id, _qualities(row), epochs)


def _qualities(row: RunRow) -> list[Metric]:
    """Scores of checkpoints first: they use more rows than those of training."""
    return sorted(
        declarations.of(row.workload).qualities, key=lambda metric: metric.role == "quality"
    )


def _title(metric: Metric) -> str:
    return f"{metric.title}, while training" if metric.role == "quality" else metric.title
