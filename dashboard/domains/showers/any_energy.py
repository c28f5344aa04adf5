"""The tab Any energy: a form for an energy and an angle, its job, and the generated showers."""

from __future__ import annotations

import contextlib
import math
from functools import partial

import pandas as pd
import streamlit as st
from pydantic import ValidationError

from dashboard import actions, missing_checkpoint, palette, plots, widgets, words
from dashboard.domains.showers import charts as shower_charts
from dashboard.domains.showers import side_by_side
from dashboard.domains.showers import words as shower_words
from dashboard.domains.showers.distributions import bins_of
from dashboard.domains.showers.words import CURVES
from dashboard.evaluation.answers import Selection
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.domains.showers import evaluation
from gan_runtime.domains.showers.entry import ANGLES_DEG, ENERGIES_GEV
from gan_runtime.domains.showers.evaluation import (
    RESULT_FILE,
    SingleEnergyOptions,
    SingleEnergyResult,
)
from gan_runtime.jobs.folder import JobSnapshot

CANCEL = widgets.EndButton("showers.chosen.cancel")
PROFILES = ("along_z", "along_y", "along_x")


def draw(runtime: Runtime, selection: Selection) -> None:
    """The tab; only a sentence if no run has a checkpoint here."""
    names = {
        row.run_id: name
        for name, row in selection.answers.items()
        if evaluation.measurable(runtime.home, row.run_id)
    }
    if not names:
        rows = sorted(selection.runs.values(), key=lambda row: not row.is_live)
        missing_checkpoint.show(runtime, rows[0])
        return
    st.caption(shower_words.ANY_ENERGY)
    request, pressed = _form(runtime, selection, names)
    newest = evaluation.newest_job(runtime.home, request.run_id)
    before = evaluation.finished_job(runtime.home, request)
    if pressed and before is None:
        _request(runtime, request)
    snapshot = newest if newest is not None and newest.is_live else before or newest
    if snapshot is None:
        return
    if snapshot.is_live:
        widgets.job_bar(runtime, snapshot, partial(_progress_text, names[request.run_id]), CANCEL)
    elif snapshot.state == "finished":
        _result(snapshot, names[request.run_id], selection.colors[names[request.run_id]])
    elif snapshot.end is not None:
        st.warning(f"Not generated: {words.plain(snapshot.end.reason)}", icon=":material/warning:")


def _form(
    runtime: Runtime, selection: Selection, names: dict[str, str]
) -> tuple[SingleEnergyOptions, bool]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run_id = next(iter(names))
        if len(names) > 1:
            run_id = st.selectbox(
                "Run",
                list(names),
                format_func=names.__getitem__,
                key="showers.chosen.run",
                width=220,
            )
        energies, angles = bins_of(runtime.store, selection.first[1])
        low, high = limits([end for ends in energies for end in ends], ENERGIES_GEV)
        energy = st.number_input(
            "Energy (GeV)",
            low,
            high,
            float(round((low + high) / 2)),
            1.0,
            "%.4g",
            key=f"showers.chosen.energy.{low}.{high}",
            width=150,
            help=f"{low:g} to {high:g} GeV, the range of the data.",
        )
        angle = None
        if angles and evaluation.knows_angles(runtime.home, runtime.home.run_dir(run_id)):
            least, most = limits([math.degrees(end) for ends in angles for end in ends], ANGLES_DEG)
            angle = st.number_input(
                "Measured angle (°)",
                least,
                most,
                float(round((least + most) / 2)),
                1.0,
                "%.4g",
                key=f"showers.chosen.angle.{least}.{most}",
                width=150,
                help=(
                    f"Measured on a shower, {least:g}° to {most:g}°, the range of the data. 90°:"
                    " straight in."
                ),
            )
        checkpoints = evaluation.measurable(runtime.home, run_id)
        pressed = actions.button(
            "Generate showers", key="showers.chosen.start", icon=":material/auto_awesome:"
        )
    return SingleEnergyOptions(
        run_id, energy, angle, "best" if "best" in checkpoints else "newest"
    ), pressed


def limits(ends: list[float], allowed: tuple[float, float]) -> tuple[float, float]:
    """The range of the data in whole numbers, within what may be requested; low < high always."""
    low, high = (math.ceil(min(ends)), math.floor(max(ends))) if ends else allowed
    low = min(max(low, allowed[0]), allowed[1] - 1)  # data can exceed what may be requested
    return float(low), float(min(max(high, low + 1), allowed[1]))


def _request(runtime: Runtime, request: SingleEnergyOptions) -> None:
    """Requests the job and redraws the page."""
    if actions.attempt(lambda: runtime.commands.request_job(evaluation.MAKE, request)) is not None:
        st.rerun()


def _progress_text(name: str, snapshot: JobSnapshot) -> str:
    return f"Showers by {words.plain(name)}: {widgets.job_sentence(snapshot)}"


def _result(snapshot: JobSnapshot, name: str, color: str) -> None:
    """Numbers and profiles of both sides, and a pair of showers."""
    showers = _read(snapshot)
    if showers is None:
        st.caption("The last showers were deleted. Press Generate showers again.")
        return
    truth = "simulated" if showers.simulated else "held-out"
    st.markdown(shower_words.single_energy(showers, name, truth))
    frame = pd.DataFrame(
        [
            {
                "curve": curve.name,
                "series": line.name,
                "x": x,
                "y": math.nan,
                "value": value,
                "error": error,
            }
            for curve in showers.curves
            for line in curve.series
            for x, value, error in zip(curve.x, line.values, line.error, strict=True)
        ]
    )
    title = truth.capitalize()
    rows = shower_charts.with_names({name: frame}).replace({"series": {shower_charts.REAL: title}})
    colors = {title: palette.REAL, name: color}
    drawn_curves = [curve_words for curve_words in CURVES if curve_words.name in PROFILES]
    for column, curve_words in zip(st.columns(len(drawn_curves)), drawn_curves, strict=True):
        with column:
            chart = shower_charts.curve(
                rows[rows["curve"] == curve_words.name], curve_words, colors
            )
            plots.chart(chart, key=f"showers.chosen.{curve_words.name}")
    sides_named = {"real": f"{truth.capitalize()} shower", "generated": f"Shower by {name}"}
    side_by_side.from_three_sides(
        {
            sides_named[picture.name]: side_by_side.shower_of(picture, showers.grid)
            for picture in showers.pictures
        }
    )


def _read(snapshot: JobSnapshot) -> SingleEnergyResult | None:
    with contextlib.suppress(OSError, ValidationError, GanRuntimeError):
        return SingleEnergyResult.model_validate_json(
            (snapshot.job.results / RESULT_FILE).read_bytes()
        )
    return None
