"""Buttons that change something: start, stop, resume. Every refusal becomes one sentence beside the button."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from dashboard import words
from dashboard.frame import places
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware import host_presets
from gan_runtime.spec import RunSpec
from gan_runtime.supervision.dependencies import After

Answer = TypeVar("Answer")


def start(runtime: Runtime, spec: RunSpec, preset: str, after: After | None = None) -> None:
    """Queues the run, to start after another one if need be, and goes to its page."""
    with st.spinner("Checking data and accelerator …"):
        run = attempt(lambda: runtime.commands.submit(spec, preset, after))
    if run is not None:
        st.switch_page(places.RUN, query_params={"run": run.run_id})


def start_preset(runtime: Runtime, name: str) -> None:
    """Queues a preset as this host trains it."""
    start(runtime, RunSpec.parse(host_presets.values(name)), name)


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
