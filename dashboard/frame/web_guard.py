"""What the web server answers, before Streamlit sees a request: own names only, own pages only,
nothing from another host.

Every answer carries the headers below. With them the browser itself refuses what a text on a page
might make it fetch. Why: docs/decisions/07-web-guard-and-sign-in.md.

Streamlit takes every message of its protocol (streamlit/proto/BackMsg.proto) from every client
that opened a page. Those that our pages send reach it. What each of the others could do here, and
what stops it, is listed in docs/threat-model.md.
"""

from __future__ import annotations

import logging
import socket
from functools import cache, lru_cache
from urllib.parse import urlsplit

import streamlit as st
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from gan_runtime.base import web_access

log = logging.getLogger("gan_runtime")
PASSED = frozenset({"rerun_script", "stop_script", "app_heartbeat", "file_urls_request"})
OPERATIONS_PASSED = frozenset(
    {"deferred_file"}
)  # the content of a download button, made when it is pressed
# of one drop into the browser: Streamlit makes two addresses for each name before anybody has sent
# a file
MOST_FILES = 10_000
POLICY_VIOLATION = 1008


def guarded(receive: Receive, browser: str) -> Receive:
    """What the browser sends, without the messages that no page of ours sends.

    What is no message of the protocol ends the connection.
    """
    logged: set[str] = set()

    def refused(message: Message) -> bool:
        refusal = why_message_refused(message.get("bytes"))
        if refusal and refusal not in logged:  # once a connection, however often it is sent
            logged.add(refusal)
            log.warning("Message from %s refused: %s", browser, refusal)
        return bool(refusal)

    async def receive_passed() -> Message:
        while True:
            message = await receive()
            if message["type"] != "websocket.receive" or not refused(message):
                return message
            if not _parsed(message.get("bytes")):
                return {"type": "websocket.disconnect", "code": POLICY_VIOLATION}

    return receive_passed


def why_message_refused(data: bytes | None) -> str:
    """Why Streamlit does not get this message; empty where it does."""
    message = _parsed(data)
    if message is None:
        return "it is not a message of Streamlit's protocol"
    kind = message.WhichOneof("type")
    if kind == "backend_operation_request":
        operation = message.backend_operation_request.WhichOneof("payload")
        return (
            ""
            if operation in OPERATIONS_PASSED
            else f"no page of this dashboard asks for {operation}"
        )
    if kind not in PASSED:
        return f"no page of this dashboard sends {kind}"
    files = len(message.file_urls_request.file_names)
    return f"{files} files at once; the limit is {MOST_FILES}" if files > MOST_FILES else ""


def _parsed(data: bytes | None) -> BackMsg | None:
    """None for text, for bytes that are no message, and for a message of no kind that this
    Streamlit knows.
    """
    try:
        message = BackMsg.FromString(data or b"")
    except DecodeError:
        return None
    return message if message.WhichOneof("type") else None


STREAM = "/_stcore/stream"  # Streamlit's WebSocket
DEFAULT_PORTS = {"http": 80, "https": 443}
CLOSED = ("/_stcore/metrics",)  # sizes of caches and sessions: without use here
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Streamlit's pages need inline styles, Vega makes functions of expressions, and downloads, workers
# and the script of a component of ours (of the film player) are blobs.
CONTENT_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self'"
    " 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'"
    " ws://{host} wss://{host}; worker-src 'self' blob:; object-src 'none'; base-uri 'self';"
    " form-action 'self'; frame-ancestors 'none'"
)
REFUSED = (
    "This dashboard does not answer to that host name. Open it as localhost, or by the address it"
    " was started with. For other names, set STREAMLIT_SERVER_ALLOWED_HOSTS, separated by spaces,"
    " before it starts.\n"
)
ANOTHER_PAGE = (
    "The page is at {origin}, but asks for the dashboard at {host}. Only its own pages can connect."
    " A proxy must pass on the Host header as the browser sent it (docs/sharing.md).\n"
)
NO_UPGRADE = (
    "The page's WebSocket does not reach the dashboard. A proxy must pass on WebSockets: HTTP/1.1"
    " with the headers Upgrade and Connection (docs/sharing.md).\n"
)


