"""Fig.

11 on the Paper page: the descent of both networks on their loss surfaces, and the button that
computes them.
"""

from __future__ import annotations

from functools import partial

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import actions, chart_panels, plots, run_selection, widgets, words
from dashboard.paper import charts, verdicts
from dashboard.paper import figure as paper_figure
from dashboard.paper import words as paper_words
from gan_runtime.catalog.declared import Declared
from gan_runtime.commands.runtime import Runtime
from gan_runtime.evaluation import jobs
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.store import queries
from gan_runtime.store.queries import SurfaceRow
from gan_runtime.studies import references
from gan_runtime.training import checkpoints

STOP = widgets.EndButton("paper.11.stop", "Stop", "stopping …")


def descent(runtime: Runtime) -> None:
    """The surfaces of a picked run, or what to do to get some."""
    known = {row.run_id: row for row in queries.runs(runtime.store)}
    kept = [known[run_id] for run_id in queries.runs_with_descent(runtime.store) if run_id in known]
    names = {row.run_id: widgets.title(row) for row in run_selection.offered(kept)}
    if not names:
        paper_figure.claim(references.REDUCED, verdicts.NO_DESCENT)
        return
    picked = st.selectbox(
        "Run",
        list(names),
        format_func=names.__getitem__,
        key="paper.11.run",
        label_visibility="collapsed",
    )
    surfaces = queries.surfaces(runtime.store, picked)
    if surfaces:
        unlike = verdicts.shortfalls(
            queries.conditions(runtime.store, [picked]), 1, verdicts.OF_ONE_RUN
        )
        paper_figure.source_of_run(runtime.store, picked, unlike)
        paper_figure.claim(
            references.REDUCED, verdicts.judged(paper_words.descends(surfaces), unlike)
        )
        st.markdown(paper_words.descent(surfaces))
        _maps(surfaces, picked, queries.declared_of(runtime.store, [picked]))
    _job(runtime, picked, bool(surfaces))


def _maps(surfaces: list[SurfaceRow], run_id: str, known: Declared) -> None:
    for column, one in zip(st.columns(len(surfaces), gap="medium"), surfaces, strict=True):
        with column:
            plots.steady_chart(
                partial(_map, one, known),
                charts.named_path(one.path_epoch, one.path_x, one.path_y, one.path_loss),
                f"paper.11.{run_id}.{one.network}.{len(one.x)}",
            )
    st.caption(
        "Each map is the plane in which that network's weights moved most; its axes tell how far,"
        " as a share of the weights' own norm. The stronger the grey, the higher the loss; along a"
        " line it is the same. The other network stands as it was at the end, so the height under"
        " an early point is not the loss that was measured then."
    )


def _map(one: SurfaceRow, known: Declared, path: pd.DataFrame) -> alt.LayerChart:
    return charts.descent(
        charts.surface_cells(one.x, one.y, one.loss),
        charts.contour_lines(one.x, one.y, one.loss),
        path,
        title=known.network(one.network).title,
        subtitle=f"Loss from {one.loss.min():.2g} to {one.loss.max():.2g} nats",
        color=chart_panels.network_color(known, one.network),
    )


def _job(runtime: Runtime, run_id: str, drawn: bool) -> None:
    """A button, or how far the job is while it runs."""
    look = jobs.newest_request(runtime.home, run_id, "loss_surface")
    if look is not None and look.is_live:
        widgets.job_bar(runtime, look, _how_far, STOP)
        return
    if look is not None and look.end is not None and look.state != "finished":
        st.warning(
            f"No surface was computed: {words.plain(look.end.reason)}", icon=":material/warning:"
        )
    label = "Compute it again" if drawn else "Compute the loss surface"
    if (
        len(checkpoints.snapshot_epochs(runtime.home.run_dir(run_id).snapshots))
        >= checkpoints.FEWEST_SNAPSHOTS
        and actions.button(label, icon=":material/landscape:", key="paper.11.start")
        and actions.attempt(lambda: runtime.commands.evaluate(run_id, "loss_surface")) is not None
    ):
        st.rerun()


def _how_far(look: JobSnapshot) -> str:
    known = look.progress
    return (
        f"Computing {known.done} of {known.total} losses" if known.total else "Loading the networks"
    )
