"""`serve`: looks at home and port first, so that what is wrong is one sentence, then becomes
the dashboard's process.
"""

from __future__ import annotations

import errno
import os
import platform
import socket
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from gan_runtime.base import addresses
from gan_runtime.base.addresses import is_loopback, is_wildcard
from gan_runtime.base.errors import PortError
from gan_runtime.cli import output
from gan_runtime.records.home import HOME_VARIABLE, REPOSITORY, Home

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Place:
    """Where the dashboard is to be; with a certificate and its key at https."""

    address: str
    port: int
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @property
    def url(self) -> str:
        """What to open in a browser of this machine; an address that stands for all of them
        is none to open.
        """
        return addresses.url(self.address, self.port, self.tls_cert is not None, wildcard=LOOPBACK)

    def options(self) -> list[str]:
        """Streamlit's."""
        words = ["--server.address", self.address, "--server.port", str(self.port)]
        if self.tls_cert and self.tls_key:
            words += [
                "--server.sslCertFile",
                str(self.tls_cert),
                "--server.sslKeyFile",
                str(self.tls_key),
            ]
        return words


def serve(home: Home, place: Place, as_json: bool) -> None:
    """Tells where the dashboard is and who can reach it, then becomes it.

    Raises PortError, HomeError.
    """
    check_certificate(place)
    check_port(place.address, place.port)
    home.prepare()
    where = {"url": place.url, "home": home.path}
    if as_json:
        output.print_json(where, indent=None)
    else:
        output.say(f"The dashboard is at {where['url']}")
    if warning := danger(place):
        output.note(warning)
    become_dashboard(home, place, stdout_to_stderr=as_json)


def check_certificate(place: Place) -> None:
    """Raises PortError when one of certificate and key is missing, or they are no pair."""
    if place.tls_cert is None and place.tls_key is None:
        return
    if place.tls_cert is None or place.tls_key is None:
        raise PortError("a certificate needs its key: give both --tls-cert and --tls-key.")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            place.tls_cert, place.tls_key, password=_no_password
        )
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise PortError(
            f"certificate {place.tls_cert} with key {place.tls_key} cannot be used"
            f" ({getattr(error, 'strerror', None) or error}): give a certificate in PEM and its key"
            " without a password."
        ) from None


def _no_password() -> str:
    raise ValueError("the key has a password")


def check_port(address: str, port: int) -> None:
    """Raises PortError when nobody could listen there now."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # as servers do: a port just given up is free
            listener.bind(where)
            listener.listen()
    except (OSError, UnicodeError) as error:
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise PortError(
                f"port {port} is in use, perhaps by a dashboard that is open already at"
                f" {Place(address, port).url}: choose another with `make run"
                f" PORT={port % 65_535 + 1}` or --port {port % 65_535 + 1}."
            ) from None
        raise PortError(
            f"address {address} with port {port} cannot be listened on "
            f"({getattr(error, 'strerror', None) or 'it is no name of a host'}): "
            "use --address 127.0.0.1 and a --port from 1024 to 65535."
        ) from None


def danger(place: Place) -> str:
    """What an address lets others do, and from where; empty for one that only this machine
    reaches.
    """
    address = place.address
    if is_loopback(address):
        return ""
    elsewhere = (
        f" at {place.url.partition(':')[0]}://{platform.node()}:{place.port} or another name of"
        " this machine"
        if is_wildcard(address)
        else ""
    )
    return (
        f"Everyone who reaches this machine{elsewhere} can look at all runs. Pages change nothing"
        f" until sign-in is set up (docs/sharing.md). With --address {LOOPBACK} nobody else sees"
        " them."
    )


def become_dashboard(home: Home, place: Place, stdout_to_stderr: bool) -> NoReturn:
    """Replaces this process by Streamlit, so that Ctrl-C and signals reach it directly."""
    command = [sys.executable, "-m", "dashboard.frame.process", str(REPOSITORY / "app.py")]
    command += [*place.options(), "--server.headless", "true"]
    # Its welcome would ask another host for this machine's address and print that; `serve` has told
    # what to open.
    command += ["--logger.hideWelcomeMessage", "true"]
    sys.stdout.flush()
    if stdout_to_stderr:
        os.dup2(2, 1)
    os.execve(sys.executable, command, {**os.environ, HOME_VARIABLE: str(home.path)})
