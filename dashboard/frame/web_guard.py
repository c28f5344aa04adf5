"""What the web server answers before Streamlit sees a request: only to its own names, only its own
pages, nothing from another host.

Every answer carries the headers below, with which the browser refuses what a text on a page might
make it fetch. Reasons: docs/decisions/07-web-guard-and-sign-in.md.

Streamlit accepts every message of its protocol (streamlit/proto/BackMsg.proto) from every client
with an open page. Only the messages that our pages send reach it. docs/threat-model.md lists what
each other message could do and what stops it.
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
OPERATIONS_PASSED = frozenset({"deferred_file"})  # content of a download button, made on a press
# For one drop into the browser: Streamlit creates two addresses for each name before any file
# arrives.
MOST_FILES = 10_000
POLICY_VIOLATION = 1008


def guarded(receive: Receive, browser: str) -> Receive:
    """The browser's messages without those that no page of ours sends.

    An invalid message ends the connection.
    """
    logged: set[str] = set()

    def refused(message: Message) -> bool:
        refusal = why_message_refused(message.get("bytes"))
        if refusal and refusal not in logged:  # once per connection
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
    """Why Streamlit does not get this message; empty if it does."""
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
    """The message; None for text, other bytes, and a kind that this Streamlit does not know."""
    try:
        message = BackMsg.FromString(data or b"")
    except DecodeError:
        return None
    return message if message.WhichOneof("type") else None


STREAM = "/_stcore/stream"  # Streamlit's WebSocket
DEFAULT_PORTS = {"http": 80, "https": 443}
CLOSED = ("/_stcore/metrics",)  # sizes of caches and sessions, which nothing here needs
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Streamlit's pages need inline styles, Vega compiles expressions to functions, and downloads,
# workers and the script of the film player are blobs.
CONTENT_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self'"
    " 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'"
    " ws://{host} wss://{host}; worker-src 'self' blob:; object-src 'none'; base-uri 'self';"
    " form-action 'self'; frame-ancestors 'none'"
)
REFUSED = (
    "This dashboard does not answer to that host name. Open it as localhost, or by the address it"
    " was started with. To allow other names, set STREAMLIT_SERVER_ALLOWED_HOSTS, separated by"
    " spaces, before it starts.\n"
)
ANOTHER_PAGE = (
    "The page is at {origin}, but asks for the dashboard at {host}. Only its own pages can connect."
    " A proxy must pass on the Host header as the browser sent it (docs/sharing.md).\n"
)
NO_UPGRADE = (
    "The page's WebSocket does not reach the dashboard. A proxy must pass on WebSockets: HTTP/1.1"
    " with the headers Upgrade and Connection (docs/sharing.md).\n"
)
# On this machine there is usually no proxy, and a page that waits for a busy dashboard asks too.
BUSY = (
    "This machine is busy: the page opens by itself as soon as the dashboard answers. If it stays"
    " closed, the log of the dashboard names the cause.\n"
)


class WebGuard:
    """The middleware, which app.py puts before all others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on allowed requests, and adds our headers to the answers."""
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
        # Streamlit compares the headers exactly, and a proxy may have added the default port of
        # https.
        headers["host"] = urlsplit(headers["origin"]).netloc
        browser = (scope.get("client") or ("an unknown address",))[0]
        await self._app(scope, guarded(receive, browser), send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "")
        answer: ASGIApp = self._app
        if not is_own_host(host):
            answer, host = PlainTextResponse(REFUSED, status_code=400), "localhost"
        elif scope["path"].rstrip("/") in CLOSED:
            answer = PlainTextResponse("Not found.\n", status_code=404)
        elif scope["path"].endswith(STREAM):
            answer = _no_websocket(scope)
        headers = {**HEADERS, "Content-Security-Policy": CONTENT_POLICY.format(host=host)}

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send(message)

        await answer(scope, receive, send_guarded)


def why_refused(headers: Headers) -> str:
    """Why a page cannot open its WebSocket; empty if it can."""
    host, origin = headers.get("host", ""), headers.get("origin", "")
    if not is_own_host(host):
        return REFUSED
    return (
        ""
        if is_own_origin(origin, host)
        else ANOTHER_PAGE.format(origin=origin[:200] or "no address", host=host[:200])
    )


def _no_websocket(scope: Scope) -> ASGIApp:
    """The answer to a plain request for the WebSocket, from a page that asks why it cannot connect
    (refusal.js), or from a proxy that drops the upgrade.
    """
    headers, is_dropped = Headers(scope=scope), scope["method"] == "GET"
    if refusal := why_refused(headers):
        return PlainTextResponse(refusal, status_code=403)
    if is_dropped:
        log_once(f"WebSocket refused. {NO_UPGRADE.strip()}")
    is_local = not is_dropped and web_access.is_loopback(_hostname(headers.get("host", "")))
    return PlainTextResponse(BUSY if is_local else NO_UPGRADE, status_code=426)


@lru_cache(maxsize=100)
def log_once(sentence: str) -> None:
    """Logs a sentence once, because a page retries every second.

    Without unprintable characters, which could act on the terminal that shows the log.
    """
    log.warning("%s", "".join(filter(str.isprintable, sentence)))


def is_own_host(host: str) -> bool:
    """Whether a Host header names this server: as loopback, by the address it listens on, or by an
    allowed name.

    A page of another site can let its name point here (DNS rebinding), so foreign names are refused
    even on this machine. A server on all addresses accepts any address in digits, which cannot be
    rebound, and this machine's names.
    """
    name = _hostname(host)
    bound = str(st.get_option("server.address") or "::").lower()
    allowed = {bound, *(str(name).lower() for name in st.get_option("server.allowedHosts") or ())}
    if web_access.is_loopback(name) or name in allowed:
        return True
    address = web_access.ip_address(name)
    everywhere = (
        listening := web_access.ip_address(bound)
    ) is not None and listening.is_unspecified
    return everywhere and (address is not None or (bool(name) and name in own_names()))


def is_own_origin(origin: str, host: str) -> bool:
    """Whether one of our pages opened a WebSocket: other ports, other sites and no site are not.

    A proxy may add the default port: `https://lab.example` is `lab.example:443`.
    """
    usual = DEFAULT_PORTS.get(origin.partition(":")[0])
    address = _address(origin.partition("://")[2], usual) if usual else None
    return address is not None and address == _address(host, usual)


@cache
def own_names() -> set[str]:
    """The names of this machine."""
    return {socket.gethostname().lower(), socket.getfqdn().lower()}


def _hostname(host: str) -> str:
    """The name in a Host header, without the port; empty for an invalid header."""
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
