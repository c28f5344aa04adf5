"""The HTML of a page: Streamlit's own, and in it where the server is.

On a page's address, such as /live, Streamlit's script looks for the server one level too deep first, is refused, and pauses before it
looks where the server is. The reasons stand in docs/decisions/0063-first-views.md.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import file_util

from dashboard.frame import places

NAMES = {"", *(path.stem for path in places.PAGES)}
# As far below the server's address as this page: as the relative addresses of Streamlit's own HTML are meant.
SERVER = '<script>window.__streamlit = {BACKEND_BASE_URL: new URL("./", location.href).href}</script>'
BEFORE = '<script type="module"'


class FrontPage:
    """The middleware: answers who opens a page with its HTML, and passes on everything else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A browser keeps the answer no longer than Streamlit's own: it asks each time."""
        html = page(Path(file_util.get_static_dir())) if _is_opened(scope) else ""
        answer = HTMLResponse(html, headers={"Cache-Control": "no-cache"}) if html else self._app
        await answer(scope, receive, send)


def _is_opened(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    return scope["path"].removeprefix("/") in NAMES and "text/html" in Headers(scope=scope).get("accept", "")


@cache
def page(static: Path) -> str:
    """Of the Streamlit whose files these are; empty where its HTML is built otherwise, so that it answers by itself."""
    try:
        html = (static / "index.html").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    return html.replace(BEFORE, SERVER + BEFORE) if html.count(BEFORE) == 1 else ""
