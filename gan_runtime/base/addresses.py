"""Addresses that a server listens on, and names that it answers to."""

from __future__ import annotations

import ipaddress


def is_loopback(name: str) -> bool:
    """Whether only this machine reaches a server there: 127.0.0.1, ::1, localhost. A name may
    lead anywhere, so it is none.
    """
    address = parsed(name)
    return name.lower() == "localhost" if address is None else address.is_loopback


def is_wildcard(name: str) -> bool:
    """Whether it stands for every address of this machine: 0.0.0.0, ::."""
    address = parsed(name)
    return address is not None and address.is_unspecified


def url(address: str, port: int, is_secure: bool, wildcard: str) -> str:
    """What to open in a browser; `wildcard` stands for an address that stands for all of
    them, as that is none to open.
    """
    host = wildcard if is_wildcard(address) else address
    scheme = "https" if is_secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def parsed(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address in digits; None for the name of a host."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
