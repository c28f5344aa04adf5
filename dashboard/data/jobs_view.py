"""Data sets in the making: how far they are, a button to cancel, and how the last ones ended."""

from __future__ import annotations

import base64

import pandas as pd
import streamlit as st

from dashboard import data_summary, tables, widgets, words
from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import loading, previews
from gan_runtime.jobs import data_jobs, job_queue
from gan_runtime.jobs.folder import JobLook

MAKING = "data.making"  # the job that this browser tab has asked for
MOST_ENDED = 20
SECONDS = 1.0  # between two looks at what is being made
PICTURE_WIDTH = 576


def show(runtime: Runtime) -> None:
    """Everything that is being prepared, by whomever, and the end of what this tab has asked for."""
    for look in job_queue.looks(runtime.home, data_jobs.PREPARE):
        if look.is_live:
            progress(runtime, look)
        elif look.job.job_id == st.session_state.get(MAKING):
            _told(runtime, look)
            del st.session_state[MAKING]  # told once


def progress(runtime: Runtime, look: JobLook) -> None:
    """See `job_bar.show`; below it what is being made, where the job draws that."""
    widgets.job_bar(runtime, look, _how_far, widgets.EndButton(f"data.cancel.{look.job.job_id}"))
    st.fragment(_picture, run_every=SECONDS)(look)


def ended(runtime: Runtime) -> None:
    """The last jobs about data and how they ended; nothing before the first."""
    looks = [look for look in job_queue.looks(runtime.home, data_jobs.PREPARE) if look.end is not None][
        :MOST_ENDED
    ]
    if not looks:
        return
    with st.expander("How the last preparations ended"):
        rows = [
            (
                look.job.job_id,
                data_jobs.name_of(look.asked),
                look.asked.asker,
                look.state,
                look.end.reason,
                look.end.at,
            )
            for look in looks
            if look.end is not None
        ]
        columns = ["Job", "Data set", "Asked for by", "State", "Reason", "Ended"]
        tables.show(pd.DataFrame(rows, columns=columns), hide_index=True, key="data.ended")


def _picture(look: JobLook) -> None:
    """The newest one, which redraws alone."""
    drawn = previews.read(look.job.work)
    if drawn is not None:
        # As an address that holds it: one of the server's would be gone with the next picture, before a slow browser asks for it.
        address = f"data:image/png;base64,{base64.b64encode(drawn).decode('ascii')}"
        st.image(address, width=PICTURE_WIDTH, alt="What is being made at this moment.")


def _how_far(look: JobLook) -> str:
    what = f"Data set {words.plain(data_jobs.name_of(look.asked))}"
    if look.asked.kind == data_jobs.SURVEY:
        what = "Preview"
    return f"{what}: {widgets.job_sentence(look)}"


def _told(runtime: Runtime, look: JobLook) -> None:
    """How it ended; of a new set the summary, which its card keeps."""
    name = words.plain(data_jobs.name_of(look.asked))
    if look.end is None:
        return
    if look.state == "finished":
        made = look.end.result
        rows = words.things(int(made.get("rows", 0)), data_summary.noun(made.get("fields", ())))
        st.success(f"Data set {name} is ready: {rows}.", icon=":material/check_circle:")
        made_set = loading.known(runtime.home).get(data_jobs.name_of(look.asked))
        if made_set is not None and made_set.preparation is not None:
            data_summary.show(made_set.preparation, "data.made")
    elif look.state == "cancelled":
        st.info(f"Data set {name}: {words.plain(look.end.reason)}", icon=":material/info:")
    else:
        st.error(f"Data set {name}: {words.plain(look.end.reason)}", icon=":material/error:")
