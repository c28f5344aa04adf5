"""Local receivers of notices: a web server and an SMTP server that record what they get, and a
server of anything else.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_string
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    """`answers`: status codes of the next requests; then 204. `port`: the listening port."""

    port: int = 0
    documents: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    mails: list[Message] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """The IDs of the notices, in the order of their arrival."""
        return [document["id"] for document in self.documents]


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def webhook() -> Iterator[Received]:
    """Records each POST that it answers with 2xx."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = received.answers.pop(0) if received.answers else 204
            if status < 300:
                received.documents.append(json.loads(body))
                received.headers.append(dict(self.headers))
            self.send_response(status)
            if status in (301, 302, 307):
                self.send_header("Location", f"http://127.0.0.1:{received.port}/other")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received.port = server.server_port
    with _serving(server):
        yield received


@contextmanager
def mail_server() -> Iterator[Received]:
    """Accepts mail without encryption, and AUTH PLAIN with any credentials."""
    received = Received()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 test")
            while line := self.rfile.readline().decode().strip():
                received.commands.append(line)
                word = line.split()[0].upper()
                if word == "EHLO":
                    self._say("250-test")
                    self._say("250 AUTH PLAIN")
                elif word == "AUTH":
                    self._say("235 welcome")
                elif word == "DATA":
                    self._say("354 go")
                    received.mails.append(message_from_string(self._data()))
                    self._say("250 taken")
                elif word == "QUIT":
                    self._say("221 bye")
                    return
                else:
                    self._say("250 fine")

        def _data(self) -> str:
            lines = iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), ".")
            return "\n".join(lines)

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    received.port = server.server_address[1]
    with _serving(server):
        yield received


@contextmanager
def other_server(pieces: Callable[[], Iterator[bytes]], pause_s: float = 0.0) -> Iterator[int]:
    """Sends these bytes to whoever connects, a piece at a time; gives its port."""
    is_over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            for piece in pieces():
                try:
                    self.request.sendall(piece)
                except OSError:  # the other side has left
                    return
                if is_over.wait(pause_s):
                    return
            self.request.shutdown(socket.SHUT_WR)
            while self.request.recv(1_000_000):
                pass

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with _serving(server):
        yield server.server_address[1]
        is_over.set()
