"""Who may sign in as an operator, as the secrets file says it, and who has.

    [operators]
    emails = ["anna@lab.example"]       # who signs in with OpenID Connect, whose provider must have
    verified the address
    subjects = ["248289761001"]         # or by the provider's own number of a person; of several
    providers: subjects.google = […]
    password = "$argon2id$…"            # or one password for all: `python -m gan_runtime
    operator-password` prints this line
    [auth]                              # Streamlit's own: the provider, docs/sharing.md

A file that cannot be understood stops the start. It is read again when it changes, and then
everyone signs in again. No sentence about it holds a value of it.
"""

from __future__ import annotations

import difflib
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

from gan_runtime.base.errors import SignInError
from gan_runtime.base.web_access import is_hash

TABLES = ("operators", "auth")
OPERATORS = ("emails", "subjects", "password")
OF_A_PROVIDER = ("client_id", "client_secret", "server_metadata_url")
OF_AUTH = ("redirect_uri", "cookie_secret")
UNNAMED = "default"  # Streamlit's name for the provider of [auth] itself
LEAST_SECRET = 24  # characters: who guesses the secret of the identity cookie can be any user


def unknown_tables(tables: Mapping[str, Any], *, is_shared: bool) -> str:
    """The first table or key that is none of ours; in a file that other apps share, only one
    that is likely a slip.
    """
    for name in tables:
        if name not in TABLES and (
            not is_shared or difflib.get_close_matches(name.lower(), TABLES)
        ):
            return f"[{name}]"
    return ""


def provider_names(auth: Any) -> tuple[str, ...]:
    """Their names, empty for the one of [auth] itself. Raises SignInError."""
    if auth is None:
        return ()
    table = _table("auth", auth)
    _texts("auth", table, OF_AUTH)
    if len(table["cookie_secret"]) < LEAST_SECRET:
        raise SignInError(f"auth.cookie_secret must have {LEAST_SECRET} characters at least.")
    named = [
        name for name, value in table.items() if isinstance(value, dict) and name != "client_kwargs"
    ]
    for name in named:
        if "_" in name:
            raise SignInError(
                f"[auth.{name}]: the name of a provider must not contain an underscore."
            )
        if name == UNNAMED:
            raise SignInError(
                f"[auth.{name}]: Streamlit uses this name for the provider of [auth]. Choose"
                " another name."
            )
        _texts(f"auth.{name}", table[name], OF_A_PROVIDER)
    if not named or set(OF_A_PROVIDER) & set(table):
        _texts("auth", table, OF_A_PROVIDER)
        return ("", *named)
    return tuple(named)


def operator_entries(table: Any, providers: tuple[str, ...]) -> dict[str, Any]:
    """`emails`, `subjects` and `password` of `Ways`. Raises SignInError."""
    if table is None:
        return {}
    table = _table("operators", table)
    if unknown := sorted(set(table) - set(OPERATORS)):
        raise SignInError(f"operators.{unknown[0]} is unknown. Allowed: {_joined(OPERATORS)}.")
    if not table:
        raise SignInError(f"[operators] is empty: give one of {_joined(OPERATORS)}.")
    people = sorted(set(table) - {"password"})
    if people and not providers:
        raise SignInError(f"operators.{people[0]} needs a provider in [auth].")
    if "password" in table and not is_hash(table["password"]):
        raise SignInError(
            "operators.password must be the hash that `python -m gan_runtime operator-password`"
            " prints, never the password itself."
        )
    emails = _names("operators.emails", table["emails"]) if "emails" in table else []
    subjects = _subjects(table["subjects"], providers) if "subjects" in table else []
    return {
        "emails": frozenset(email.lower() for email in emails),
        "subjects": frozenset(subjects),
        "password": table.get("password", ""),
    }


def _subjects(subjects: Any, providers: tuple[str, ...]) -> list[tuple[str, str]]:
    """(provider, its number of a user): the same number is another person at another
    provider.
    """
    if not isinstance(subjects, dict):
        numbers = _names("operators.subjects", subjects)
        if len(providers) > 1:
            raise SignInError(
                "There are several providers, so operators.subjects must name one for each list:"
                f" [operators.subjects] with keys {_joined(tuple(filter(None, providers)))}."
            )
        return [(providers[0], number) for number in numbers]
    if unknown := sorted(set(subjects) - set(providers)):
        raise SignInError(
            f"operators.subjects.{unknown[0]} is not a provider. Allowed: {_joined(providers)}."
        )
    if not subjects:
        raise SignInError("[operators.subjects] is empty.")
    return [
        (name, number)
        for name in subjects
        for number in _names(f"operators.subjects.{name}", subjects[name])
    ]


