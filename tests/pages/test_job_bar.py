"""The progress bar of a background job in a state that tests of pages cannot produce."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobRequest
from gan_runtime.records.home import Home


def bar_then_page() -> None:
    """A page whose first render still shows the job of the snapshot `look`."""
    import streamlit as st

    from dashboard import widgets
    from dashboard.frame import session

    if st.session_state.setdefault("drawn", 0):
        st.text("the page once more")
        st.stop()
    st.session_state["drawn"] = 1
    button = widgets.EndButton("cancel")
    widgets.job_bar(session.runtime(), st.session_state["look"], lambda _: "64 images", button)


def test_a_deleted_job_folder_redraws_the_page(show: Callable[..., AppTest], home: Home) -> None:
    show("data")
    job = JobDir(home.jobs / "generate-0001")
    job.path.mkdir(parents=True)
    job.write_request(JobRequest(kind="generate", options={}, asker="a test"))
    [look] = job_queue.snapshots(home)
    shutil.rmtree(job.path)
    app = AppTest.from_function(bar_then_page, default_timeout=30)
    app.session_state["look"] = look
    app.run()
    assert not app.exception
    assert [text.value for text in app.text] == ["the page once more"]
