"""What flows add to the page of a rollout: tabs, main scores and texts, and the tab Speed and
literature.

That tab shows training times: published, measured here, and estimated for a TPU.
"""

from __future__ import annotations

import contextlib
import json
import math

import pandas as pd
import streamlit as st

from dashboard import plots, run_selection, tables, words
from dashboard.domains.flows import charts as flow_charts
from dashboard.domains.flows import curves, film, rollouts
from dashboard.domains.flows.rollouts import rollout
from dashboard.evaluation.answers import (
    DomainPage,
    DomainTab,
    OptionChoices,
    Selection,
    number,
)
from gan_runtime.base import formats
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.base.metrics import NOT_DRAWN, Metric
from gan_runtime.commands.runtime import Runtime
from gan_runtime.domains.flows import domain as published_times
from gan_runtime.domains.flows import evaluation
from gan_runtime.domains.flows.score_metrics import BY_NAME, SCORES
from gan_runtime.engines.tiles import WAYS
from gan_runtime.records.answer import Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.queries import EvaluationRow, RunRow
from gan_runtime.store.store import Store
from gan_runtime.tpu import check
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.estimates import TOPOLOGIES

COLUMNS = ["How known", "What", "Device", "Batch", "Time"]
TOPOLOGY_NAMES = ("v2:2x2", "v3:2x2", "v4:2x2x1")  # machines like those of KIT


def draw(runtime: Runtime, selection: Selection) -> None:
    """The tab: KIT's times as a chart, and all times in one table with their sources."""
    rows = list(selection.runs.values())
    left, right = st.columns(2)
    with left:
        times = pd.DataFrame([vars(time) for time in published_times.TIMES])
        plots.steady_chart(flow_charts.training_times, times, "flow.training_times")
    estimated = predicted(runtime, rows)
    with right:
        table = pd.DataFrame(
            [*measured(runtime.store, rows), *estimated, *published()], columns=COLUMNS
        )
        tables.show(table, hide_index=True, key="flow.training", height=340)
    lacking = "" if estimated else f" {rollouts.NOT_ESTIMATED}"
    st.caption(
        f"Dashed: {published_times.SOURCE}. {published_times.SETTING}"
        f" {rollouts.OTHER_TIMES}{lacking}"
    )


def published() -> list[list[str]]:
    """A row for each published time."""
    return [
        [
            rollouts.ELSEWHERE,
            "KIT, 45 epochs",
            time.device,
            str(time.batch_size),
            f"{formats.count(time.seconds)} s",
        ]
        for time in published_times.TIMES
    ]


def measured(store: Store, rows: list[RunRow]) -> list[list[str]]:
    """A row for each run: the median time of its epochs."""
    times = queries.epoch_times(store, [row.run_id for row in rows])
    medians, names = times.groupby("run_id")["seconds"].median(), run_selection.unique_names(rows)
    return [
        [
            rollouts.HERE,
            f"{names[row.run_id]}, an epoch",
            _device(row),
            str(row.batch_size_global),
            formats.timing(float(medians[row.run_id])),
        ]
        for row in rows
        if row.run_id in medians.index
    ]


def _device(row: RunRow) -> str:
    replicas = row.replicas * row.workers
    return (
        row.accelerator.upper()
        if replicas == 1
        else f"{row.accelerator.upper()}, {formats.quantity(replicas, 'replica')}"
    )


def predicted(runtime: Runtime, rows: list[RunRow]) -> list[list[str]]:
    """A row for each run and TPU with a compile check: the estimated time of an epoch.

    None for runs whose batch no TPU can share.
    """
    rows_of_table, names = [], run_selection.unique_names(rows)
    for row in rows:
        for name in TOPOLOGY_NAMES:
            with contextlib.suppress(GanRuntimeError):
                plan = planning.make(json.loads(row.spec), name, sweep=False, home=runtime.home)
                answer = check.newest_progress(runtime.home, plan).first
                if answer is not None and answer.compiled:
                    seconds = answer.epoch_s(
                        plan.steps_per_epoch(answer.point), plan.spec.steps_per_loop
                    )
                    chip = TOPOLOGIES[name].chip.title
                    batch = str(answer.point.batch_size_global)
                    label = f"{names[row.run_id]}, an epoch"
                    rows_of_table.append(
                        [rollouts.ESTIMATED, label, chip, batch, formats.timing(seconds)]
                    )
    return rows_of_table