class WebGuard:
    """The middleware: app.py puts it before Streamlit's own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what may be asked, with our headers on the answer."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._open(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = MutableHeaders(scope=scope)
        if refusal := why_refused(headers):
            log_once(f"WebSocket refused. {refusal.strip()}")
            await send({"type": "websocket.close", "code": 1008})
            return
        # Streamlit compares letter by letter, and a proxy may have added the port that https has
        # anyway.
        headers["host"] = urlsplit(headers["origin"]).netloc
        browser = (scope.get("client") or ("an unknown address",))[0]
        await self._app(scope, guarded(receive, browser), send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "")
        answer: ASGIApp = self._app
        if not is_own_host(host):
            answer, host = PlainTextResponse(REFUSED, status_code=400), "localhost"
        elif scope["path"].rstrip("/") in CLOSED:
            answer = PlainTextResponse("Not here.\n", status_code=404)
        elif scope["path"].endswith(STREAM):
            answer = _no_websocket(scope)
        headers = {**HEADERS, "Content-Security-Policy": CONTENT_POLICY.format(host=host)}

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send(message)

        await answer(scope, receive, send_guarded)


def why_refused(headers: Headers) -> str:
    """Why a page may not open its WebSocket; empty where it may."""
    host, origin = headers.get("host", ""), headers.get("origin", "")
    if not is_own_host(host):
        return REFUSED
    return (
        ""
        if is_own_origin(origin, host)
        else ANOTHER_PAGE.format(origin=origin[:200] or "no address", host=host[:200])
    )


def _no_websocket(scope: Scope) -> ASGIApp:
    """The answer to a plain request in the place of a WebSocket: a page without a connection
    asks why (refusal.js), or a proxy made it one.
    """
    refusal = why_refused(Headers(scope=scope))
    if not refusal and scope["method"] == "GET":
        log_once(f"WebSocket refused. {NO_UPGRADE.strip()}")
    return PlainTextResponse(refusal or NO_UPGRADE, status_code=403 if refusal else 426)


@lru_cache(maxsize=100)
def log_once(sentence: str) -> None:
    """A page tries again every second.

    A browser's words may hold what acts on the terminal that shows the log: it is left out.
    """
    log.warning("%s", "".join(filter(str.isprintable, sentence)))


def is_own_host(host: str) -> bool:
    """Whether a Host header names this server: as loopback, as the address it listens on, or as a
    name that was allowed.

    A page of another site can let its own name point here ("DNS rebinding"), so a foreign name is
    refused even from this machine. A server that listens on all addresses answers to any address in
    digits, which cannot be such a name, and to this machine's names.
    """
    name = _hostname(host)
    bound = str(st.get_option("server.address") or "::").lower()
    allowed = {bound, *(str(name).lower() for name in st.get_option("server.allowedHosts") or ())}
    if name == "localhost" or name in allowed:
        return True
    address = web_access.ip_address(name)
    if address is not None and address.is_loopback:
        return True
    everywhere = (
        listening := web_access.ip_address(bound)
    ) is not None and listening.is_unspecified
    return everywhere and (address is not None or (bool(name) and name in own_names()))


def is_own_origin(origin: str, host: str) -> bool:
    """Whether a WebSocket was opened by our own page: other ports of this machine, other sites and
    no site are refused. A proxy may name the port that http or https has anyway:
    `https://lab.example` is `lab.example:443`.
    """
    usual = DEFAULT_PORTS.get(origin.partition(":")[0])
    address = _address(origin.partition("://")[2], usual) if usual else None
    return address is not None and address == _address(host, usual)


@cache
def own_names() -> set[str]:
    """What this machine calls itself."""
    return {socket.gethostname().lower(), socket.getfqdn().lower()}


def _hostname(host: str) -> str:
    """The name in a Host header, without its port; empty for anything else than a name and a
    port.
    """
    address = _address(host, None)
    return address[0].rstrip(".") if address else ""


def _address(host: str, usual_port: int | None) -> tuple[str, int | None] | None:
    """Name and port of a Host header; None for anything else."""
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.netloc != host or "@" in host:
        return None
    return parts.hostname, usual_port if port is None else port
