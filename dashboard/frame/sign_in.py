"""Who can sign in as an operator, by the secrets file, and who has signed in.

    [operators]
    emails = ["anna@lab.example"]       # OpenID Connect, address verified by the provider
    subjects = ["248289761001"]         # or the provider's number of a user
                                        # several providers: subjects.google = […]
    password = "$argon2id$…"            # or one password for all, the line that
                                        # `python -m gan_runtime operator-password` prints
    [auth]                              # Streamlit's table of the provider, docs/sharing.md

The dashboard does not start with an invalid file. A changed file is read again, and then everyone
signs in again. No message contains a value of the file.
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
PROVIDER_KEYS = ("client_id", "client_secret", "server_metadata_url")
AUTH_KEYS = ("redirect_uri", "cookie_secret")
UNNAMED = "default"  # Streamlit's name for the provider in [auth] itself
LEAST_SECRET = 24  # characters: a guessed cookie secret lets anyone be any user


def unknown_tables(tables: Mapping[str, Any], *, is_shared: bool) -> str:
    """The first unknown table or key; in a file shared with other apps, only one that looks like
    a typing error.
    """
    for name in tables:
        if name not in TABLES and (
            not is_shared or difflib.get_close_matches(name.lower(), TABLES)
        ):
            return f"[{name}]"
    return ""


def provider_names(auth: Any) -> tuple[str, ...]:
    """The names of the providers, empty for the one in [auth] itself. Raises SignInError."""
    if auth is None:
        return ()
    table = _table("auth", auth)
    _texts("auth", table, AUTH_KEYS)
    if len(table["cookie_secret"]) < LEAST_SECRET:
        raise SignInError(
            f"auth.cookie_secret must have at least {LEAST_SECRET} characters. Use a random text."
        )
    names = [
        name for name, value in table.items() if isinstance(value, dict) and name != "client_kwargs"
    ]
    for name in names:
        if "_" in name:
            raise SignInError(
                f"[auth.{name}]: the name of a provider must not contain an underscore. Rename it."
            )
        if name == UNNAMED:
            raise SignInError(
                f"[auth.{name}]: Streamlit uses this name for the provider of [auth]. Choose"
                " another name."
            )
        _texts(f"auth.{name}", table[name], PROVIDER_KEYS)
    if not names or set(PROVIDER_KEYS) & set(table):
        _texts("auth", table, PROVIDER_KEYS)
        return ("", *names)
    return tuple(names)


def operator_entries(table: Any, providers: tuple[str, ...]) -> dict[str, Any]:
    """The fields `emails`, `subjects` and `password` of `SignInSettings`. Raises SignInError."""
    if table is None:
        return {}
    table = _table("operators", table)
    if unknown := sorted(set(table) - set(OPERATORS)):
        raise SignInError(f"operators.{unknown[0]} is unknown. Allowed: {_joined(OPERATORS)}.")
    if not table:
        raise SignInError(f"[operators] is empty. Set one of {_joined(OPERATORS)}.")
    user_keys = sorted(set(table) - {"password"})
    if user_keys and not providers:
        raise SignInError(f"operators.{user_keys[0]} needs a provider in [auth].")
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
    """(provider, its number of a user): other providers give the same number to other users."""
    if not isinstance(subjects, dict):
        numbers = _names("operators.subjects", subjects)
        if len(providers) > 1:
            raise SignInError(
                "There are several providers. List operators.subjects by provider:"
                f" [operators.subjects] with keys {_joined(tuple(filter(None, providers)))}."
            )
        return [(providers[0], number) for number in numbers]
    if unknown := sorted(set(subjects) - set(providers)):
        raise SignInError(
            f"operators.subjects.{unknown[0]} is not a provider. Allowed: {_joined(providers)}."
        )
    if not subjects:
        raise SignInError("[operators.subjects] is empty. List users or remove it.")
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
                f"{name}.{key} must be a text that is not empty. [{name}] contains {present}."
            )


def _names(name: str, names: Any) -> list[str]:
    if (
        not isinstance(names, list)
        or not names
        or not all(isinstance(text, str) and text for text in names)
    ):
        raise SignInError(f"{name} must be a list of texts that are not empty.")
    return names


def _joined(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


SECONDS = 12 * 3600.0  # before a user must sign in again
MOST_USERS = 10_000
MOST_BYTES = 1 << 20
INVALID = "The sign-in settings are invalid:"
SHARED_FILE = Path.home() / ".streamlit" / "secrets.toml"  # can hold settings of other apps


@dataclass(frozen=True)
class SignInSettings:
    """The ways to sign in. `providers`: their names, empty for the one in [auth] itself.

    `subjects`: (provider, its number of a user). `trouble`: the error in the file, with which
    nobody is an operator.
    """

    emails: frozenset[str] = frozenset()
    subjects: frozenset[tuple[str, str]] = frozenset()
    password: str = ""
    providers: tuple[str, ...] = ()
    problem: str = ""

    @property
    def are_set_up(self) -> bool:
        """Whether sign-in is set up."""
        return bool(self.password or self.providers or self.emails or self.subjects or self.problem)

    def is_operator(self, user: Mapping[str, Any]) -> bool:
        """Whether the claims of a configured provider match: its number of the user, or a verified
        address.
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


