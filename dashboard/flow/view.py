"""The parts of the Flow page: which runs and iterations, figures, numbers by step, the wake's beat, where the time goes."""

from __future__ import annotations

import json
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import listed, palette, plots, run_words, widgets, words
from dashboard.flow import charts as flow_charts
from dashboard.flow import frames as flow_frames
from dashboard.flow import words as flow_words
from dashboard.flow.shown import Shown
from dashboard.frame import places
from gan_runtime.domains.flows import iterate_requests
from gan_runtime.domains.flows.fields import DIAMETER
from gan_runtime.domains.flows.score_metrics import BY_NAME
from gan_runtime.engines.tiling.ways import Way
from gan_runtime.spec import nesting
from gan_runtime.store import queries
from gan_runtime.store.queries import NO_NUMBER, FlowNumber, FlowRow, RunRow
from gan_runtime.store.store import Store
from gan_runtime.supervision.runtime import Runtime

MAP_REDUCE: Way = "map_reduce"
MOST_RUNS = MOST_ITERATIONS = 4
ERRORS = ("rmse", "ssim")
PHYSICS = ("enstrophy_ratio", "divergence", "seam_ratio")
PERIOD = "rmse_period"
HORIZONS = ("horizon_replay", "horizon")  # the second one where no replay was measured, as by version 0.2.0
FIGURES = ("ssim_period", "strouhal_error", "ms_frame")  # beside how much lower the error is, and the horizon


def runs(runtime: Runtime) -> list[RunRow]:
    """Those that are picked, out of the runs that make frames or were iterated; ends the page where there are none."""
    iterated = queries.runs_with_flow(runtime.store)
    named = widgets.named_runs()
    known = {row.run_id: row for row in listed.offered(_of_frames(runtime, iterated), named)}
    if not known:
        st.info(flow_words.NO_RUN)
        st.page_link(places.DATA, label="Go to Data", icon=":material/photo_library:")
        st.stop()
    asked = [run_id for run_id in named if run_id in known][:MOST_RUNS]
    usual = asked or [run_id for run_id in iterated if run_id in known][:1] or [next(iter(known))]
    picked = st.multiselect(
        "Runs",
        list(known),
        default=usual,
        format_func=lambda run_id: widgets.title(known[run_id]),
        max_selections=MOST_RUNS,
        placeholder="Pick runs whose model to look at",
        key="flow.runs",
        label_visibility="collapsed",
    )
    if set(picked) != set(usual):
        st.query_params["runs"] = ",".join(picked)
    return [row for run_id, row in known.items() if run_id in picked]


def _of_frames(runtime: Runtime, iterated: list[str]) -> list[RunRow]:
    """An imported run has no data set here, but perhaps iterations; one whose folder is gone may still be stored. Runs of one workload with
    the same options of its own read the same of a data set."""
    there = {run.run_id for run in runtime.home.run_dirs()}
    makes: dict[tuple[str, ...], bool] = {}
    found = []
    for row in queries.runs(runtime.store):
        is_iterated, kind = row.run_id in iterated, _kind(row)
        if not is_iterated and row.run_id in there and kind not in makes:
            makes[kind] = iterate_requests.translates(runtime.home, row.run_id)
        if is_iterated or (row.run_id in there and makes[kind]):
            found.append(row)
    return found


def _kind(row: RunRow) -> tuple[str, ...]:
    """All that decides what a run reads."""
    given = nesting.flat(json.loads(row.spec))
    own = {name: given[name] for name in nesting.own_options(row.workload) if name in given}
    return row.workload, row.dataset, json.dumps(own, sort_keys=True)


