"""The parts of the Physics page: which runs, curves, showers side by side, scores."""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import listed, plots, run_words, widgets, words
from dashboard import tables as page_tables
from dashboard.frame import places
from dashboard.physics import charts as physics_charts
from dashboard.physics import maps as physics_maps
from dashboard.physics import tables
from dashboard.physics import words as physics_words
from dashboard.physics.shown import Shown
from gan_runtime.domains.showers import physics_requests
from gan_runtime.domains.showers.curve_names import CURVES, CurveWords
from gan_runtime.domains.showers.score_metrics import SCORES
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store
from gan_runtime.supervision.runtime import Runtime

# Scores in the first row.
FIGURES = ("sampling_fraction", "profile_z", "challenge_fpd", "auc_high", "ms_batch")
OVER_EPOCHS = ("sampling_fraction", "profile_z", "challenge_fpd")
EARLIER = {"challenge_fpd": "fpd"}  # what measurements have that were made before it
FIRST = 6  # curves that are seen at once
ACROSS = 3
MORE = "physics.more"
MOST_RUNS = 4
MAPS = ("matrix", "map")  # kinds of curves that are drawn in two dimensions


def runs(runtime: Runtime, measured_ids: list[str]) -> list[RunRow]:
    """Those that are picked, out of the runs that make showers or were measured; ends the page where there are none."""
    named = widgets.named_runs()
    rows = listed.offered(_of_showers(runtime, measured_ids), named)
    if not rows:
        st.info(physics_words.NO_RUN)
        st.page_link(places.DATA, label="Go to Data", icon=":material/photo_library:")
        st.stop()
    known = {row.run_id: row for row in rows}
    asked = [run_id for run_id in named if run_id in known][:MOST_RUNS]
    usual = asked or [run_id for run_id in measured_ids if run_id in known][:1] or [rows[0].run_id]
    picked = st.multiselect(
        "Runs",
        list(known),
        default=usual,
        format_func=lambda run_id: widgets.title(known[run_id]),
        max_selections=MOST_RUNS,
        placeholder="Pick runs whose showers to look at",
        key="physics.runs",
        label_visibility="collapsed",
    )
    if set(picked) != set(usual):
        st.query_params["runs"] = ",".join(picked)
    return [row for run_id, row in known.items() if run_id in picked]


def _of_showers(runtime: Runtime, measured_ids: list[str]) -> list[RunRow]:
    """An imported run has no data set here, but perhaps measurements. Runs of one workload on one data set read the same."""
    makes: dict[tuple[str, str], bool] = {}
    found = []
    for row in queries.runs(runtime.store):
        kind = (row.workload, row.dataset)
        if row.run_id not in measured_ids and kind not in makes:
            run = runtime.home.run_dir(row.run_id)
            makes[kind] = physics_requests.makes_showers(runtime.home, run)
        if row.run_id in measured_ids or makes[kind]:
            found.append(row)
    return found


def measured(rows: list[RunRow], measured_ids: list[str]) -> dict[str, RunRow]:
    """Those of the picked runs that have been measured, by name."""
    names = run_words.unique_names(rows)
    return {names[row.run_id]: row for row in rows if row.run_id in measured_ids}


