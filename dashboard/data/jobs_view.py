"""Data sets in the making: how far they are, a button to cancel, and how the last ones ended."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import actions, words
from gan_runtime.jobs.folder import JobLook
from gan_runtime.runtime import data_requests
from gan_runtime.runtime.runtime import Runtime

MAKING = "data.making"  # the job that this browser tab has asked for
SECONDS = 0.5  # between two looks at a job
MOST_ENDED = 20


def show(runtime: Runtime) -> None:
    """Everything that is being prepared, by whomever, and the end of what this tab has asked for."""
    for look in runtime.data_jobs():
        if look.is_live:
            progress(runtime, look)
        elif look.job.job_id == st.session_state.get(MAKING):
            _told(look)
            del st.session_state[MAKING]  # told once


def progress(runtime: Runtime, look: JobLook) -> None:
    """A bar that redraws alone; the page once more when the job has ended."""
    st.fragment(_bar, run_every=SECONDS)(runtime, look.job.job_id)


def ended(runtime: Runtime) -> None:
    """The last jobs about data and how they ended; nothing before the first."""
    looks = [look for look in runtime.data_jobs() if look.end is not None][:MOST_ENDED]
    if not looks:
        return
    with st.expander("How the last preparations ended"):
        rows = [
            (
                look.job.job_id,
                data_requests.name_of(look.asked),
                look.asked.asker,
                look.state,
                look.end.reason,
                look.end.at,
            )
            for look in looks
            if look.end is not None
        ]
        columns = ["Job", "Data set", "Asked for by", "State", "Reason", "Ended"]
        st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, key="data.ended")


def _bar(runtime: Runtime, job_id: str) -> None:
    look = runtime.job(job_id)
    if look is None or not look.is_live:
        runtime.refresh()
        st.rerun()
        return
    what = f"Data set {words.plain(data_requests.name_of(look.asked))}"
    if look.asked.kind == data_requests.SURVEY:
        what = "Preview"
    sentence = words.plain(look.progress.sentence) or "begins"
    bar, button = st.columns([5, 1], vertical_alignment="center")
    bar.progress(look.progress.share, text=f"{what}: {sentence}. This goes on when the page is closed.")
    if look.job.stop_file.exists():
        button.caption("cancelling …")
    elif button.button("Cancel", key=f"data.cancel.{job_id}", icon=":material/close:"):
        actions.succeeded(lambda: runtime.cancel_job(job_id))
        st.rerun(scope="fragment")


def _told(look: JobLook) -> None:
    """How it ended."""
    name = words.plain(data_requests.name_of(look.asked))
    if look.end is None:
        return
    if look.state == "finished":
        rows = words.things(int(look.end.result.get("rows", 0)), "picture")
        st.success(f"Data set {name} is ready: {rows}.", icon=":material/check_circle:")
    elif look.state == "cancelled":
        st.info(f"Data set {name}: {words.plain(look.end.reason)}", icon=":material/info:")
    else:
        st.error(f"Data set {name}: {words.plain(look.end.reason)}", icon=":material/error:")
