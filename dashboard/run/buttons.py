"""What a user can do with a run: stop it, resume it with the same or other learning rates, train it
again, compare it.
"""

from __future__ import annotations

import json

import streamlit as st

from dashboard import actions, queue_view, run_selection, words
from dashboard.frame import places
from dashboard.launch import fields
from gan_runtime import catalog
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.commands import queue
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.states import CUT_SHORT
from gan_runtime.spec import RunSpec
from gan_runtime.store.queries import RunRow
from gan_runtime.supervision.queue import changeable, resume_refusal

STOPPING_HELP = "The trainer finishes its step and saves a checkpoint. This takes some seconds."
LABEL, HELP = "Other rates", "Resume with other learning rates"  # the button is narrow


def stop_or_resume(runtime: Runtime, row: RunRow) -> None:
    """Two places, so that a second press on Stop does not resume the run."""
    stop_column, resume_column = st.columns(2, vertical_alignment="center")
    with stop_column:
        stop(runtime, row)
    with resume_column:
        if row.status in CUT_SHORT:
            resume(runtime, row)


def stop(runtime: Runtime, row: RunRow) -> None:
    """The stop button; nothing for a run that has ended."""
    if not row.is_live:
        return
    if runtime.home.run_dir(row.run_id).stop_file.exists():
        st.button(
            "Stopping …",
            key=f"stopping.{row.run_id}",
            icon="spinner",
            disabled=True,
            help=STOPPING_HELP,
        )
        return
    waits = row.status == "queued"
    actions.button(
        "Remove from queue" if waits else "Stop and save",
        key=f"stop.{row.run_id}",
        icon=":material/close:" if waits else ":material/stop_circle:",
        help=(
            "You can resume it later."
            if waits
            else "Saves a checkpoint, so that you can resume the run."
        ),
        on_click=_stop,
        args=(runtime, row.run_id),
    )


def _stop(runtime: Runtime, run_id: str) -> None:
    """Stops a run before the page is redrawn, so that the press shows at once."""
    try:
        runtime.commands.stop(run_id)
    except GanRuntimeError as error:
        st.toast(words.plain(str(error)), icon=":material/error:")


def resume(runtime: Runtime, row: RunRow) -> None:
    """Two buttons below each other; the second opens a form.

    Runs of a study have only the first.
    """
    refusal = resume_refusal(runtime.home.run_dir(row.run_id))
    is_pressed = actions.button(
        "Resume",
        icon=":material/resume:",
        width="stretch",
        disabled=bool(refusal),
        help=words.plain(refusal) or None,
    )
    if is_pressed and actions.succeeded(lambda: runtime.commands.resume(row.run_id)):
        st.rerun()
    if not refusal and row.study_id is None:
        with st.popover(LABEL, icon=":material/tune:", width="stretch", help=HELP):
            _form(runtime, row)


def _form(runtime: Runtime, row: RunRow) -> None:
    """The current learning rates; changes take effect with the next attempt."""
    st.caption(
        "The run continues from its newest checkpoint under the same name. Lower rates help"
        " after a NaN."
    )
    options, spec = RunSpec.options(row.workload), json.loads(row.spec)
    now = {name: f"{spec.get(name, options[name].default):g}" for name in changeable(row.workload)}
    with st.form(f"resume.{row.run_id}.{row.attempt}", border=False):
        typed = {
            name: st.text_input(options[name].label, now[name], help=options[name].help)
            for name in now
        }
        is_pressed = actions.form_button(
            "Resume with these", icon=":material/resume:", type="primary"
        )
    changes = {name: value for name, value in typed.items() if value != now[name]}
    if is_pressed and actions.succeeded(lambda: runtime.commands.resume(row.run_id, changes)):
        st.rerun()


def present(row: RunRow) -> None:
    """Opens the stage with this run; so does the key F."""
    if st.button(
        "Present",
        key=f"present.{row.run_id}",
        icon=":material/slideshow:",
        type="tertiary",
        shortcut="F",
        help="Images and losses large, for an audience.",
    ):
        st.switch_page(places.STAGE, query_params={"runs": row.run_id})


def next_steps(runtime: Runtime, row: RunRow) -> None:
    """Buttons of an ended run. A workload that this version lacks cannot be trained again."""
    if row.workload in catalog.WORKLOADS and st.button(
        "Run again with changes",
        icon=":material/replay:",
        help=(
            "Opens Launch with the options of this run. If it waited for a run that has not ended,"
            " that is filled in too."
        ),
    ):
        fields.fill_from_run(json.loads(row.spec), preset=row.run_id.rpartition("-")[0])
        waited_for = actions.attempt(lambda: queue.dependency_of(runtime.home.run_dir(row.run_id)))
        queue_view.fill_after(queue_view.AFTER_AT_LAUNCH, waited_for)
        st.switch_page(places.LAUNCH)
    if row.workload in catalog.WORKLOADS:
        st.page_link(
            places.TPU,
            label="Check on a TPU",
            icon=":material/memory:",
            query_params={"run": row.run_id},
            width="content",
        )
    earlier = previous(run_selection.runs(runtime.store), row)
    if earlier is not None:
        st.page_link(
            places.COMPARE,
            label="Compare with the previous run",
            icon=":material/stacked_line_chart:",
            query_params={"runs": f"{earlier.run_id},{row.run_id}"},
            width="content",
        )


def previous(rows: list[RunRow], row: RunRow) -> RunRow | None:
    """The newest earlier run of the same workload. `rows`: newest first."""
    return next(
        (
            other
            for other in rows
            if other.created_at < row.created_at and other.workload == row.workload
        ),
        None,
    )