_HORIZONS = ("horizon", "horizon_replay")


def _choices(home: Home, run: RunDir) -> dict[str, OptionChoices]:
    """The choices of the form: held-out flows by title, methods, and the limits of steps and
    overlap for this run.
    """
    films = [film for film in evaluation.trajectories(home, run) if film.reynolds is not None]
    tile = evaluation.tile_of(run)
    choices = {
        "ways": OptionChoices(
            {way: words.capitalized(rollouts.WAYS[way]) for way in WAYS}, several=True
        ),
        "cores": OptionChoices({cores: str(cores) for cores in (1, 2, 4, 8)}),
        "blend": OptionChoices({"none": "Mean", "hann": "Hann"}),
    }
    if films:
        choices["trajectory"] = OptionChoices({film.number: film.title for film in films})
        choices["steps"] = OptionChoices(most=max(film.steps for film in films))
    if tile is not None:
        choices["overlap"] = OptionChoices(most=tile - 1)
    return choices


def _read(score: Score) -> Score:
    """A stored score for the page: its reference becomes the named baseline; the true flow's number
    becomes the floor.
    """
    baselines, declared_score = dict(score.baselines), BY_NAME.get(score.name)
    reference = baselines.pop("reference", math.nan)
    if declared_score is not None and declared_score.reference == "truth":
        return score.model_copy(update={"floor": reference, "baselines": baselines})
    references = (
        {declared_score.reference: reference}
        if declared_score is not None and declared_score.reference
        else {}
    )
    return score.model_copy(update={"baselines": {**baselines, **references}})


def _usual(rows: list[EvaluationRow]) -> list[EvaluationRow]:
    """The answer shown first: of the newest rollout the map-reduce method, else the newest."""
    newest = rollout(rows[0]).iteration
    ways = [row for row in rows if rollout(row).iteration == newest]
    return [next((row for row in ways if rollout(row).way == "map_reduce"), rows[0])]


def _value(metric: Metric, score: Score, row: EvaluationRow) -> str:
    """A horizon of all steps is a lower bound."""
    beyond = metric.name in _HORIZONS and score.value >= rollout(row).steps
    return f"{'≥ ' if beyond else ''}{number(metric, score.value, score.error)}"


METRICS = tuple(
    Metric(score.name, score.title, score.axis, NOT_DRAWN, format=score.format, better=score.better)
    for score in SCORES
    if score.name != "probe"
)
PAGE = DomainPage(
    about=rollouts.parts,
    read=_read,
    usual=_usual,
    tabs=(
        DomainTab("Film", film.draw),
        DomainTab("Errors", curves.draw_errors),
        DomainTab("Wake", curves.draw_wake),
        DomainTab("Time", curves.draw_times),
    ),
    scores=METRICS,
    headline=("rmse_period", "spectrum", "divergence", "strouhal_error", "ms_frame"),
    over_epochs=("rmse_period", "spectrum", "strouhal_error"),
    real="the true flow",
    floor_title="True flow",
    floor_help="The same number for the true flow.",
    subject=rollouts.subject,
    texts={score.name: score.text for score in SCORES}
    | {
        name: f"{score.text} {rollouts.HORIZON_HELP}"
        for score in SCORES
        if (name := score.name) in _HORIZONS
    },
    baselines={"replay": "replay", "persistence": "copied frame", "solver": "solver"},
    value_words=_value,
    literature=draw,
    choices=_choices,
    no_answer=rollouts.NO_ROLLOUT,
    best_rule="By the root mean square error over the first shedding period",
)
