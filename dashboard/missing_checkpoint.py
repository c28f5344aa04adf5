"""Why nothing can be generated or measured with a run's networks, and what to do."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard import actions, words
from gan_runtime.base.errors import TargetSettingError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store.queries import RunRow
from gan_runtime.targets import configuration

NOT_HERE = (
    "This run has no checkpoint here. A run saves one after each epoch; bundles, such as the"
    " example runs, contain none. Press Run again with changes, at the top of the page, to"
    " train one like it, which keeps its checkpoints."
)


def show(runtime: Runtime, row: RunRow) -> None:
    """The sentence, and a button that brings the checkpoint of a run on another host."""
    run = runtime.home.run_dir(row.run_id)
    if not row.is_live:
        st.info(NOT_HERE)
    elif row.status != "running" or not _is_apart(runtime, row):
        st.info("This run has no checkpoint yet. It saves one after each epoch.")
    elif run.fetch_file.exists():
        st.info("The newest checkpoint is being fetched.")
    else:
        st.info(f"This run trains on {words.plain(row.target)}. Its checkpoint comes at its end.")
        fetch = partial(runtime.commands.fetch_checkpoints, row.run_id)
        if actions.button("Fetch it now", icon=":material/download:") and actions.succeeded(fetch):
            st.rerun()


def _is_apart(runtime: Runtime, row: RunRow) -> bool:
    try:
        return configuration.is_apart(runtime.home, runtime.home.run_dir(row.run_id).spec())
    except TargetSettingError:
        return False
