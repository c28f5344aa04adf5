"""Buttons that change something, disabled with the reason for viewers, and what a press does.

A disabled button spares a viewer a useless press and protects nothing: `commands` refuses a
forged press (gan_runtime/records/record.py). Every refusal becomes one sentence next to the button.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from dashboard import words
from dashboard.frame import access, places
from gan_runtime import bundles
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware import machine
from gan_runtime.spec import RunSpec
from gan_runtime.store.queries import RunRow
from gan_runtime.supervision.admission import Dependency

Answer = TypeVar("Answer")


def button(
    label: str, *, disabled: bool = False, help: str | None = None, **arguments: Any
) -> bool:
    """`st.button`, for operators."""
    refusal = access.actor().refusal
    return st.button(label, disabled=disabled or bool(refusal), help=refusal or help, **arguments)


def form_button(label: str, **arguments: Any) -> bool:
    """`st.form_submit_button`, for operators."""
    refusal = access.actor().refusal
    return st.form_submit_button(label, disabled=bool(refusal), help=refusal or None, **arguments)


def start(runtime: Runtime, spec: RunSpec, preset: str, after: Dependency | None = None) -> None:
    """Queues the run, after another one if given, and opens its page."""
    with st.spinner("Checking data and accelerator …"):
        run = attempt(lambda: runtime.commands.submit(spec, preset, after))
    if run is not None:
        st.switch_page(places.RUN, query_params={"run": run.run_id})


def start_preset(runtime: Runtime, name: str) -> None:
    """Queues a preset as this host trains it."""
    start(runtime, RunSpec.parse(machine.preset_values(name)), name)


def attempt(action: Callable[[], Answer]) -> Answer | None:
    """The action's answer, or None after showing why it was refused."""
    try:
        return action()
    except GanRuntimeError as error:
        st.error(words.plain(str(error)), icon=":material/error:")
        return None


def succeeded(action: Callable[[], object]) -> bool:
    """Whether the action was done; if not, its reason is shown."""

    def done() -> bool:
        action()
        return True

    return attempt(done) is not None


def offer_examples(runtime: Runtime, key: str, rows: Sequence[RunRow] = ()) -> None:
    """A button that loads the bundles of the project; nothing where they are missing, or where
    `rows` already include their runs.
    """
    if _run_ids(bundles.examples()) <= {row.run_id for row in rows}:
        return
    if button(
        "Load example runs",
        key=f"examples.{key}",
        icon=":material/download:",
        type="tertiary" if rows else "secondary",
        help=(
            "Loads trained runs that come with the project: MNIST at batch 64 to 512, both"
            " precisions, XLA on and off, and both simulations. You can delete them like your own"
            " runs."
        ),
    ):
        with st.spinner("Loading the example runs …"):
            new = attempt(
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