def choose(rows: list[RunRow], stored: list[FlowRow]) -> Shown:
    """The iterations that are picked, the newest of each run at first; the page ends where none is."""
    runs_by_id = {row.run_id: row for row in rows}
    known = {row.key: row for row in stored}
    labels = {key: flow_words.label(row, widgets.title(runs_by_id[row.run_id])) for key, row in known.items()}
    newest = {row.run_id: _usual(row, stored).key for row in reversed(stored)}
    picked = st.multiselect(
        "Iterations",
        list(known),
        default=[newest[row.run_id] for row in rows if row.run_id in newest],
        format_func=labels.__getitem__,
        max_selections=MOST_ITERATIONS,
        placeholder="Pick iterations to put beside each other",
        key=f"flow.iterations.{'+'.join(newest)}",
        help="The film is that of the first one.",
    )
    if not picked:
        st.info("Pick an iteration above: its film and its numbers appear here.")
        st.stop()
    chosen, run_names = [known[key] for key in picked], run_words.unique_names(rows)
    names = flow_words.series([(run_names[row.run_id], row) for row in chosen])
    return Shown(dict(zip(names, chosen, strict=True)), runs_by_id)


def _usual(newest: FlowRow, stored: list[FlowRow]) -> FlowRow:
    """Of the ways of an iteration the one in tiles over the cores, where it was done."""
    ways = [row for row in stored if (row.run_id, row.iteration) == (newest.run_id, newest.iteration)]
    return next((row for row in ways if row.way == MAP_REDUCE), newest)


def figures(store: Store, found: Shown) -> None:
    """What says most of the first iteration."""
    own = queries.flow_scores(store, found.first)
    period = beat(store, found)
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        if PERIOD in own:
            ratio, baselines = flow_words.times_lower(own[PERIOD]), flow_words.over_a_period(own[PERIOD])
            _figure(flow_words.lower(found.first), ratio, baselines, flow_words.LOWER_HELP)
        horizon = BY_NAME[_horizon(own)]
        steps = own.get(horizon.name, NO_NUMBER).value
        _figure(
            horizon.axis,
            flow_words.horizon(steps, found.first.steps),
            flow_words.periods(steps, period),
            f"{horizon.text} {flow_words.HORIZON_HELP}",
        )
        for name in FIGURES:
            if name in own:
                score = BY_NAME[name]
                value = flow_words.number(score, own[name].value)
                _figure(score.axis, value, flow_words.baselines(score, own[name]), score.text)
    if PERIOD in own and found.first.replay:
        st.caption(flow_words.replay(own[PERIOD], found.first.replay))


def _horizon(own: dict[str, FlowNumber]) -> str:
    """The score that says for how long a prediction is better than a baseline: than the replay, where it was measured."""
    return next((name for name in HORIZONS if name in own), HORIZONS[-1])


def _figure(title: str, value: str, beside: str, text: str) -> None:
    st.metric(
        title,
        value,
        delta=beside or None,
        delta_color="off",
        delta_arrow="off",
        help=text,
        width=188,
    )


def beat(store: Store, found: Shown) -> float | None:
    """Frames in which the first iteration's flow sheds a pair of eddies; None where it does not."""
    number = queries.flow_scores(store, found.first).get("period", NO_NUMBER)
    return number.reference or number.value


def errors(store: Store, found: Shown) -> None:
    """How wrong the prediction is, step by step, with a copy of the first frame and the replay of the nearest training film."""
    steps = _steps(store, found)
    measured = {name: queries.flow_scores(store, row) for name, row in found.rows.items()}
    horizons = {
        name: horizon
        for name, own in measured.items()
        if (horizon := own.get(_horizon(own), NO_NUMBER).value) is not None
        and horizon < found.rows[name].steps
    }
    for column, name in zip(st.columns(len(ERRORS)), ERRORS, strict=True):
        with column:
            _curve(found, steps, name, horizons if name == ERRORS[0] else {})
    st.caption(flow_words.HORIZON)


def wake(store: Store, found: Shown) -> None:
    """Whether the eddies come at the right rate: the probe's signal and its spectrum; in words the Strouhal numbers."""
    steps = _steps(store, found)
    probe = flow_frames.by_step(steps, "probe")
    if probe.empty or found.first.solver_steps is None:
        return
    st.header("Does the wake beat as that of the flow?", anchor=False)
    left, right = st.columns(2)
    with left:
        _curve(found, steps, "probe")
    with right:
        spectra = flow_frames.spectra(probe, found.first.solver_steps, found.first.obstacle_width or DIAMETER)
        draw = partial(
            flow_charts.spectrum, axis=BY_NAME["strouhal"].axis, colors=_colors(found, spectra["series"])
        )
        plots.steady_chart(draw, spectra, f"flow.spectrum.{found.key}")
    st.caption(f"{_strouhal(store, found)} {flow_words.PROBE}")


