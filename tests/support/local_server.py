"""Helpers for a server on this machine: a free port, and whether the server responds."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path


def free_port() -> int:
    """A port that no process currently listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str, certificate: Path | None = None) -> bool:
    """Whether the address returns a page within two seconds; with a certificate, whether it is the
    server's.
    """
    trusted = ssl.create_default_context(cafile=certificate) if certificate else None
    try:
        with urllib.request.urlopen(url, timeout=2, context=trusted) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
