"""Who may sign in as an operator, as the secrets file says it, and who has.

    [operators]
    emails = ["anna@lab.example"]       # who signs in with OpenID Connect, whose provider must have verified the address
    subjects = ["248289761001"]         # or by the provider's own number of a person
    password = "$argon2id$…"            # or one password for all: `python -m gan_runtime operator-password` prints this line
    [auth]                              # Streamlit's own: the provider, docs/sharing.md

The file is looked at again when it changes, and then everyone signs in anew.
"""

from __future__ import annotations

import functools
import threading
import time
import tomllib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from gan_runtime.operator_password import is_hash

SECONDS = 12 * 3600.0  # that somebody stays signed in
MOST_SEATS = 10_000
MOST_BYTES = 1 << 20
WRONG = "Sign-in is set up wrongly, so nobody can change anything:"


@dataclass(frozen=True)
class Ways:
    """`providers`: their names, empty for the only one. `trouble`: what is wrong with the file; then nobody is an operator."""

    emails: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()
    password: str = ""
    providers: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def are_set_up(self) -> bool:
        """Whether anybody can be told from others."""
        return bool(self.password or self.providers or self.emails or self.subjects or self.trouble)

    def is_operator(self, user: Mapping[str, Any]) -> bool:
        """By the claims of the provider: the person's number, or an address that it has verified."""
        email = user.get("email")
        return user.get("sub") in self.subjects or (
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


def ways() -> Ways:
    """Read from the secrets files that Streamlit reads."""
    files = [Path(file) for file in st.get_option("secrets.files")]
    return _read(tuple((file, _changed(file)) for file in files if file.is_file()))


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
            tables |= tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # its content belongs in no message
            return Ways(trouble=f"{WRONG} {file.name} cannot be read as TOML.")
    return parsed(tables)


def parsed(tables: Mapping[str, Any]) -> Ways:
    """The ways that the tables of a secrets file open; a sentence where they open none."""
    operators, auth = tables.get("operators", {}), tables.get("auth", {})
    if not isinstance(operators, dict) or not isinstance(auth, dict):
        return Ways(trouble=f"{WRONG} [operators] and [auth] must be tables.")
    unknown = sorted(set(operators) - {"emails", "subjects", "password"})
    lists = [operators.get(name, []) for name in ("emails", "subjects")]
    if unknown or not all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in lists
    ):
        return Ways(
            trouble=f"{WRONG} [operators] holds emails and subjects, which are lists of texts, and password."
        )
    password = operators.get("password", "")
    if password != "" and not (isinstance(password, str) and is_hash(password)):
        return Ways(
            trouble=f"{WRONG} password must be the hash that `python -m gan_runtime operator-password` prints, never the password itself."
        )
    emails, subjects = (frozenset(filter(None, names)) for names in lists)
    providers = _providers(auth)
    if (emails or subjects) and not providers:
        return Ways(trouble=f"{WRONG} emails and subjects need a provider in [auth].")
    return Ways(frozenset(map(str.lower, emails)), subjects, password, providers)


def _providers(auth: Mapping[str, Any]) -> tuple[str, ...]:
    named = tuple(
        name for name, table in auth.items() if isinstance(table, dict) and "server_metadata_url" in table
    )
    return ("",) if "server_metadata_url" in auth else named