def choose(store: Store, rows: dict[str, RunRow]) -> Shown:
    """One row of choices: epoch, energy, angle, and whether profiles are drawn on a logarithmic scale."""
    scores = queries.physics_scores(store, [row.run_id for row in rows.values()])
    per_run = {
        name: sorted(set(scores["epoch"][scores["run_id"] == row.run_id].tolist()))
        for name, row in rows.items()
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        energy, angle = st.container(width=190), st.container(width=160)
        scale, slider = st.container(width="content"), st.container()
        with slider:
            epoch = _epoch(sorted({epoch for epochs in per_run.values() for epoch in epochs}))
        nearest = {
            name: max((one for one in epochs if one <= epoch), default=epochs[0])
            for name, epochs in per_run.items()
        }
        first = next(iter(rows))
        energies, angles = queries.physics_bins(store, rows[first].run_id, nearest[first])
        with energy:
            picked = _bin(
                "Energy", "physics.energy", [physics_words.energy(bounds) for bounds in (None, *energies)]
            )
        with angle:
            leant = _bin(
                "Measured angle", "physics.angle", [physics_words.angle(bounds) for bounds in (None, *angles)]
            )
        with scale:
            form = st.segmented_control(
                "Profiles",
                ["Linear", "Logarithmic"],
                default="Linear",
                key="physics.scale",
                help=physics_words.SCALE_HELP,
            )
    return Shown(rows, nearest, scores, energies, angles, picked, leant, form == "Logarithmic")


def _bin(label: str, key: str, titles: list[str]) -> int | None:
    """The number of a bin; None for the first title, which stands for all. Nothing is drawn where there is no choice."""
    if len(titles) < 2:
        return None
    place = st.selectbox(label, range(len(titles)), format_func=titles.__getitem__, key=key)
    return place - 1 if place else None


def _epoch(every: list[int]) -> int:
    """Where the slider stands; it begins at the newest."""
    if len(every) < 2:
        return every[0]
    key = f"physics.epoch.{every[0]}.{every[-1]}"
    return int(st.select_slider("Epoch", every, every[-1], key=key))


def figures(found: Shown) -> None:
    """The scores that say most, of the first run, with those of real showers among themselves below."""
    row, epoch = found.first
    own = tables.measured(found.scores, row.run_id, epoch)
    known = {score.name: score for score in SCORES}
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        for name in _measured(FIGURES, own):
            if name in own:
                score, values = known[name], own[name]
                floor = score.words(values["floor"])
                st.metric(
                    score.title,
                    score.words(values["value"]),
                    delta=None if floor == "–" else f"real ones: {floor}",
                    delta_color="off",
                    delta_arrow="off",
                    help=score.text,
                    width=188,
                )
    name = next(iter(found.rows))
    count = words.count(next(iter(own.values()))["showers"])
    st.caption(
        f"{words.plain(name)} after epoch {epoch}: {count} generated showers beside {count} real ones. {physics_words.FLOOR_HELP}"
    )


def _measured(names: tuple[str, ...], known: Collection[str]) -> list[str]:
    """These scores, or what older measurements have in their place."""
    return [name if name in known else EARLIER.get(name, name) for name in names]


def curves(rows: pd.DataFrame, found: Shown) -> None:
    """Profiles, response and spectra of all picked runs beside real showers. `rows`: see `curve_rows`."""
    if rows.empty:
        st.info("No shower of this energy and angle was measured: choose others.")
        return
    told = [one for one in CURVES if one.kind not in MAPS and not one.judged]
    drawn = [one for one in told if (rows["curve"] == one.name).any()]
    _grid(rows, drawn[:FIRST], _colors(found), found.is_log, _place(found))
    more = st.expander(
        "More distributions", key=MORE, icon=":material/stacked_line_chart:", on_change="rerun"
    )
    if more.open:  # charts are what the page costs
        with more:
            _grid(rows, drawn[FIRST:], _colors(found), found.is_log, _place(found))


def judging_network(rows: pd.DataFrame, found: Shown) -> None:
    """What the judging network reads from real and from generated showers, where it was asked. `rows`: see `curve_rows`."""
    drawn = [told for told in CURVES if told.judged and not rows.empty and (rows["curve"] == told.name).any()]
    if not drawn:
        return
    st.header("What does the judging network see?", anchor=False)
    st.caption(physics_words.JUDGED)
    _grid(rows, drawn, _colors(found), False, _place(found))


def maps(store: Store, rows: pd.DataFrame, found: Shown) -> None:
    """Of all energies and angles: which layers go together, and whether the angle is as asked; of real showers and of each run. `rows`:
    see `curve_rows`."""
    if (found.energy, found.angle) != (None, None):
        rows = curve_rows(store, found.whole)
    for told in CURVES:
        own = rows[rows["curve"] == told.name]
        if told.kind not in MAPS or own.empty:
            continue
        st.header(told.title, anchor=False)
        st.caption(physics_words.MAPS[told.name])
        by_series = [(str(name), values) for name, values in own.groupby("series", sort=False)]
        for column, (series, values) in zip(st.columns(max(2, len(by_series))), by_series, strict=False):
            with column:
                _map(told, values, series)


def _map(told: CurveWords, own: pd.DataFrame, series: str) -> None:
    """One map of one series, under its name."""
    if told.kind == "matrix":
        made = plots.kept(physics_maps.matrix, math.isqrt(len(own)), told)
        rows = physics_maps.matrix_rows(own)
    else:
        made = plots.kept(physics_maps.angle_map, physics_maps.angle_ends(own), told)
        rows = physics_maps.angle_rows(own)
    named = {"title": {**made["title"], "text": series}, "description": f"{made['description']}, {series}."}
    plots.with_rows({**made, **named}, rows, f"physics.{told.name}.{series}")


def curve_rows(store: Store, found: Shown) -> pd.DataFrame:
    """The stored curves of all picked runs, and of real showers, at the chosen energy and angle."""
    return physics_charts.together(
        {
            name: queries.physics_curves(store, row.run_id, found.epochs[name], found.energy, found.angle)
            for name, row in found.rows.items()
        }
    )


def _colors(found: Shown) -> dict[str, str]:
    return physics_charts.colors_of({name: row.color for name, row in found.rows.items()})


def _place(found: Shown) -> str:
    return f"{list(found.epochs.items())}.{found.energy}.{found.angle}.{found.is_log}"


def _grid(
    rows: pd.DataFrame, drawn: list[CurveWords], colors: dict[str, str], is_log: bool, place: str
) -> None:
    for begin in range(0, len(drawn), ACROSS):
        for column, told in zip(st.columns(ACROSS), drawn[begin : begin + ACROSS], strict=False):
            with column:
                draw = partial(
                    physics_charts.curve, told=told, colors=colors, is_log=is_log and told.kind == "profile"
                )
                plots.steady_chart(draw, rows[rows["curve"] == told.name], f"physics.{told.name}.{place}")


def scores(found: Shown) -> None:
    """Every score with its floor, and what others have published."""
    st.header("Scores", anchor=False)
    page_tables.show(
        tables.scores(found.scores, {row.run_id: name for name, row in found.rows.items()}, found.epochs),
        hide_index=True,
        key="physics.scores",
        height="content",
    )
    with st.expander("What the scores mean", icon=":material/help:"):
        st.markdown("\n".join(f"- **{score.title}** – {score.text}" for score in SCORES))
    st.markdown("**What others reach**")
    page_tables.show(tables.published(), hide_index=True, key="physics.published")
    st.caption(physics_words.OTHER_DATA)


def epochs(found: Shown) -> None:
    """Scores over the measured epochs, where there are several, and the best one by the authors' rule."""
    names = {row.run_id: name for name, row in found.rows.items()}
    if found.scores["epoch"].nunique() < 2:
        return
    st.header("Which epoch is best?", anchor=False)
    rows = found.scores.assign(series=found.scores["run_id"].map(names))
    colors = _colors(found)
    del colors[physics_charts.REAL]
    known = {score.name: score for score in SCORES}
    for column, name in zip(
        st.columns(len(OVER_EPOCHS)), _measured(OVER_EPOCHS, set(rows["score"])), strict=True
    ):
        with column:
            own = rows[rows["score"] == name]
            plots.chart(physics_charts.over_epochs(own, known[name], colors), key=f"physics.epochs.{name}")
    errors = rows[rows["score"] == tables.BEST].dropna(subset=["value"])
    if errors.empty:
        return
    best = errors.loc[errors.groupby("series")["value"].idxmin()].to_dict("records")
    told = ", ".join(
        f"epoch {row['epoch']} of {words.plain(row['series'])} ({known[tables.BEST].words(row['value'])})"
        for row in best
    )
    st.caption(f"{physics_words.BEST_EPOCH} {told}. {physics_words.DASHED}")
