"""The HTML of a page as the dashboard answers it: Streamlit's, and in it where the server is."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from streamlit import file_util

from dashboard.frame import front_page, places
from dashboard.frame.front_page import FrontPage
from dashboard.frame.web_guard import WebGuard
from gan_runtime.home import REPOSITORY

STATIC = Path(file_util.get_static_dir())
NAVIGATION = {"accept": "text/html,application/xhtml+xml", "host": "localhost"}


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for Streamlit."""
    await PlainTextResponse("inside")(scope, receive, send)


def ask(path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of an answer, from behind the guard as in app.py."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    raw = [(name.encode(), value.encode()) for name, value in (NAVIGATION | headers).items()]
    scope = {"type": "http", "path": path, "method": method, "headers": raw}
    # A thread of its own: the browser tests of the same process leave Playwright's event loop running in the main thread.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, WebGuard(FrontPage(inside))(scope, receive, send)).result()
    got = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], got, b"".join(message.get("body", b"") for message in sent[1:]).decode()


@pytest.mark.parametrize("name", ["", *sorted(front_page.NAMES - {"", "home"})])
def test_every_page_says_where_its_server_is_before_streamlits_script_begins(name: str) -> None:
    status, headers, html = ask(f"/{name}")
    assert status == 200
    assert html.index("window.__streamlit = ") < html.index('<script type="module"')
    own = (STATIC / "index.html").read_text(encoding="utf-8")
    assert html.replace(front_page.SERVER, "") == own, "all else is Streamlit's"
    assert headers["cache-control"] == "no-cache"
    assert headers["content-security-policy"].startswith("default-src 'self'")


def test_every_page_is_known_by_its_name() -> None:
    pages = {path.stem for path in (REPOSITORY / "pages").glob("*.py")}
    assert pages == {path.stem for path in places.PAGES} == front_page.NAMES - {""}


@pytest.mark.parametrize(
    "path", ["/_stcore/health", "/static/js/index.js", "/live/_stcore/health", "/nowhere"]
)
def test_all_else_is_streamlits_to_answer(path: str) -> None:
    assert ask(path)[2] == "inside"


def test_only_a_page_that_is_opened_is_answered() -> None:
    assert ask("/live", accept="*/*")[2] == "inside"
    assert ask("/live", "POST")[2] == "inside"
    assert ask("/live", host="evil.example")[0] == 400


@pytest.mark.parametrize("html", [b"<html><head></head></html>", b"\xff\xfe", None])
def test_a_streamlit_that_is_built_otherwise_answers_by_itself(tmp_path: Path, html: bytes | None) -> None:
    if html is not None:
        (tmp_path / "index.html").write_bytes(html)
    assert front_page.page(tmp_path) == ""
