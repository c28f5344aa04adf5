"""The dashboard: `make run`, or `streamlit run app.py`. Opens the runtime when the process starts,
closes it at the end.

The pages are framed by dashboard/navigation.py.
"""

import gc
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from dashboard.frame import freed_memory, sign_in
from dashboard.frame.front_page import FrontPage
from dashboard.frame.upload_spool import UploadSpool
from dashboard.frame.web_guard import WebGuard


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Runs that trained on while no dashboard was up are taken over at once, not at the first page
    view.

    In a thread, its libraries with it, so that a browser can load its own part of the page
    meanwhile.
    """
    freed_memory.give_back()
    opening = threading.Thread(target=open_dashboard, name="open-dashboard", daemon=True)
    opening.start()
    yield
    opening.join()  # a process that ends in the midst of an import complains of what it leaks
    from dashboard.frame import session

    session.close()


def open_dashboard() -> None:
    """With its libraries.

    Nothing that is loaded here is garbage: to look for some while it is took a quarter of the time.
    """
    gc.disable()
    try:
        from dashboard.frame import session

        session.open_early()
    finally:
        gc.enable()


sign_in.check_at_start()
app = st.App(
    Path(__file__).parent / "dashboard" / "navigation.py",
    lifespan=lifespan,
    middleware=[Middleware(WebGuard), Middleware(FrontPage), Middleware(UploadSpool)],
)
