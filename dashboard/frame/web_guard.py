"""What the web server answers, before Streamlit sees a request: own names only, own pages only, nothing from another host.

Every answer carries the headers below. With them the browser itself refuses what a text on a page might make it fetch.
The reasons stand in docs/decisions/0024-web-guard.md.
"""

from __future__ import annotations

import socket
from functools import cache
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gan_runtime import addresses

CLOSED = ("/_stcore/metrics",)  # sizes of caches and sessions: for nobody here
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Streamlit's pages need inline styles, Vega makes functions of expressions, and downloads, workers and the script of a component of ours
# (flow/player.js) are blobs.
CONTENT_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws://{host} wss://{host}; worker-src 'self' blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
REFUSED = (
    "This dashboard does not answer to that name: open it as localhost, or by the address it was started with. "
    "For further names set STREAMLIT_SERVER_ALLOWED_HOSTS, with spaces between them, before starting it.\n"
)


class WebGuard:
    """The middleware: app.py puts it before Streamlit's own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what may be asked, with our headers on the answer."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket" and not _may_open(Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "")
        answer: ASGIApp = self._app
        if not is_own_host(host):
            answer, host = PlainTextResponse(REFUSED, status_code=400), "localhost"
        elif scope["path"].rstrip("/") in CLOSED:
            answer = PlainTextResponse("Not here.\n", status_code=404)
        headers = {**HEADERS, "Content-Security-Policy": CONTENT_POLICY.format(host=host)}

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send(message)

        await answer(scope, receive, send_guarded)


def _may_open(headers: Headers) -> bool:
    host = headers.get("host", "")
    return is_own_host(host) and is_own_origin(headers.get("origin", ""), host)


def is_own_host(host: str) -> bool:
    """Whether a Host header names this server: as loopback, as the address it listens on, or as a name that was allowed.

    A page of another site can let its own name point here ("DNS rebinding"), so a foreign name is refused even from this
    machine. A server that listens on all addresses answers to any address in digits, which cannot be such a name, and to
    this machine's names.
    """
    name = _hostname(host)
    bound = str(st.get_option("server.address") or "::").lower()
    allowed = {bound, *(str(one).lower() for one in st.get_option("server.allowedHosts") or ())}
    if name == "localhost" or name in allowed:
        return True
    address = addresses.parsed(name)
    if address is not None and address.is_loopback:
        return True
    everywhere = (listening := addresses.parsed(bound)) is not None and listening.is_unspecified
    return everywhere and (address is not None or (bool(name) and name in own_names()))


def is_own_origin(origin: str, host: str) -> bool:
    """Whether a WebSocket was opened by our own page: other ports of this machine, other sites and no site are refused."""
    parts = urlsplit(origin)
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


@cache
def own_names() -> set[str]:
    """What this machine calls itself."""
    return {socket.gethostname().lower(), socket.getfqdn().lower()}


def _hostname(host: str) -> str:
    """The name in a Host header, without its port; empty for anything else than a name and a port."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return ""
    return (parts.hostname or "").rstrip(".") if parts.netloc == host and "@" not in host else ""
