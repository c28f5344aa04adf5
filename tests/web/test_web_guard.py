"""The web server: the hosts and pages that it answers, and the headers of every response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import streamlit as st
import uvicorn
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import net_util
from streamlit.proto.BackMsg_pb2 import BackMsg

from dashboard.frame import process, web_guard
from dashboard.frame.web_guard import WebGuard, is_own_host, is_own_origin


@pytest.fixture
def listens_on(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`listens_on("0.0.0.0", "lab.example")`: the server's address and its additional allowed
    names.
    """

    def configure(address: str, *allowed: str) -> None:
        monkeypatch.setattr(
            st, "get_option", {"server.address": address, "server.allowedHosts": list(allowed)}.get
        )

    return configure


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    """A substitute for Streamlit: answers everything, accepts every WebSocket."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
    else:
        await PlainTextResponse("inside")(scope, receive, send)


def ask(
    path: str = "/", kind: str = "http", method: str = "GET", app: ASGIApp = inside, **headers: str
) -> tuple[Any, dict[str, str]]:
    """The status of a response, or the first message to a WebSocket, and the headers."""
    first = sent(path, kind, method, app, **headers)[0]
    got = {name.decode(): value.decode() for name, value in first.get("headers", [])}
    return first.get("status", first["type"]), got


def sent(path: str, kind: str, method: str, app: ASGIApp = inside, **headers: str) -> list[Any]:
    """All messages of the answer."""
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    answer = WebGuard(app)(
        {"type": kind, "path": path, "method": method, "headers": raw, "client": ("127.0.0.1", 1)},
        receive,
        send,
    )
    # A separate thread: browser tests in the same process leave Playwright's event loop running in
    # the main thread.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, answer).result()
    return messages


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8501", "localhost:8501", "LOCALHOST", "localhost.", "[::1]:8501", "127.0.0.2"],
)
def test_this_machine_is_allowed(host: str) -> None:
    assert is_own_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8501",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.168.1.5:8501",
        "evil.example@127.0.0.1",
        "127.0.0.1:x",
        "127.0.0.1/a",
        "[::1",
        "127.0.0.1:99999",
        "0x7f.1",
        "::1",
    ],
)
def test_host_name_an_attacker_can_point_here_is_refused(host: str) -> None:
    assert not is_own_host(host)


def test_listening_address_and_configured_names_are_answered(
    listens_on: Callable[..., None],
) -> None:
    listens_on("192.168.1.5", "lab.example")
    hosts = ("192.168.1.5:8501", "lab.example", "localhost", "192.168.1.6", "evil.example")
    assert [is_own_host(host) for host in hosts] == [True, True, True, False, False]


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_server_on_all_addresses_answers_to_ip_addresses_and_own_names(
    listens_on: Callable[..., None], monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    listens_on(address)
    monkeypatch.setattr(web_guard, "own_names", lambda: {"bench.lab"})
    hosts = (
        "192.168.1.5:8501",
        "[fe80::1]:8501",
        "bench.lab:8501",
        "localhost",
        "evil.example",
        "",
    )
    assert [is_own_host(host) for host in hosts] == [True, True, True, True, False, False]


@pytest.mark.parametrize(
    ("origin", "is_own"),
    [
        ("http://127.0.0.1:8501", True),
        ("https://127.0.0.1:8501", True),
        ("http://127.0.0.1:8888", False),  # another program on this machine, such as a notebook
        ("http://127.0.0.1", False),
        ("http://evil.example", False),
        ("file://127.0.0.1:8501", False),
        ("null", False),
        ("", False),
    ],
)
def test_only_own_pages_can_open_a_websocket(origin: str, is_own: bool) -> None:
    assert is_own_origin(origin, "127.0.0.1:8501") == is_own
    opened, _ = ask("/_stcore/stream", "websocket", host="127.0.0.1:8501", origin=origin)
    assert opened == ("websocket.accept" if is_own else "websocket.close")


@pytest.mark.parametrize(
    ("origin", "host", "is_own"),
    [
        ("https://lab.example", "lab.example:443", True),
        ("https://lab.example:443", "lab.example", True),
        ("http://lab.example", "lab.example:80", True),
        ("https://lab.example:8443", "lab.example:8443", True),
        ("http://[::1]", "[::1]:80", True),
        ("https://lab.example", "lab.example:80", False),
        ("http://lab.example", "lab.example:443", False),
        ("https://lab.example", "lab.example:8443", False),
        ("https://lab.example:8443", "lab.example", False),
        ("https://lab.example", "lab.example:0", False),
        ("https://evil.example", "lab.example:443", False),
        ("https://lab.example@evil.example", "evil.example:443", False),
        ("ftp://lab.example", "lab.example:443", False),
    ],
)
def test_default_port_of_a_scheme_may_be_named(
    listens_on: Callable[..., None], origin: str, host: str, is_own: bool
) -> None:
    """nginx does so with `proxy_set_header Host $host:$server_port`.

    Streamlit compares literally, so it gets the browser's spelling.
    """
    listens_on("127.0.0.1", "lab.example", "evil.example")
    assert is_own_origin(origin, host) == is_own
    hosts: list[str] = []

    async def streamlit(scope: Scope, receive: Receive, send: Send) -> None:
        hosts.append(Headers(scope=scope)["host"])
        await inside(scope, receive, send)

    opened, _ = ask("/_stcore/stream", "websocket", app=streamlit, host=host, origin=origin)
    assert opened == ("websocket.accept" if is_own else "websocket.close")
    assert hosts == [origin.partition("://")[2]] * is_own


def test_refused_websocket_is_explained_in_the_log_and_to_the_page(
    listens_on: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    listens_on("127.0.0.1", "lab.example")
    headers = {"host": "127.0.0.1:8501", "origin": "https://lab.example"}
    for _ in range(3):
        assert ask("/_stcore/stream", "websocket", **headers)[0] == "websocket.close"
    sentence = "The page is at https://lab.example, but asks for the dashboard at 127.0.0.1:8501."
    assert [sentence in record.getMessage() for record in caplog.records] == [True], (
        "once, though a page tries again"
    )
    assert ask("/_stcore/stream", method="POST", **headers)[0] == 403
    assert ask("/_stcore/stream", "websocket", host="lab.example")[0] == "websocket.close"
    assert "The page is at no address" in caplog.records[-1].getMessage()
    ask("/_stcore/stream", "websocket", host="lab.example", origin="http://\x1b[2Jlab")
    assert "The page is at http://[2Jlab, but" in caplog.records[-1].getMessage(), (
        "nothing acts on a terminal"
    )


def test_proxy_that_does_not_forward_websockets_is_reported(
    listens_on: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    listens_on("127.0.0.1", "lab.example")
    web_guard.log_once.cache_clear()
    headers = {"host": "lab.example", "origin": "https://lab.example"}
    assert ask("/_stcore/stream", method="POST", **headers)[0] == 426, (
        "a page that asks whether it may connect"
    )
    assert not caplog.records
    assert ask("/_stcore/stream", **headers)[0] == 426
    assert "must pass on WebSockets" in caplog.text


@pytest.mark.parametrize(
    ("host", "cause"),
    [
        ("127.0.0.1:8501", "This machine is busy"),
        ("localhost:8501", "This machine is busy"),
        ("[::1]:8501", "This machine is busy"),
        ("lab.example", "A proxy must pass on WebSockets"),
    ],
)
def test_a_page_of_this_machine_that_waits_blames_no_proxy(
    listens_on: Callable[..., None], host: str, cause: str
) -> None:
    listens_on("127.0.0.1", "lab.example")
    start, body = sent("/_stcore/stream", "http", "POST", host=host, origin=f"http://{host}")
    assert (start["status"], cause in body["body"].decode()) == (426, True)


def test_websocket_with_a_foreign_host_name_is_refused() -> None:
    opened, _ = ask(
        "/_stcore/stream", "websocket", host="evil.example", origin="http://evil.example"
    )
    assert opened == "websocket.close"


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [
        ("/", "127.0.0.1", 200),
        ("/live", "evil.example", 400),
        ("/_stcore/metrics", "127.0.0.1", 404),
        ("/_stcore/metrics/", "127.0.0.1", 404),
        ("/_stcore/health", "127.0.0.1", 200),
    ],
)
def test_every_response_has_the_security_headers(path: str, host: str, status: int) -> None:
    got, headers = ask(path, host=host)
    assert got == status
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    policy = dict(
        part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";")
    )
    assert (policy["default-src"], policy["frame-ancestors"], policy["img-src"]) == (
        "'self'",
        "'none'",
        "'self' data: blob:",
    )
    assert "evil" not in headers["content-security-policy"]


def test_server_does_not_query_another_host_for_its_own_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Streamlit does, to check the origin of a page that was opened by a name of this machine."""
    monkeypatch.setattr(net_util, "get_external_ip", lambda: "203.0.113.7")
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "")
    assert process.main(["no-such-file.py"]) != 0
    assert net_util.get_external_ip() is None


