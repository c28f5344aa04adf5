"""What would be made of the files in the form, before anything is stored; then the job that makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from dashboard import actions, data_summary, words
from dashboard.data import form as data_form
from dashboard.data import jobs_view
from dashboard.data.form import Wanted
from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import previews
from gan_runtime.data.preparations import PREPARATIONS
from gan_runtime.data.summary import Summary
from gan_runtime.jobs import data_jobs
from gan_runtime.jobs.data_jobs import GRID_FILE
from gan_runtime.jobs.folder import JobLook

GRID_WIDTH = 420


def show(runtime: Runtime, wanted: Wanted) -> None:
    """The button that prepares the set; of pictures only after a look: a button, then how far the look is, then its answer."""
    if wanted.source is None or not PREPARATIONS[wanted.preparation].has_preview:
        _prepare(runtime, wanted)
    else:
        _after_a_look(runtime, wanted, wanted.source)


def _after_a_look(runtime: Runtime, wanted: Wanted, source: Path) -> None:
    look = data_jobs.newest_look(
        runtime.home, data_jobs.preview_of(wanted.preparation, source, wanted.options)
    )
    if look is not None and look.is_live:
        jobs_view.progress(runtime, look)
    elif look is not None and look.state == "finished" and look.end is not None:
        _answer(look, look.end.result)
        _prepare(runtime, wanted)
    else:
        if look is not None and look.state in ("failed", "lost") and look.end is not None:
            st.error(words.plain(look.end.reason), icon=":material/error:")
        _ask_for_a_look(runtime, wanted, source, "Preview" if look is None else "Preview again")


def _ask_for_a_look(runtime: Runtime, wanted: Wanted, source: Path, label: str) -> None:
    pressed = actions.button(label, type="primary", icon=":material/visibility:", key="data.preview")
    st.caption("Nothing is stored yet: every picture is looked at, and you see what would become of it.")
    if (
        pressed
        and actions.attempt(
            lambda: runtime.commands.request_job(
                data_jobs.SURVEY, data_jobs.preview_of(wanted.preparation, source, wanted.options)
            )
        )
        is not None
    ):
        st.rerun()


def _answer(look: JobLook, found: dict[str, Any]) -> None:
    summary = Summary.model_validate(found)
    noun = data_summary.noun(found.get("fields", ()))
    grid, numbers = st.columns([3, 2], gap="large")
    with grid:
        rows = _by_class(np.load(look.job.results / GRID_FILE), found["grid_labels"])
        st.image(
            previews.of_pairs(rows) if noun == data_summary.PAIR else previews.png(rows),
            width=GRID_WIDTH,
            alt=f"{words.things(len(rows), noun)} as they would be stored{', ordered by class' if summary.counts else ''}.",
        )
        order = (
            "ordered by class"
            if summary.counts
            else "source left, target right"
            if noun == data_summary.PAIR
            else ""
        )
        st.caption(f"{', '.join(filter(None, ('As they would be stored', order)))}.")
    with numbers:
        with st.container(horizontal=True):
            st.metric(
                f"{noun.capitalize()}s",
                words.count(found["rows"]),
                help="Those that a run trains on.",
                width=120,
            )
            st.metric("Held out", words.count(summary.held_out), width=120)
            st.metric("On disk", words.size(found["bytes_on_disk"]), width=120)
        if noun != data_summary.PAIR and not summary.counts:
            st.caption("No labels: the pictures lie in one folder.")
        if not summary.skipped.in_words():
            st.caption("Every file can be used.")
        data_summary.show(summary, "data.preview")


def _prepare(runtime: Runtime, wanted: Wanted) -> None:
    label = f"Prepare {wanted.name}"
    if actions.button(label, type="primary", icon=":material/inventory_2:", key="data.prepare"):
        job = actions.attempt(
            lambda: runtime.commands.prepare_data(
                wanted.preparation, wanted.name, wanted.source, wanted.options
            )
        )
        if job is not None:
            st.session_state[jobs_view.MAKING] = job.job_id
            data_form.start_again()
            st.rerun()


def _by_class(rows: NDArray[np.uint8], labels: list[str]) -> NDArray[np.uint8]:
    return rows[np.argsort(labels, kind="stable")] if labels else rows
