"""How far a background job is, and the button that ends it. Every page that waits for a job shows it like this."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from dashboard import actions, change_buttons, words
from gan_runtime.base.errors import JobError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobLook

SECONDS = 0.5  # between two looks at a job


@dataclass(frozen=True)
class EndButton:
    """`pressed`: what stands in its place until the job has ended."""

    key: str
    label: str = "Cancel"
    pressed: str = "cancelling …"


def show(runtime: Runtime, look: JobLook, told: Callable[[JobLook], str], button: EndButton) -> None:
    """A bar that redraws alone; the page once more when the job has ended. `told`: what the job does, without a full stop."""
    st.fragment(_bar, run_every=SECONDS)(runtime, look.job.job_id, told, button)


def now(look: JobLook) -> str:
    """What the job itself says that it does."""
    return words.plain(look.progress.sentence) or "begins"


def _bar(runtime: Runtime, job_id: str, told: Callable[[JobLook], str], button: EndButton) -> None:
    look = _look(runtime, job_id)
    if look is None or not look.is_live:
        runtime.refresh()
        st.rerun()
        return
    bar, beside = st.columns([5, 1], vertical_alignment="center")
    bar.progress(look.progress.share, text=f"{told(look)}. This goes on when the page is closed.")
    if look.job.stop_file.exists():
        beside.caption(button.pressed)
        return
    with beside:
        asked = change_buttons.button(button.label, key=button.key, icon=":material/close:")
    if asked:
        actions.succeeded(lambda: runtime.commands.cancel_job(job_id))
        # The whole page: `scope="fragment"` is an error when the press arrives while the page is drawn.
        st.rerun()


def _look(runtime: Runtime, job_id: str) -> JobLook | None:
    """None when its folder is gone: a tab that slept for days asks for a job that has long been forgotten."""
    with contextlib.suppress(JobError):
        return job_queue.job_dir(runtime.home, job_id).look()
    return None