@pytest.mark.parametrize(
    ("trusted", "address"), [(None, "127.0.0.1"), ("127.0.0.1", "203.0.113.7")]
)
def test_forwarded_address_is_trusted_only_from_a_configured_proxy(
    monkeypatch: pytest.MonkeyPatch, trusted: str | None, address: str
) -> None:
    """By default, uvicorn trusts X-Forwarded-For from all processes on this machine."""
    if trusted is None:
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", "removed")  # so that it is restored
        monkeypatch.delenv("FORWARDED_ALLOW_IPS")
    else:
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    process.main(["no-such-file.py"])
    addresses: list[str] = []

    async def streamlit(scope: Scope, receive: Receive, send: Send) -> None:
        addresses.append(scope["client"][0])
        await inside(scope, receive, send)

    served = uvicorn.Config(streamlit, lifespan="off")
    served.load()
    ask(app=served.loaded_app, **{"host": "localhost", "x-forwarded-for": "203.0.113.7"})  # type: ignore[arg-type]
    assert addresses == [address]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("server.address", "127.0.0.1"),
        ("server.enableXsrfProtection", True),
        ("server.enableCORS", True),  # in Streamlit: only its own pages can send requests
        ("browser.gatherUsageStats", False),
        ("client.showErrorDetails", "none"),
        ("server.enableAgentApi", False),
        (
            "server.disconnectedSessionTTL",
            120,
        ),  # an operator without a connection stays one for two minutes (docs/sharing.md)
    ],
)
def test_the_protection_is_in_the_configuration(option: str, value: object) -> None:
    assert st.get_option(option) == value


def test_message_with_too_many_file_names_is_refused() -> None:
    message = BackMsg()
    message.file_urls_request.file_names.extend(["a.png"] * web_guard.MOST_FILES)
    assert web_guard.why_message_refused(message.SerializeToString()) == ""
    message.file_urls_request.file_names.append("one.png")
    assert (
        web_guard.why_message_refused(message.SerializeToString())
        == "10001 files at once; the limit is 10000"
    )


def test_message_unknown_to_streamlit_ends_the_connection() -> None:
    sent = [b"\xfa\x01\x00"]  # a field without a name

    async def receive() -> Message:
        return {"type": "websocket.receive", "bytes": sent.pop()}

    ended = {"type": "websocket.disconnect", "code": web_guard.POLICY_VIOLATION}
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(asyncio.run, web_guard.guarded(receive, "a test")()).result() == ended
