"""The one runtime of this Streamlit process. Small and stable: editing `runtime` would make a second one."""

from __future__ import annotations

import contextlib
import importlib
import threading
from pathlib import Path

import streamlit as st

from dashboard import words
from gan_runtime.errors import GanRuntimeError
from gan_runtime.home import Home
from gan_runtime.host_look import HostLook
from gan_runtime.runtime import Runtime


@st.cache_resource(show_spinner=False)
def runtime() -> Runtime:
    """Opened when the process starts, kept until it ends. Raises GanRuntimeError while the home cannot be opened."""
    return _open()


@st.cache_resource(show_spinner=False)
def host_look() -> HostLook:
    """The look at this host. It takes seconds, so it begins with the process, before the runs are opened."""
    look = HostLook()
    look.begin()
    return look


def _open() -> Runtime:
    return Runtime.open(Home.choose(), host_look=host_look())


def open_early() -> None:
    """At the start of the process. What goes wrong is told by the pages, which try again."""
    host_look()
    threading.Thread(target=_load_pages, name="load-pages", daemon=True).start()
    with contextlib.suppress(GanRuntimeError):
        runtime()


def _load_pages() -> None:
    """Imports what the pages are made of while the first browser still loads its own part, so that no page pays for it."""
    for path in sorted(Path(__file__).parent.glob("*_view.py")):
        importlib.import_module(f"dashboard.{path.stem}")


def close() -> None:
    """At the end of the process: trainers go on, the next start finds them."""
    with contextlib.suppress(GanRuntimeError):
        runtime().close()


def stop_without_runtime() -> None:
    """Shows in one sentence why the stored runs cannot be opened, instead of the page. The next reload tries again."""
    try:
        trouble = runtime().trouble
    except GanRuntimeError as error:
        st.title("The stored runs cannot be opened")
        st.error(words.plain(str(error)), icon=":material/error:")
        st.button("Try again", type="primary")
        st.stop()
    if trouble:
        st.error(f"The runtime cannot keep up with the runs: {words.plain(trouble)}", icon=":material/error:")