def _table(name: str, table: Any) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise SignInError(f"{name} must be a table: write [{name}] on a separate line.")
    return table


def _texts(name: str, table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        if not isinstance(table.get(key), str) or not table[key]:
            present = _joined(tuple(sorted(table))) or "nothing"
            raise SignInError(
                f"{name}.{key} must be a text, not empty. [{name}] contains {present}."
            )


def _names(name: str, names: Any) -> list[str]:
    if (
        not isinstance(names, list)
        or not names
        or not all(isinstance(text, str) and text for text in names)
    ):
        raise SignInError(f"{name} must be a list of texts, none of them empty.")
    return names


def _joined(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


SECONDS = 12 * 3600.0  # that a user stays signed in
MOST_SEATS = 10_000
MOST_BYTES = 1 << 20
WRONG = "Sign-in is set up wrongly:"
OF_ALL_APPS = Path.home() / ".streamlit" / "secrets.toml"  # may hold what other apps need


@dataclass(frozen=True)
class Ways:
    """`providers`: their names, empty for the one of [auth] itself.

    `subjects`: (provider, its number of a user). `trouble`: what is wrong with the file; then
    nobody is an operator.
    """

    emails: frozenset[str] = frozenset()
    subjects: frozenset[tuple[str, str]] = frozenset()
    password: str = ""
    providers: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def are_set_up(self) -> bool:
        """Whether users can be identified."""
        return bool(self.password or self.providers or self.emails or self.subjects or self.trouble)

    def is_operator(self, user: Mapping[str, Any]) -> bool:
        """By the claims of a provider in the file: its number of the person, or an address
        that it has verified.
        """
        email, provider = user.get("email"), user.get("provider")
        name = "" if provider == UNNAMED else provider
        if name not in self.providers:
            return False
        return (name, user.get("sub")) in self.subjects or (
            user.get("email_verified") is True
            and isinstance(email, str)
            and email.lower() in self.emails
        )


class Seats:
    """Which sessions have signed in: kept here and not in a session's own state, into which
    its browser writes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: OrderedDict[str, tuple[Ways, str, float]] = OrderedDict()

    def take(self, session_id: str, ways: Ways, person: str) -> None:
        """A user has signed in."""
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
        """Who has signed in under the current settings; empty if nobody has."""
        with self._lock:
            seat_ways, person, until = self._taken.get(session_id, (None, "", 0.0))
        return person if seat_ways == ways and time.monotonic() < until else ""


def check_at_start() -> None:
    """Ends the process with a sentence where the secrets files cannot be understood: what somebody
    meant to protect would lie open.

    Called while the server loads app.py; what goes wrong later, in its lifespan, uvicorn shows as a
    traceback.
    """
    if trouble := ways().trouble:
        read = ", ".join(map(str, st.get_option("secrets.files")))
        print(f"Error: {trouble} Read from: {read}", file=sys.stderr, flush=True)
        raise SystemExit(2)


def ways() -> Ways:
    """Read from the secrets files that Streamlit reads.

    One that somebody has named must be there.
    """
    are_named = bool(config.is_manually_set("secrets.files"))
    files = [Path(file) for file in st.get_option("secrets.files")]
    try:
        return _read(tuple((file, _changed(file)) for file in files if are_named or file.exists()))
    except OSError as error:
        return Ways(
            trouble=f"{WRONG} {Path(error.filename).name} cannot be read ({error.strerror})."
        )


def _changed(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


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
        if odd := unknown_tables(added, is_shared=file == OF_ALL_APPS):
            return Ways(
                trouble=f"{WRONG} {odd} in {file.name} is unknown. Allowed: [operators] and [auth]."
            )
        tables |= added
    return parsed(tables)


def parsed(tables: Mapping[str, Any]) -> Ways:
    """The ways that the tables of a secrets file open; a sentence where they cannot be
    understood.
    """
    try:
        providers = provider_names(tables.get("auth"))
        return Ways(**operator_entries(tables.get("operators"), providers), providers=providers)
    except SignInError as error:
        return Ways(trouble=f"{WRONG} {error}")
