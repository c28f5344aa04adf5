"""Fig. 11 of the paper: the descent of both networks on their loss surfaces, and the button that
computes the surfaces.
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
from gan_runtime.catalog.declarations import Declarations
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
    rows = {row.run_id: row for row in queries.runs(runtime.store)}
    with_descent = [
        rows[run_id] for run_id in queries.runs_with_descent(runtime.store) if run_id in rows
    ]
    names = {row.run_id: widgets.title(row) for row in run_selection.visible_runs(with_descent)}
    if not names:
        paper_figure.claim(references.REDUCED, verdicts.NO_DESCENT)
        return
    run_id = st.selectbox(
        "Run",
        list(names),
        format_func=names.__getitem__,
        key="paper.11.run",
        label_visibility="collapsed",
    )
    surfaces = queries.surfaces(runtime.store, run_id)
    if surfaces:
        shortfalls = verdicts.shortfalls(
            queries.conditions(runtime.store, [run_id]), 1, verdicts.OF_ONE_RUN
        )
        paper_figure.source_of_run(runtime.store, run_id, shortfalls)
        paper_figure.claim(
            references.REDUCED, verdicts.judge(paper_words.descends(surfaces), shortfalls)
        )
        st.markdown(paper_words.descent(surfaces))
        _maps(surfaces, run_id, queries.declared_of(runtime.store, [run_id]))
    _job(runtime, run_id, bool(surfaces))


def _maps(surfaces: list[SurfaceRow], run_id: str, declaration: Declarations) -> None:
    for column, surface in zip(st.columns(len(surfaces), gap="medium"), surfaces, strict=True):
        with column:
            plots.steady_chart(
                partial(_map, surface, declaration),
                charts.named_path(
                    surface.path_epoch, surface.path_x, surface.path_y, surface.path_loss
                ),
                f"paper.11.{run_id}.{surface.network}.{len(surface.x)}",
            )
    st.caption(
        "Each map is the plane in which that network's weights moved most. Its axes are shares"
        " of the weights' norm. Darker gray means a higher loss; lines connect equal losses. The"
        " other network is fixed at its final weights, so early points differ from the losses"
        " measured then."
    )


def _map(surface: SurfaceRow, declaration: Declarations, path: pd.DataFrame) -> alt.LayerChart:
    return charts.descent(
        charts.surface_cells(surface.x, surface.y, surface.loss),
        charts.contour_lines(surface.x, surface.y, surface.loss),
        path,
        title=declaration.network(surface.network).title,
        subtitle=f"Loss from {surface.loss.min():.2g} to {surface.loss.max():.2g}",
        color=chart_panels.network_color(declaration, surface.network),
    )


def _job(runtime: Runtime, run_id: str, is_drawn: bool) -> None:
    """A button, or the progress of the job."""
    snapshot = jobs.newest_request(runtime.home, run_id, "loss_surface")
    if snapshot is not None and snapshot.is_live:
        widgets.job_bar(runtime, snapshot, _progress_text, STOP)
        return
    if snapshot is not None and snapshot.end is not None and snapshot.state != "finished":
        st.warning(
            f"No surface was computed: {words.plain(snapshot.end.reason)}",
            icon=":material/warning:",
        )
    label = "Compute it again" if is_drawn else "Compute the loss surface"
    if (
        len(checkpoints.snapshot_epochs(runtime.home.run_dir(run_id).snapshots))
        >= checkpoints.FEWEST_SNAPSHOTS
        and actions.button(label, icon=":material/landscape:", key="paper.11.start")
        and actions.attempt(lambda: runtime.commands.evaluate(run_id, "loss_surface")) is not None
    ):
        st.rerun()


def _progress_text(snapshot: JobSnapshot) -> str:
    progress = snapshot.progress
    return (
        f"Computing {progress.done} of {progress.total} losses"
        if progress.total
        else "Loading the networks"
    )
