"""Who may sign in as an operator, as the secrets file says it, and who has.

    [operators]
    emails = ["anna@lab.example"]       # who signs in with OpenID Connect, whose provider must have verified the address
    subjects = ["248289761001"]         # or by the provider's own number of a person; of several providers: subjects.google = […]
    password = "$argon2id$…"            # or one password for all: `python -m gan_runtime operator-password` prints this line
    [auth]                              # Streamlit's own: the provider, docs/sharing.md

A file that cannot be understood stops the start (operator_settings.py). It is read again when it changes, and then everyone signs in again.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import tomllib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit import config

from dashboard.frame import operator_settings
from gan_runtime.base.errors import SignInError

SECONDS = 12 * 3600.0  # that somebody stays signed in
MOST_SEATS = 10_000
MOST_BYTES = 1 << 20
WRONG = "Sign-in is set up wrongly:"
OF_ALL_APPS = Path.home() / ".streamlit" / "secrets.toml"  # may hold what other apps need


@dataclass(frozen=True)
class Ways:
    """`providers`: their names, empty for the one of [auth] itself. `subjects`: (provider, its number of a person). `trouble`: what is
    wrong with the file; then nobody is an operator."""

    emails: frozenset[str] = frozenset()
    subjects: frozenset[tuple[str, str]] = frozenset()
    password: str = ""
    providers: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def are_set_up(self) -> bool:
        """Whether anybody can be told from others."""
        return bool(self.password or self.providers or self.emails or self.subjects or self.trouble)

    def is_operator(self, user: Mapping[str, Any]) -> bool:
        """By the claims of a provider in the file: its number of the person, or an address that it has verified."""
        email, provider = user.get("email"), user.get("provider")
        name = "" if provider == operator_settings.UNNAMED else provider
        if name not in self.providers:
            return False
        return (name, user.get("sub")) in self.subjects or (
            user.get("email_verified") is True and isinstance(email, str) and email.lower() in self.emails
        )


class Seats:
    """Which sessions have signed in: kept here and not in a session's own state, into which its browser writes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: OrderedDict[str, tuple[Ways, str, float]] = OrderedDict()

    def take(self, session_id: str, ways: Ways, person: str) -> None:
        """Somebody has signed in."""
        with self._lock:
            self._taken[session_id] = (ways, person, time.monotonic() + SECONDS)
            self._taken.move_to_end(session_id)
            while len(self._taken) > MOST_SEATS:
                self._taken.popitem(last=False)

    def leave(self, session_id: str) -> None:
        """They have signed out."""
        with self._lock:
            self._taken.pop(session_id, None)

    def person(self, session_id: str, ways: Ways) -> str:
        """Who has signed in under these very settings; empty for nobody."""
        with self._lock:
            known, person, until = self._taken.get(session_id, (None, "", 0.0))
        return person if known == ways and time.monotonic() < until else ""


def check_at_start() -> None:
    """Ends the process with a sentence where the secrets files cannot be understood: what somebody meant to protect would lie open.

    Called while the server loads app.py; what goes wrong later, in its lifespan, uvicorn shows as a traceback.
    """
    if trouble := ways().trouble:
        read = ", ".join(map(str, st.get_option("secrets.files")))
        print(f"Error: {trouble} Read from: {read}", file=sys.stderr, flush=True)
        raise SystemExit(2)


def ways() -> Ways:
    """Read from the secrets files that Streamlit reads. One that somebody has named must be there."""
    are_named = bool(config.is_manually_set("secrets.files"))
    files = [Path(file) for file in st.get_option("secrets.files")]
    try:
        return _read(tuple((file, _changed(file)) for file in files if are_named or file.exists()))
    except OSError as error:
        return Ways(trouble=f"{WRONG} {Path(error.filename).name} cannot be read ({error.strerror}).")


def _changed(file: Path) -> tuple[int, int]:
    known = file.stat()
    return known.st_mtime_ns, known.st_size


@functools.lru_cache(maxsize=4)
def _read(files: tuple[tuple[Path, tuple[int, int]], ...]) -> Ways:
    tables: dict[str, Any] = {}
    for file, (_, size) in files:
        try:
            if size > MOST_BYTES:
                raise ValueError("too large")
            added = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # its content belongs in no message
            return Ways(trouble=f"{WRONG} {file.name} cannot be read as TOML.")
        if odd := operator_settings.unknown_tables(added, is_shared=file == OF_ALL_APPS):
            return Ways(
                trouble=f"{WRONG} {odd} in {file.name} is not understood: allowed are [operators] and [auth]."
            )
        tables |= added
    return parsed(tables)


def parsed(tables: Mapping[str, Any]) -> Ways:
    """The ways that the tables of a secrets file open; a sentence where they cannot be understood."""
    try:
        providers = operator_settings.providers(tables.get("auth"))
        return Ways(**operator_settings.operators(tables.get("operators"), providers), providers=providers)
    except SignInError as error:
        return Ways(trouble=f"{WRONG} {error}")
