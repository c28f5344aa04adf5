"""`serve`: looks at home and port first, so that what is wrong is one sentence, then becomes the dashboard's process."""

from __future__ import annotations

import errno
import ipaddress
import os
import platform
import socket
import sys
from typing import NoReturn

from gan_runtime.cli import output
from gan_runtime.errors import PortError
from gan_runtime.home import HOME_VARIABLE, REPOSITORY, Home

LOOPBACK = "127.0.0.1"


def serve(home: Home, address: str, port: int, as_json: bool) -> None:
    """Tells where the dashboard is and who can reach it, then becomes it. Raises PortError, HomeError."""
    check_port(address, port)
    home.prepare()
    where = {"url": url(address, port), "home": home.path}
    if as_json:
        output.print_json(where, indent=None)
    else:
        output.say(f"The dashboard is at {where['url']}")
    if warning := danger(address, port):
        output.note(warning)
    become_dashboard(home, address, port, stdout_to_stderr=as_json)


def check_port(address: str, port: int) -> None:
    """Raises PortError when nobody could listen there now."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # as servers do: a port just given up is free
            listener.bind(where)
            listener.listen()
    except (OSError, UnicodeError) as error:
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise PortError(
                f"port {port} is in use, perhaps by a dashboard that is open already at {url(address, port)}: "
                f"choose another with `make run PORT={port % 65_535 + 1}` or --port {port % 65_535 + 1}."
            ) from None
        raise PortError(
            f"address {address} with port {port} cannot be listened on "
            f"({getattr(error, 'strerror', None) or 'it is no name of a host'}): "
            "use --address 127.0.0.1 and a --port from 1024 to 65535."
        ) from None


def url(address: str, port: int) -> str:
    """What to open in a browser of this machine; an address that stands for all of them is none to open."""
    host = LOOPBACK if is_wildcard(address) else address
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def danger(address: str, port: int) -> str:
    """What an address lets others do, and from where; empty for one that only this machine reaches."""
    try:
        if address == "localhost" or ipaddress.ip_address(address).is_loopback:
            return ""
    except ValueError:  # the name of a host
        pass
    elsewhere = (
        f" at http://{platform.node()}:{port} or another name of this machine" if is_wildcard(address) else ""
    )
    return (
        f"Warning: there is no login, so everyone who reaches this machine{elsewhere} can start, stop and delete runs here. "
        f"With --address {LOOPBACK} nobody else can."
    )


def is_wildcard(address: str) -> bool:
    """Whether the address stands for every address of this machine."""
    try:
        return ipaddress.ip_address(address).is_unspecified
    except ValueError:
        return False


def become_dashboard(home: Home, address: str, port: int, stdout_to_stderr: bool) -> NoReturn:
    """Replaces this process by Streamlit, so that Ctrl-C and signals reach it directly."""
    command = [sys.executable, "-m", "dashboard.frame.process", str(REPOSITORY / "app.py")]
    command += ["--server.address", address, "--server.port", str(port), "--server.headless", "true"]
    # Its welcome would ask another host for this machine's address and print that; `serve` has told what to open.
    command += ["--logger.hideWelcomeMessage", "true"]
    sys.stdout.flush()
    if stdout_to_stderr:
        os.dup2(2, 1)
    os.execve(sys.executable, command, {**os.environ, HOME_VARIABLE: str(home.path)})
