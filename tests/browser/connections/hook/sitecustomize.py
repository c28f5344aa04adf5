"""Python loads this at its start when this folder is in PYTHONPATH: notes each connection to,
and each question for, another host.
"""

import os
import sys
from typing import Any

HERE = ("127.", "::1", "localhost", "0.0.0.0", "::ffff:127.")
NOTES = os.open(os.environ["CONNECTIONS_NOTED_IN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: a connection in the internet's families, or a name that is looked up."""
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
