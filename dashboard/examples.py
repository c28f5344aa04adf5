"""The button that loads the example runs, for whoever wants to see pages full before training anything."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from dashboard import actions, change_buttons
from gan_runtime import bundles
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store.queries import RunRow


def offer(runtime: Runtime, key: str, rows: Sequence[RunRow] = ()) -> None:
    """Loads the bundles that come with the project; nothing where a copy of the project lacks them, or where `rows` hold their runs."""
    if _run_ids(bundles.examples()) <= {row.run_id for row in rows}:
        return
    if change_buttons.button(
        "Load example runs",
        key=f"examples.{key}",
        icon=":material/download:",
        type="tertiary" if rows else "secondary",
        help="Really trained runs that come with the project: MNIST, batch 64 to 512, both precisions, XLA on and off; and those of other sciences. "
        "They appear beside your own and can be deleted like these.",
    ):
        with st.spinner("Loading the example runs …"):
            new = actions.attempt(
                lambda: [runtime.commands.import_bundle(bundle) for bundle in bundles.examples()]
            )
        if new is not None:
            st.rerun()


@st.cache_data(show_spinner=False)
def _run_ids(files: Sequence[Path]) -> set[str]:
    ids: set[str] = set()
    for file in files:
        with zipfile.ZipFile(file) as bundle:
            ids |= {name.partition("/")[0] for name in bundle.namelist() if "/" in name}
    return ids
