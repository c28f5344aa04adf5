"""The one runtime of this Streamlit process."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import threading
from pathlib import Path

from dashboard.frame import access
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.commands.runtime import Runtime

_first_page = threading.Lock()  # never released: the other pages are prepared once in a process


def runtime() -> Runtime:
    """The runtime of the process, for the user of the page.

    Raises GanRuntimeError while the home cannot be opened.
    """
    return opened().for_actor(access.asker())


def opened() -> Runtime:
    """Opened when the process starts, kept until it ends. Raises as `runtime`."""
    return access.post().runtime()


def open_early() -> None:
    """At the start of the process, with what every page draws with.

    The pages report what goes wrong, and try again.
    """
    with contextlib.suppress(GanRuntimeError):
        opened()
    importlib.import_module("dashboard.widgets")


def prepare_other_pages() -> None:
    """Once the first page is drawn, as both would take the processor from it: the libraries of all
    pages, so that none has to wait for them, and the check of the host. In a thread; later calls do
    nothing.
    """
    if _first_page.acquire(blocking=False):
        threading.Thread(target=_prepare, name="prepare-pages", daemon=True).start()


def _prepare() -> None:
    importlib.import_module(
        "streamlit.emojis"
    )  # which a page else waits for when it first draws buttons
    dashboard = Path(__file__).resolve().parent.parent
    for path in sorted((*dashboard.glob("*view.py"), *dashboard.glob("*/*view.py"))):
        importlib.import_module(".".join(path.relative_to(dashboard.parent).with_suffix("").parts))
    # What was loaded stays until the process ends. A pass over all of it takes 0.1 s of a core, and
    # there are many in an hour.
    gc.collect()
    gc.freeze()
    atexit.register(
        gc.unfreeze
    )  # else DuckDB's module complains at the end that it was not cleared away
    access.host_look().begin()


def close() -> None:
    """At the end of the process: trainers continue, the next start finds them."""
    access.post().close()
