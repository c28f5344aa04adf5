"""A reverse proxy that does not forward the Host header: requests carry the address under which the
proxy knows the server.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def before(port: int) -> Iterator[int]:
    """Yields the port of a proxy for the server on `port`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        own_port = listener.getsockname()[1]
        names = (
            f"\r\nHost: 127.0.0.1:{own_port}\r\n".encode(),
            f"\r\nHost: 127.0.0.1:{port}\r\n".encode(),
        )
        threading.Thread(target=_listen, args=(listener, port, names), daemon=True).start()
        yield own_port


def _listen(listener: socket.socket, port: int, names: tuple[bytes, bytes]) -> None:
    with suppress(OSError):  # the listener is closed
        while True:
            browser = listener.accept()[0]
            server = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=_pass_on, args=(browser, server, names), daemon=True).start()
            threading.Thread(target=_pass_on, args=(server, browser, names), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, names: tuple[bytes, bytes]) -> None:
    with source, suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data.replace(*names))
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
