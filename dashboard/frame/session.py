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
from gan_runtime.runtime.runtime import Runtime


@st.cache_resource(show_spinner=False)
def runtime() -> Runtime:
    """Opened when the process starts, kept until it ends. Raises GanRuntimeError while the home cannot be opened."""
    return _open()


@st.cache_resource(show_spinner=False)
def host_look() -> HostLook:
    """The look at this host, begun by whoever asks first: it takes seconds of a core."""
    return HostLook()


def _open() -> Runtime:
    return Runtime.open(Home.choose(), host_look=host_look())


def open_early() -> None:
    """At the start of the process. What goes wrong is told by the pages, which try again."""
    with contextlib.suppress(GanRuntimeError):
        runtime()


@st.cache_resource(show_spinner=False)
def prepare_other_pages() -> None:
    """Once the first page is drawn, as both would take the processor from it: the libraries of all pages, so that none has to
    wait for them, and the look at the host. In a thread; later calls do nothing."""
    threading.Thread(target=_prepare, name="prepare-pages", daemon=True).start()


def _prepare() -> None:
    rooms = Path(__file__).resolve().parent.parent
    for path in sorted(rooms.glob("*/*view.py")):
        importlib.import_module(f"dashboard.{path.parent.name}.{path.stem}")
    host_look().begin()


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
