"""The tabs Errors, Wake and Time of a rollout, out of stored numbers by step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import palette, plots, words
from dashboard.domains.flows import charts as flow_charts
from dashboard.domains.flows import words as flow_words
from dashboard.domains.flows.charts import COPIED, FLOW, REPLAYED
from dashboard.evaluation.answers import AnswerRow
from dashboard.evaluation.shown import Shown, names_of, number, told_apart
from gan_runtime.domains.flows import measures
from gan_runtime.domains.flows.fields import DIAMETER
from gan_runtime.domains.flows.score_metrics import BY_NAME
from gan_runtime.engines.tiling.ways import ONCE, STAGES
from gan_runtime.store import queries
from gan_runtime.store.queries import FlowRow, RunRow
from gan_runtime.store.store import Store
from gan_runtime.supervision.runtime import Runtime

ERRORS = ("rmse", "ssim")
PHYSICS = ("enstrophy_ratio", "divergence", "seam_ratio")
HORIZONS = ("horizon_replay", "horizon")  # the second one where no replay was measured, as by version 0.2.0
MOST_STROUHAL = 0.8  # of the spectra that are drawn: a street beats at 0.15 to 0.2, and its overtones follow
REFERENCES = {"persistence": COPIED, "replay": REPLAYED, "truth": FLOW}


def flow_rows(shown: Shown) -> dict[str, FlowRow]:
    """The answers as the tables of flows have them, by name."""
    return {name: _flow_row(row) for name, row in shown.answers.items()}


def _flow_row(row: AnswerRow) -> FlowRow:
    return FlowRow(**row.facts)


def beat(shown: Shown) -> float | None:
    """Frames in which the first answer's flow sheds a pair of eddies; None where it does not."""
    score = shown.scores_of(shown.first[0]).get("period")
    if score is None:
        return None
    return next((float(value) for value in (score.floor, score.value) if value == value and value), None)


def draw_errors(runtime: Runtime, shown: Shown) -> None:
    """How wrong the prediction is, step by step, with a copy of the first frame and the replay of the nearest training film."""
    rows, steps = flow_rows(shown), _steps(runtime.store, shown)
    horizons = {}
    for name, row in rows.items():
        own = shown.scores_of(name)
        horizon = next((own[score].value for score in HORIZONS if score in own), row.steps)
        if horizon < row.steps:
            horizons[name] = horizon
    for column, name in zip(st.columns(len(ERRORS)), ERRORS, strict=True):
        with column:
            _curve(shown, steps, name, horizons if name == ERRORS[0] else {})
    source = flow_words.replay(next(iter(rows.values())).replay)
    st.caption(f"{flow_words.HORIZON} {source}")
    drawn = [name for name in PHYSICS if len(by_step(steps, name))]
    if not drawn:
        return
    st.header("Is it still a flow?", anchor=False)
    for column, name in zip(st.columns(len(PHYSICS)), drawn, strict=False):
        with column:
            _curve(shown, steps, name, is_narrow=True)
    st.caption(flow_words.PHYSICS)


def draw_wake(runtime: Runtime, shown: Shown) -> None:
    """Whether the eddies come at the right rate: the probe's signal and its spectrum; in words the Strouhal numbers."""
    steps, first = _steps(runtime.store, shown), next(iter(flow_rows(shown).values()))
    probe = by_step(steps, "probe")
    if probe.empty or first.solver_steps is None:
        st.info("Nothing was measured at a probe: these are pictures of no flow.")
        return
    left, right = st.columns(2)
    with left:
        _curve(shown, steps, "probe")
    with right:
        lines = spectra(probe, first.solver_steps, first.obstacle_width or DIAMETER)
        draw = partial(
            flow_charts.spectrum, axis=BY_NAME["strouhal"].axis, colors=_colors(shown, lines["series"])
        )
        plots.steady_chart(draw, lines, f"flow.spectrum.{shown.key}")
    st.caption(f"{_strouhal(shown)} {flow_words.PROBE}")


def _strouhal(shown: Shown) -> str:
    """Of the flow and of each prediction, in a sentence."""
    metric = shown.metric("strouhal")
    parts: list[str] = []
    for name in shown.answers:
        score = shown.scores_of(name).get(metric.name)
        if score is not None and not parts and score.floor == score.floor:
            parts.append(f"{FLOW} {number(metric, score.floor)}")
        parts.append(f"{words.plain(name)} {number(metric, None if score is None else score.value)}")
    return f"Strouhal number: {', '.join(parts)}."


def draw_times(runtime: Runtime, shown: Shown) -> None:
    """Where the time goes: every way in which the first answer's start was iterated, and all others that are shown."""
    first = next(iter(flow_rows(shown).values()))
    alike = [row for row in shown.stored if _is_alike(_flow_row(row), first)]
    rows = list({row.identity: row for row in [*shown.answers.values(), *alike]}.values())
    names = bars_of(rows, shown.runs)
    stages = {
        name: queries.flow_stages(runtime.store, _flow_row(row))
        for name, row in zip(names, rows, strict=True)
    }
    time = shown.scores_of(shown.first[0]).get("ms_frame")
    solver = None if time is None else time.baselines.get("solver")
    left, right = st.columns(2)
    with left:
        draw = partial(flow_charts.stages, title="Time of all steps", axis="Seconds")
        plots.steady_chart(draw, whole_times(stages), f"flow.times.{shown.key}.{len(rows)}")
    with right:
        draw = partial(flow_charts.stages, title="Time of a frame", axis="Milliseconds", solver=solver)
        plots.steady_chart(draw, frame_times(stages), f"flow.frame_times.{shown.key}.{len(rows)}")
    st.caption(flow_words.TIMES)


