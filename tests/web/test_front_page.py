"""The HTML that the dashboard serves for a page: Streamlit's, plus the address of the server."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
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
from gan_runtime.records.home import REPOSITORY

STATIC = Path(file_util.get_static_dir())
NAVIGATION = {"accept": "text/html,application/xhtml+xml", "host": "localhost"}


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    """A substitute for Streamlit."""
    await PlainTextResponse("inside")(scope, receive, send)


def ask(
    path: str, method: str = "GET", query: str = "", **headers: str
) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of a response, through the guard as in app.py."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    raw = [(name.encode(), value.encode()) for name, value in (NAVIGATION | headers).items()]
    scope = {
        "type": "http",
        "path": path,
        "method": method,
        "headers": raw,
        "query_string": query.encode(),
    }
    # A separate thread: browser tests in the same process leave Playwright's event loop running in
    # the main thread.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, WebGuard(FrontPage(inside))(scope, receive, send)).result()
    got = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return (
        sent[0]["status"],
        got,
        b"".join(message.get("body", b"") for message in sent[1:]).decode(),
    )


def without_ours(html: str) -> str:
    """The page without the scripts that every page gets."""
    for script in (
        front_page.SERVER,
        front_page.REFUSAL,
        front_page.CHART_MENU,
        front_page.BROWSER_NOTICES,
    ):
        assert html.count(script) == 1
        html = html.replace(script, "")
    return html


@pytest.mark.parametrize("name", ["", *sorted(front_page.NAMES - {"", "home"})])
def test_every_page_sets_its_server_address_before_streamlits_script(name: str) -> None:
    status, headers, html = ask(f"/{name}")
    assert status == 200
    assert html.index("window.__streamlit = ") < html.index('<script type="module"')
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    original = re.sub(
        r'<script type="module">\n.*\n</script>',
        "",
        without_ours(html),
    )
    assert original == page, "all else is Streamlit's"
    assert headers["cache-control"] == "no-cache"
    assert headers["content-security-policy"].startswith("default-src 'self'")


def named(name: str) -> list[str]:
    """The files that a page loads once Streamlit's script is loaded."""
    path, _, query = name.partition("?")
    html = ask(f"/{path}", query=query)[2]
    (array,) = re.findall(r"for \(const href of (\[.*?\])\)", html)
    assert html.index("for (const href of") > html.index('<script type="module" crossorigin src=')
    return [str(file) for file in json.loads(array)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", {"ImageList"}),
        ("run", {"Metric", "ImageList"}),
        ("runs", {"DataFrame", "arrowFormatUtils", "TextInput"}),
        ("studies", {"Selectbox", "Progress"}),
        ("compare", {"Multiselect", "DataFrame", "arrowFormatUtils"}),
        ("compare?tab=curves", {"Multiselect", "ArrowVegaLiteChart", "embed"}),
        ("launch", {"Selectbox", "TextInput", "Metric"}),
    ],
)
def test_page_preloads_its_first_screen_parts_and_no_other_heavy_ones(
    name: str, expected: set[str]
) -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    files = [file.removeprefix("./") for file in named(name)]
    assert all((STATIC / file).is_file() and file not in page for file in files)
    parts = {Path(file).name.split(".")[0] for file in files}
    assert expected <= parts
    heavy = {"DataFrame", "embed", "StreamlitSyntaxHighlighter", "PlotlyChart", "katex"}
    assert parts & heavy <= expected


def test_every_preloaded_part_exists_in_this_streamlit() -> None:
    chunks = json.loads((STATIC / "manifest.json").read_text(encoding="utf-8"))
    names = {chunk.get("name") for chunk in chunks.values()}
    assert {part for parts in front_page.PARTS.values() for part in parts} | set(
        front_page.ALWAYS
    ) <= names


@pytest.mark.parametrize(
    "chunks",
    [
        "[]",
        "no JSON",
        '{"a": {"name": "Html"}}',
        '{"a": {"name": "Html", "file": "a.js", "imports": ["b"]}}',
        None,
    ],
)
def test_missing_or_unexpected_parts_are_not_preloaded(tmp_path: Path, chunks: str | None) -> None:
    shutil.copy(STATIC / "index.html", tmp_path)
    if chunks is not None:
        (tmp_path / "manifest.json").write_text(chunks, encoding="utf-8")
    assert front_page.files(tmp_path, front_page.ALWAYS) == []
    html = front_page.page(tmp_path, "run")
    assert without_ours(html) == (STATIC / "index.html").read_text(encoding="utf-8")


def test_every_page_name_is_known() -> None:
    pages = {path.stem for path in (REPOSITORY / "pages").glob("*.py")}
    assert pages == {path.stem for path in places.PAGES} == front_page.NAMES - {""}


@pytest.mark.parametrize(
    "path", ["/_stcore/health", "/static/js/index.js", "/run/_stcore/health", "/nowhere"]
)
def test_other_paths_are_left_to_streamlit(path: str) -> None:
    assert ask(path)[2] == "inside"


def test_only_page_requests_are_answered() -> None:
    assert ask("/run", accept="*/*")[2] == "inside"
    assert ask("/run", "POST")[2] == "inside"
    assert ask("/run", host="evil.example")[0] == 400


@pytest.mark.parametrize("html", [b"<html><head></head></html>", b"\xff\xfe", None])
def test_unexpected_streamlit_html_is_left_to_streamlit(tmp_path: Path, html: bytes | None) -> None:
    if html is not None:
        (tmp_path / "index.html").write_bytes(html)
    assert front_page.page(tmp_path, "run") == ""