def _strouhal(store: Store, found: Shown) -> str:
    """Of the flow and of each prediction, in a sentence."""
    score = BY_NAME["strouhal"]
    told: list[str] = []
    for name, row in found.rows.items():
        number = queries.flow_scores(store, row).get(score.name, NO_NUMBER)
        if not told and number.reference is not None:
            told.append(f"{flow_charts.FLOW} {flow_words.number(score, number.reference)}")
        told.append(f"{words.plain(name)} {flow_words.number(score, number.value)}")
    return f"Strouhal number: {', '.join(told)}."


def physics(store: Store, found: Shown) -> None:
    """Whether it stays a flow: eddies as strong, no fluid lost, no seams between tiles."""
    steps = _steps(store, found)
    drawn = [name for name in PHYSICS if len(flow_frames.by_step(steps, name))]
    if not drawn:
        return
    st.header("Is it still a flow?", anchor=False)
    for column, name in zip(st.columns(len(PHYSICS)), drawn, strict=False):
        with column:
            _curve(found, steps, name, is_narrow=True)
    st.caption(flow_words.PHYSICS)


def times(store: Store, found: Shown, stored: list[FlowRow]) -> None:
    """Where the time goes: every way in which the first iteration's start was iterated, and all others that are picked."""
    st.header("Where does the time go?", anchor=False)
    alike = [row for row in stored if _is_alike(row, found.first)]
    rows = list({row.key: row for row in [*found.rows.values(), *alike]}.values())
    run_names = run_words.unique_names(list(found.runs.values()))
    names = flow_words.bars([(run_names[row.run_id], row) for row in rows])
    stages = {name: queries.flow_stages(store, row) for name, row in zip(names, rows, strict=True)}
    solver = queries.flow_scores(store, found.first).get("ms_frame", NO_NUMBER).reference
    whole, each = flow_frames.whole_times(stages), flow_frames.frame_times(stages)
    left, right = st.columns(2)
    with left:
        draw = partial(flow_charts.stages, title="Time of all steps", axis="Seconds")
        plots.steady_chart(draw, whole, f"flow.times.{found.key}.{len(rows)}")
    with right:
        draw = partial(flow_charts.stages, title="Time of a frame", axis="Milliseconds", solver=solver)
        plots.steady_chart(draw, each, f"flow.frame_times.{found.key}.{len(rows)}")
    st.caption(flow_words.TIMES)


def _is_alike(row: FlowRow, first: FlowRow) -> bool:
    """Whether both iterate the same checkpoint from the same frame for as long."""
    return all(
        getattr(row, name) == getattr(first, name)
        for name in ("run_id", "step", "is_kept", "trajectory", "start", "steps")
    )


def _steps(store: Store, found: Shown) -> dict[str, pd.DataFrame]:
    return {name: queries.flow_steps(store, row) for name, row in found.rows.items()}


def _curve(
    found: Shown,
    steps: dict[str, pd.DataFrame],
    name: str,
    horizons: dict[str, float] | None = None,
    is_narrow: bool = False,
) -> None:
    """A score by step; nothing where none is stored."""
    score, rows = BY_NAME[name], flow_frames.by_step(steps, name)
    if rows.empty:
        return
    draw = partial(
        flow_charts.by_step,
        title=score.title,
        axis=score.unit,
        colors=_colors(found, rows["series"]),
        horizons=horizons,
        is_narrow=is_narrow,
    )
    plots.steady_chart(draw, rows, f"flow.{name}.{found.key}")


def _colors(found: Shown, series: pd.Series[str]) -> dict[str, str]:
    """Of the series that a chart draws, in the order of the legend."""
    known = {
        **found.colors,
        flow_charts.COPIED: palette.NEUTRAL,
        flow_charts.REPLAYED: flow_charts.REPLAY_COLOR,
    }
    return {name: color for name, color in known.items() if name in set(series)}
