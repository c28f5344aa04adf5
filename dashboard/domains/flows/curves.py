"""The tabs Errors, Wake and Time of a rollout, drawn from stored numbers by step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import palette, plots, words
from dashboard.domains.flows import charts as flow_charts
from dashboard.domains.flows import rollouts
from dashboard.domains.flows.charts import COPIED, FLOW, REPLAYED
from dashboard.domains.flows.rollouts import (
    by_step,
    frame_times,
    is_stored_epoch,
    rollout,
    spectra,
    stages_of,
    steps_of,
    whole_times,
)
from dashboard.evaluation.answers import Selection, identity, names_of, number, unique_labels
from gan_runtime.commands.runtime import Runtime
from gan_runtime.domains.flows.fields import DIAMETER
from gan_runtime.domains.flows.score_metrics import BY_NAME
from gan_runtime.store.queries import EvaluationRow, RunRow
from gan_runtime.store.store import Store

ERRORS = ("rmse", "spectrum")
PHYSICS = ("enstrophy_ratio", "divergence", "seam_ratio")
# Rollouts of version 0.2.0 have no replay, only the second one.
HORIZONS = ("horizon_replay", "horizon")


def shedding_period(selection: Selection) -> float | None:
    """Frames per shedding period in the first answer's flow; None if it sheds no eddies."""
    score = selection.scores_of(selection.first[0]).get("period")
    if score is None:
        return None
    return next(
        (float(value) for value in (score.floor, score.value) if value == value and value), None
    )


def draw_errors(runtime: Runtime, selection: Selection) -> None:
    """The error by step, next to a copy of the first frame and the replay of the nearest training
    film.
    """
    steps = _steps(runtime.store, selection)
    horizons = {}
    for name, row in selection.answers.items():
        scores, length = selection.scores_of(name), rollout(row).steps
        horizon = next((scores[score].value for score in HORIZONS if score in scores), length)
        if horizon < length:
            horizons[name] = horizon
    for column, name in zip(st.columns(len(ERRORS)), ERRORS, strict=True):
        with column:
            _curve(selection, steps, name, horizons if name == ERRORS[0] else {})
    source = rollouts.replay(rollout(selection.first[1]).replay)
    st.caption(f"{rollouts.HORIZON} {source}")
    names = [name for name in PHYSICS if len(by_step(steps, name))]
    if not names:
        return
    st.header("Is it still a flow?", anchor=False)
    for column, name in zip(st.columns(len(PHYSICS)), names, strict=False):
        with column:
            _curve(selection, steps, name, is_narrow=True)
    st.caption(rollouts.PHYSICS)


def draw_wake(runtime: Runtime, selection: Selection) -> None:
    """Whether eddies shed at the right rate: the probe's signal, its spectrum, and the Strouhal
    numbers in words.
    """
    steps, first = _steps(runtime.store, selection), rollout(selection.first[1])
    probe = by_step(steps, "probe")
    if probe.empty or first.solver_steps is None:
        st.info("There is no probe signal: these images are not of a flow. See the tab Errors.")
        return
    left, right = st.columns(2)
    with left:
        _curve(selection, steps, "probe")
    with right:
        lines = spectra(probe, first.solver_steps, first.obstacle_width or DIAMETER)
        draw = partial(
            flow_charts.spectrum,
            axis=BY_NAME["strouhal"].axis,
            colors=_colors(selection, lines["series"]),
        )
        plots.steady_chart(draw, lines, f"flow.spectrum.{selection.key}")
    st.caption(f"{_strouhal(selection)} {rollouts.PROBE}")


def _strouhal(selection: Selection) -> str:
    """The Strouhal numbers of the flow and of each prediction, in a sentence."""
    metric = selection.metric("strouhal")
    parts: list[str] = []
    for name in selection.answers:
        score = selection.scores_of(name).get(metric.name)
        if score is not None and not parts and score.floor == score.floor:
            parts.append(f"{FLOW} {number(metric, score.floor)}")
        parts.append(
            f"{words.plain(name)} {number(metric, None if score is None else score.value)}"
        )
    return f"Strouhal number: {', '.join(parts)}."


def draw_times(runtime: Runtime, selection: Selection) -> None:
    """Time by stage, for each method that predicted from the same start, and for all other answers
    shown.
    """
    first = selection.first[1]
    rows_of_start = [row for row in selection.stored if _is_alike(row, first)]
    rows = list(
        {identity(row): row for row in [*selection.answers.values(), *rows_of_start]}.values()
    )
    names = bars_of(rows, selection.runs)
    stages = {name: stages_of(runtime.store, row) for name, row in zip(names, rows, strict=True)}
    time = selection.scores_of(selection.first[0]).get("ms_frame")
    solver = None if time is None else time.baselines.get("solver")
    left, right = st.columns(2)
    with left:
        draw = partial(flow_charts.stages, title="Time of all steps", axis="Seconds")
        plots.steady_chart(draw, whole_times(stages), f"flow.times.{selection.key}.{len(rows)}")
    with right:
        draw = partial(
            flow_charts.stages, title="Time of a frame", axis="Milliseconds", solver=solver
        )
        plots.steady_chart(
            draw, frame_times(stages), f"flow.frame_times.{selection.key}.{len(rows)}"
        )
    st.caption(rollouts.TIMES)


def bars_of(rows: list[EvaluationRow], runs: Mapping[str, RunRow]) -> list[str]:
    """The names of bars: for a single run, the method comes first."""
    if len({row.run_id for row in rows}) > 1:
        return names_of(rows, runs, rollouts.parts)
    parts = [rollouts.parts(row) for row in rows]
    return unique_labels([part.pop("way") for part in parts], parts, [row.key for row in rows])


def _is_alike(row: EvaluationRow, first: EvaluationRow) -> bool:
    """Whether both start from the same frame and checkpoint and have as many steps."""
    this, other = rollout(row), rollout(first)
    same = all(
        getattr(this, name) == getattr(other, name) for name in ("trajectory", "start", "steps")
    )
    return same and (row.run_id, row.step, is_stored_epoch(row)) == (
        first.run_id,
        first.step,
        is_stored_epoch(first),
    )


def _steps(store: Store, selection: Selection) -> dict[str, pd.DataFrame]:
    return {name: steps_of(store, row) for name, row in selection.answers.items()}


def _curve(
    selection: Selection,
    steps: dict[str, pd.DataFrame],
    name: str,
    horizons: dict[str, float] | None = None,
    is_narrow: bool = False,
) -> None:
    """The chart of a score by step; nothing where none is stored."""
    score, rows = BY_NAME[name], by_step(steps, name)
    if rows.empty:
        return
    draw = partial(
        flow_charts.by_step,
        title=score.title,
        axis=score.unit,
        colors=_colors(selection, rows["series"]),
        horizons=horizons,
        is_narrow=is_narrow,
    )
    plots.steady_chart(draw, rows, f"flow.{name}.{selection.key}")


def _colors(selection: Selection, series: pd.Series[str]) -> dict[str, str]:
    """The colors of the series in a chart, in the order of the legend."""
    colors = {
        FLOW: palette.REAL,
        **selection.colors,
        COPIED: palette.NEUTRAL,
        REPLAYED: flow_charts.REPLAY_COLOR,
    }
    return {name: color for name, color in colors.items() if name in set(series)}