class SignedInUsers:
    """The sessions that have signed in. Not in a session's own state, to which its browser
    writes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: OrderedDict[str, tuple[SignInSettings, str, float]] = OrderedDict()

    def add(self, session_id: str, settings: SignInSettings, user: str) -> None:
        """Signs a user in."""
        with self._lock:
            self._users[session_id] = (settings, user, time.monotonic() + SECONDS)
            self._users.move_to_end(session_id)
            while len(self._users) > MOST_USERS:
                self._users.popitem(last=False)

    def remove(self, session_id: str) -> None:
        """Signs the user of a session out."""
        with self._lock:
            self._users.pop(session_id, None)

    def user(self, session_id: str, settings: SignInSettings) -> str:
        """The user signed in under the current settings; empty if none."""
        with self._lock:
            user_settings, user, until = self._users.get(session_id, (None, "", 0.0))
        return user if user_settings == settings and time.monotonic() < until else ""


def check_at_start() -> None:
    """Ends the process with a message if the secrets files are invalid: otherwise what they were
    meant to protect would be open.

    Called while the server loads app.py; uvicorn shows later errors as tracebacks.
    """
    if problem := settings().problem:
        files = ", ".join(map(str, st.get_option("secrets.files")))
        print(f"Error: {problem} Read from: {files}", file=sys.stderr, flush=True)
        raise SystemExit(2)


def settings() -> SignInSettings:
    """The ways to sign in, from the secrets files that Streamlit reads.

    A file named in the settings must exist, and set up sign-in.
    """
    are_named = bool(config.is_manually_set("secrets.files"))
    files = [Path(file) for file in st.get_option("secrets.files")]
    try:
        read = _read(tuple((file, _changed(file)) for file in files if are_named or file.exists()))
    except OSError as error:
        return SignInSettings(
            problem=f"{INVALID} {Path(error.filename).name} cannot be read ({error.strerror})."
        )
    if are_named and not read.are_set_up:
        names = _joined(tuple(file.name for file in files)) or "an empty list of files"
        return SignInSettings(problem=f"{INVALID} {names} must have a table [operators] or [auth].")
    return read


def _changed(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


@functools.lru_cache(maxsize=4)
def _read(files: tuple[tuple[Path, tuple[int, int]], ...]) -> SignInSettings:
    tables: dict[str, Any] = {}
    for file, (_, size) in files:
        try:
            if size > MOST_BYTES or not file.is_file():  # opening a pipe would block
                raise ValueError("too large, or no file")
            added = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):  # no message may contain the content
            return SignInSettings(problem=f"{INVALID} {file.name} cannot be read as TOML.")
        if unknown := unknown_tables(added, is_shared=file == SHARED_FILE):
            return SignInSettings(
                problem=(
                    f"{INVALID} {unknown} in {file.name} is unknown. Allowed: [operators] and"
                    " [auth]."
                )
            )
        tables |= added
    return parsed(tables)


def parsed(tables: Mapping[str, Any]) -> SignInSettings:
    """The ways to sign in by the tables of a secrets file; with `trouble` if they are invalid."""
    try:
        providers = provider_names(tables.get("auth"))
        return SignInSettings(
            **operator_entries(tables.get("operators"), providers), providers=providers
        )
    except SignInError as error:
        return SignInSettings(problem=f"{INVALID} {error}")
