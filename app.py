"""The dashboard: `make run`, or `streamlit run app.py`.

Opens the runtime when the process starts and closes it at the end. dashboard/navigation.py
frames the pages.
"""

import gc
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from dashboard.frame import freed_memory, page_errors, sign_in
from dashboard.frame.front_page import FrontPage
from dashboard.frame.upload_spool import UploadSpool
from dashboard.frame.web_guard import WebGuard


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Opens the runtime when the server starts, not at the first page view, so that runs that
    outlived an earlier dashboard are supervised at once.

    In a thread, with its libraries, so that a browser can load its part of the page meanwhile.
    """
    freed_memory.give_back()
    opening = threading.Thread(target=open_dashboard, name="open-dashboard", daemon=True)
    opening.start()
    yield
    opening.join()  # a process that ends during an import complains about leaks
    from dashboard.frame import session

    session.close()


def open_dashboard() -> None:
    """Opens the runtime and loads its libraries.

    Nothing loaded here is garbage: searching for some took a quarter of the time.
    """
    gc.disable()
    try:
        from dashboard.frame import session

        session.open_early()
    finally:
        gc.enable()


sign_in.check_at_start()
page_errors.log_tracebacks_once()
app = st.App(
    Path(__file__).parent / "dashboard" / "navigation.py",
    lifespan=lifespan,
    middleware=[Middleware(WebGuard), Middleware(FrontPage), Middleware(UploadSpool)],
    on_script_error=page_errors.show,
)
