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

_first_page = threading.Lock()  # never released: other pages are prepared once per process


def runtime() -> Runtime:
    """The runtime of the process, for the user of the page.

    Raises GanRuntimeError while the home cannot be opened.
    """
    return shared_runtime().for_actor(access.actor())


def shared_runtime() -> Runtime:
    """The process's runtime, opened at its start. Raises as `runtime`."""
    return access.home_access().runtime()


def open_early() -> None:
    """Opens the runtime and imports what every page draws with, at the start of the process.

    Errors are left to the pages, which report them and try again.
    """
    with contextlib.suppress(GanRuntimeError):
        shared_runtime()
    importlib.import_module("dashboard.widgets")


def prepare_other_pages() -> None:
    """Imports the libraries of all pages, checks the host and loads TensorFlow for the first run,
    in a thread, once the first page is drawn; earlier, all would slow it down. Later calls do
    nothing.
    """
    if _first_page.acquire(blocking=False):
        threading.Thread(target=_prepare, name="prepare-pages", daemon=True).start()


def _prepare() -> None:
    with contextlib.suppress(GanRuntimeError):  # the pages report it
        shared_runtime().expect_a_run()
    importlib.import_module("streamlit.emojis")  # otherwise imported by the first button
    dashboard = Path(__file__).resolve().parent.parent
    for path in sorted((*dashboard.glob("*view.py"), *dashboard.glob("*/*view.py"))):
        importlib.import_module(".".join(path.relative_to(dashboard.parent).with_suffix("").parts))
    # These modules stay until the process ends. A collection over all of them takes 0.1 s, many
    # times an hour.
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # otherwise DuckDB's module reports leaks at exit
    access.host_probe().begin()


def close() -> None:
    """Closes the runtime at the end of the process. Trainers continue, as the next start sees."""
    access.home_access().close()
