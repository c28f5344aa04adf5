"""The HTML of a page: Streamlit's own, with what its script would otherwise ask for, one request
after another.

The server's address: on an address such as /run, the script asks one level too deep first, is
refused, and pauses. The scripts of the page's first elements: they load while the server draws
the page, not after its elements arrive. Reasons: docs/decisions/24-pages-under-load.md.

Also the scripts refusal.js (why a page does not connect), chart_menu.js (charts as SVG and CSV),
and browser_notices.js (browser notifications, from NOTICES).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import file_util

from dashboard.frame import places
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.base.formats import FORMULA_BEGINNINGS

# Streamlit's names of the scripts that draw the first screen of each page.
ALWAYS, CHARTS, TABLES = ("Html", "Button", "PageLink"), ("ArrowVegaLiteChart",), ("DataFrame",)
PARTS = {
    "": ("ImageList",),
    "run": ("Selectbox", "Progress", "Metric", "ImageList"),
    "run/histograms": ("Selectbox", "ButtonGroup", "Slider", *CHARTS),
    "run/evaluation": ("Selectbox", "Metric", *CHARTS, *TABLES),
    "run/log": ("Selectbox", *TABLES),
    "run/options": ("Selectbox", *TABLES),
    "runs": ("TextInput", "ButtonGroup", *TABLES),
    "compare": ("Multiselect", "DownloadButton", *TABLES),
    "compare/curves": ("Multiselect", "Selectbox", *CHARTS),
    "studies": ("Selectbox", "Progress"),
    "launch": ("ButtonGroup", "Selectbox", "TextInput", "Metric"),
}
NAMES = {"", *(path.stem for path in places.PAGES)}
# As far below the server's address as this page, like the relative addresses in Streamlit's HTML.
SERVER = (
    '<script>window.__streamlit = {BACKEND_BASE_URL: new URL("./", location.href).href}</script>'
)
PRELOAD = """<script type="module">
for (const href of %s) document.head.append(Object.assign(document.createElement("link"), {rel: "modulepreload", crossOrigin: "", href}))
</script>"""  # noqa: E501


def _script(file: str) -> str:
    return Path(__file__).with_name(file).read_text(encoding="utf-8")


REFUSAL = f"<script>\n{_script('refusal.js')}</script>"
CHART_MENU = f"<script>\n({_script('chart_menu.js')})({json.dumps(FORMULA_BEGINNINGS)})</script>"
BROWSER_NOTICES = f"<script>\n{_script('browser_notices.js')}</script>"
NOTICES = "/notices.json"  # recent events for browser_notices.js
NOTICES_AGE_S = 5.0
FIRST_SCRIPT, HEAD_END = '<script type="module"', "</head>"


class FrontPage:
    """The middleware: serves the HTML of a page, and passes on everything else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request; browsers revalidate a page each time, as with Streamlit's own."""
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> ASGIApp:
        if scope["type"] == "http" and (scope["method"], scope["path"]) == ("GET", NOTICES):
            return _answer_notices
        if not _is_opened(scope):
            return self._app
        name = scope["path"].removeprefix("/")
        query = scope.get("query_string", b"").decode("latin-1")
        tab = dict(parse_qsl(query)).get(places.TAB_KEY, "")
        part = f"{name}/{tab}" if f"{name}/{tab}" in PARTS else name
        html = page(Path(file_util.get_static_dir()), part) if name in NAMES else ""
        return HTMLResponse(html, headers={"Cache-Control": "no-cache"}) if html else self._app


async def _answer_notices(scope: Scope, receive: Receive, send: Send) -> None:
    """In a thread, because it queries the database."""
    events = await run_in_threadpool(_recent_events)
    answer = JSONResponse(events, headers={"Cache-Control": "no-store"})
    await answer(scope, receive, send)


def _recent_events() -> list[dict[str, str]]:
    """The newest events, latest first; none while the home cannot be opened. `ended`: when the
    attempt ended, "" while it trains.
    """
    from dashboard.frame import session  # after the start of the server
    from gan_runtime.records.states import ENDED
    from gan_runtime.supervision import notifications

    try:
        notices = session.shared_runtime().store.lately(notifications.recent, age_s=NOTICES_AGE_S)
    except GanRuntimeError:
        return []
    return [
        {
            "id": notice.key,
            "title": notice.title,
            "text": notice.text,
            "run": notice.document["run_id"],
            "ended": notice.document["at"] if notice.document["status"] in ENDED else "",
        }
        for notice in notices
    ]


def _is_opened(scope: Scope) -> bool:
    """Whether a user opens a page, as opposed to a script that loads a file."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    return "text/html" in Headers(scope=scope).get("accept", "")


@cache
def page(static: Path, name: str) -> str:
    """The HTML of a page with Streamlit's files; empty if its HTML has another form, so that
    Streamlit answers.
    """
    try:
        html = (static / "index.html").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    if html.count(FIRST_SCRIPT) != 1 or html.count(HEAD_END) != 1:
        return ""
    preloads = [
        f"./{file}" for file in files(static, (*ALWAYS, *PARTS.get(name, ()))) if file not in html
    ]
    preload = PRELOAD % json.dumps(preloads) if preloads else ""
    return html.replace(FIRST_SCRIPT, SERVER + FIRST_SCRIPT).replace(
        HEAD_END, preload + REFUSAL + CHART_MENU + BROWSER_NOTICES + HEAD_END
    )


def files(static: Path, parts: tuple[str, ...]) -> list[str]:
    """The script files of these parts and their imports, from the manifest of Streamlit's build;
    none if that has another form.
    """
    try:
        chunks: dict[str, Any] = json.loads((static / "manifest.json").read_text(encoding="utf-8"))
        waiting = [key for key, chunk in chunks.items() if chunk.get("name") in parts]
        paths: dict[str, str] = {}
        while waiting:
            key = waiting.pop(0)
            if key not in paths:
                paths[key] = str(chunks[key]["file"])
                waiting += chunks[key].get("imports", ())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []
    return [file for file in paths.values() if file.endswith(".js") and (static / file).is_file()]