def bars_of(rows: list[AnswerRow], runs: Mapping[str, RunRow]) -> list[str]:
    """The names of bars: of a single run the way comes first, not the run."""
    if len({row.run_id for row in rows}) > 1:
        return names_of(rows, runs)
    others = [{name: part for name, part in row.about.items() if name != "way"} for row in rows]
    return told_apart([row.about["way"] for row in rows], others, [row.key for row in rows])


def _is_alike(row: FlowRow, first: FlowRow) -> bool:
    """Whether both iterate the same checkpoint from the same frame for as long."""
    return all(
        getattr(row, name) == getattr(first, name)
        for name in ("run_id", "step", "is_kept", "trajectory", "start", "steps")
    )


def _steps(store: Store, shown: Shown) -> dict[str, pd.DataFrame]:
    return {name: queries.flow_steps(store, row) for name, row in flow_rows(shown).items()}


def _curve(
    shown: Shown,
    steps: dict[str, pd.DataFrame],
    name: str,
    horizons: dict[str, float] | None = None,
    is_narrow: bool = False,
) -> None:
    """A score by step; nothing where none is stored."""
    score, rows = BY_NAME[name], by_step(steps, name)
    if rows.empty:
        return
    draw = partial(
        flow_charts.by_step,
        title=score.title,
        axis=score.unit,
        colors=_colors(shown, rows["series"]),
        horizons=horizons,
        is_narrow=is_narrow,
    )
    plots.steady_chart(draw, rows, f"flow.{name}.{shown.key}")


def _colors(shown: Shown, series: pd.Series[str]) -> dict[str, str]:
    """Of the series that a chart draws, in the order of the legend."""
    known = {FLOW: palette.REAL, **shown.colors, COPIED: palette.NEUTRAL, REPLAYED: flow_charts.REPLAY_COLOR}
    return {name: color for name, color in known.items() if name in set(series)}


def by_step(steps: dict[str, pd.DataFrame], score: str) -> pd.DataFrame:
    """series, step, value of a score: first what the first iteration is compared with, then each iteration. `steps`: series → frame as
    `queries.flow_steps` gives it."""
    parts = []
    for place, (name, frame) in enumerate(steps.items()):
        own = frame[frame["score"] == score]
        references = REFERENCES if place == 0 else {}
        for column, called in [*references.items(), ("value", name)]:
            part = pd.DataFrame({"series": called, "step": own["step"], "value": own[column].astype(float)})
            parts.append(part[np.isfinite(part["value"])])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["series", "step", "value"])


def spectra(probe: pd.DataFrame, solver_steps: int, diameter: float) -> pd.DataFrame:
    """series, frequency (Strouhal number), share (amplitude, of the highest of all). `probe`: of `by_step`, a number a frame; `solver_steps`:
    between two of them; `diameter`: of the obstacle, in cells. A series with a gap, as of a model that ran away, has no spectrum."""
    parts = []
    for name, own in probe.groupby("series", sort=False):
        if len(own) < measures.LEAST_SAMPLES or len(own) <= own["step"].max():
            continue
        frequency, power = measures.spectrum(own.sort_values("step")["value"].to_numpy(float))
        number = frequency * measures.strouhal_of(1.0, solver_steps, diameter)
        part = pd.DataFrame({"series": name, "frequency": number, "share": power**0.5})
        parts.append(part[part["frequency"] <= MOST_STROUHAL])
    if not parts:
        return pd.DataFrame(columns=["series", "frequency", "share"])
    rows = pd.concat(parts, ignore_index=True)
    highest = rows["share"].max()
    return rows.assign(share=rows["share"] / highest if highest > 0 else rows["share"])


def whole_times(stages: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """bar, stage, place, amount: seconds that all steps took, by stage. `stages`: bar → frame as `queries.flow_stages` gives it."""
    return _bars({name: frame.assign(amount=frame["seconds"]) for name, frame in stages.items()})


def frame_times(stages: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The same, milliseconds of one frame: what happens once is left out."""
    repeated = {name: frame[~frame["stage"].isin(ONCE)] for name, frame in stages.items()}
    return _bars({name: frame.assign(amount=1e3 * frame["median_s"]) for name, frame in repeated.items()})


def _bars(stages: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A stage of another version of this program comes last."""
    named = [frame.assign(bar=name) for name, frame in stages.items() if len(frame)]
    if not named:
        return pd.DataFrame(columns=["bar", "stage", "place", "amount"])
    rows = pd.concat(named, ignore_index=True)
    places = rows["stage"].map({name: place for place, name in enumerate(STAGES)}).fillna(len(STAGES))
    titles = rows["stage"].str.replace("_", " ").str.capitalize()
    return rows.assign(stage=titles, place=places.astype(int))[["bar", "stage", "place", "amount"]]
