"""Which epoch is the best: scores over the epochs that were measured, and a button that keeps
the best one.
"""

from __future__ import annotations

import math
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import actions, plots, widgets, words
from dashboard.evaluation import charts as evaluation_charts
from dashboard.evaluation.answers import Shown, identity, number
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog import declared
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import EvaluationRow, RunRow
from gan_runtime.training import trained

ACROSS = 3
ONE_EPOCH = (
    "Only one epoch of these runs is measured, so none can be called the best. A run that keeps its"
    " weights after each epoch (weight_snapshots=yes) can be measured at any of them: see Measure"
    " again."
)
DASHED = (
    "Dashed: the floor, what held-out rows have among themselves. The best checkpoint is chosen"
    " while training, on fewer rows."
)
BEST_HELP = (
    "The networks with the weights of that epoch become the run's best checkpoint, which images and"
    " evaluations can be asked of. They are of half precision, as snapshots keep them. A run that"
    " goes on chooses its best checkpoint anew as it trains."
)


def draw(runtime: Runtime, shown: Shown) -> None:
    """The tab `Epochs`."""
    frame = over_epochs(shown)
    if frame.empty or frame["epoch"].nunique() < 2:
        st.info(ONE_EPOCH)
    else:
        _charts(shown, frame)
    keep_as_best(runtime, list(shown.runs.values()))


def over_epochs(shown: Shown) -> pd.DataFrame:
    """series, score, epoch, value, low, high, floor: of each run the answers that are about
    the same as its answer that is shown.
    """
    rows = []
    for name, answer in _of_each_run(shown).items():
        for row in shown.stored:
            if row.run_id != answer.run_id or shown.page.about(row) != shown.page.about(answer):
                continue
            rows += [
                {
                    "series": name,
                    "score": score.name,
                    "epoch": row.epoch,
                    "value": score.value,
                    "low": score.value - (0.0 if math.isnan(score.error) else score.error),
                    "high": score.value + (0.0 if math.isnan(score.error) else score.error),
                    "floor": score.floor,
                }
                for score in shown.scores[identity(row)].values()
            ]
    frame = pd.DataFrame(
        rows, columns=["series", "score", "epoch", "value", "low", "high", "floor"]
    )
    return frame.drop_duplicates(["series", "score", "epoch"]).sort_values(["series", "epoch"])


def _of_each_run(shown: Shown) -> dict[str, EvaluationRow]:
    """The first answer of each run, by its name."""
    first: dict[str, tuple[str, EvaluationRow]] = {}
    for name, row in shown.answers.items():
        first.setdefault(row.run_id, (name, row))
    return dict(first.values())


def _charts(shown: Shown, frame: pd.DataFrame) -> None:
    scores = set(frame["score"])
    wanted = [
        name if name in scores else shown.page.substitutes.get(name, "")
        for name in shown.page.over_epochs
    ]
    known = {
        metric.name: metric
        for metric in shown.page.scores
        if metric.name in scores and metric.better
    }
    usual = [name for name in wanted if name in known]
    picked = st.multiselect(
        "Scores",
        list(known),
        default=usual,
        format_func=lambda name: known[name].title,
        key=f"evaluation.over_epochs.{shown.evaluation.name}",
        max_selections=9,
    )
    colors = {name: color for name, color in shown.colors.items() if name in set(frame["series"])}
    for begin in range(0, len(picked), ACROSS):
        for column, name in zip(st.columns(ACROSS), picked[begin : begin + ACROSS], strict=False):
            with column:
                own = frame[frame["score"] == name]
                draw = partial(evaluation_charts.over_epochs, metric=known[name], colors=colors)
                plots.steady_chart(draw, own, f"evaluation.epochs.{name}")
    sentence = best_words(shown, frame)
    st.caption(f"{sentence} {DASHED}".strip())


def best_words(shown: Shown, frame: pd.DataFrame) -> str:
    """The best epoch of each run by the first score that is drawn over epochs, in a sentence;
    "" where it is not stored.
    """
    metric = shown.metric(shown.page.over_epochs[0])
    errors = frame[frame["score"] == metric.name].dropna(subset=["value"])
    if errors.empty:
        return ""
    by_series = errors.groupby("series", sort=False)["value"]
    best = errors.loc[by_series.idxmax() if metric.better == "higher" else by_series.idxmin()]
    told = ", ".join(
        f"epoch {row['epoch']} of {words.plain(row['series'])} ({number(metric, row['value'])})"
        for row in best.to_dict("records")
    )
    return f"{shown.page.best_rule} the best of the measured epochs is {told}."


def keep_as_best(runtime: Runtime, rows: list[RunRow]) -> None:
    """One row: run, score, button.

    Nothing is drawn where no run has two measured epochs whose weights are kept here.
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
            f"The best checkpoint of {words.plain(widgets.title(row))} is that of epoch {epoch}"
            " now."
        )


def _keep(runtime: Runtime, row: RunRow, epoch: int, reason: str) -> None:
    runtime.commands.keep_best(row.run_id, epoch, reason)


def _best_epochs(runtime: Runtime, row: RunRow) -> dict[str, tuple[int, float]]:
    """By metric: the best epoch and its value; nothing of a run that is not here, or is
    training.
    """
    try:
        epochs = trained.stored_epochs(runtime.home.run_dir(row.run_id))
    except GanRuntimeError:
        return {}
    if row.is_live or not epochs:
        return {}
    return queries.best_epochs(
        runtime.store, row.run_id, [metric.name for metric in _qualities(row)], epochs
    )


def _qualities(row: RunRow) -> list[Metric]:
    """What was measured of checkpoints first: it is of more rows than what training looks at."""
    return sorted(declared.of(row.workload).qualities, key=lambda metric: metric.role == "quality")


def _title(metric: Metric) -> str:
    return f"{metric.title}, while training" if metric.role == "quality" else metric.title
