"""Logs each connection to and each lookup of another host.

Python imports this module at startup when this folder is in PYTHONPATH.
"""

import os
import sys
from typing import Any

HERE = ("127.", "::1", "localhost", "0.0.0.0", "::ffff:127.")
NOTES = os.open(os.environ["CONNECTIONS_NOTED_IN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook that logs internet connections and name lookups."""
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else ""  # a path: a socket of this machine
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0] or ""
    else:
        return
    host = host.decode() if isinstance(host, bytes) else str(host)
    if host and not host.startswith(HERE):
        os.write(NOTES, f"{event} {host}\n".encode())


os.write(NOTES, b"began\n")
sys.addaudithook(note)
