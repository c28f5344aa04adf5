"""The tables of a secrets file, key by key. What is not understood is refused with its name and what is allowed, never with its value."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from gan_runtime.base.errors import SignInError
from gan_runtime.base.operator_password import is_hash

TABLES = ("operators", "auth")
OPERATORS = ("emails", "subjects", "password")
OF_A_PROVIDER = ("client_id", "client_secret", "server_metadata_url")
OF_AUTH = ("redirect_uri", "cookie_secret")
UNNAMED = "default"  # Streamlit's name for the provider of [auth] itself
LEAST_SECRET = 24  # characters: who guesses the secret of the identity cookie is whoever they want to be


def unknown_tables(tables: Mapping[str, Any], *, is_shared: bool) -> str:
    """The first table or key that is none of ours; in a file that other apps share, only one that looks like a slip."""
    for name in tables:
        if name not in TABLES and (not is_shared or difflib.get_close_matches(name.lower(), TABLES)):
            return f"[{name}]"
    return ""


def providers(auth: Any) -> tuple[str, ...]:
    """Their names, empty for the one of [auth] itself. Raises SignInError."""
    if auth is None:
        return ()
    table = _table("auth", auth)
    _texts("auth", table, OF_AUTH)
    if len(table["cookie_secret"]) < LEAST_SECRET:
        raise SignInError(f"auth.cookie_secret must have {LEAST_SECRET} characters at least.")
    named = [name for name, value in table.items() if isinstance(value, dict) and name != "client_kwargs"]
    for name in named:
        if "_" in name:
            raise SignInError(f"[auth.{name}]: the name of a provider holds no underscore.")
        if name == UNNAMED:
            raise SignInError(
                f"[auth.{name}]: Streamlit calls the provider of [auth] itself so; give it another name."
            )
        _texts(f"auth.{name}", table[name], OF_A_PROVIDER)
    if not named or set(OF_A_PROVIDER) & set(table):
        _texts("auth", table, OF_A_PROVIDER)
        return ("", *named)
    return tuple(named)


def operators(table: Any, providers: tuple[str, ...]) -> dict[str, Any]:
    """`emails`, `subjects` and `password` of `Ways`. Raises SignInError."""
    if table is None:
        return {}
    table = _table("operators", table)
    if unknown := sorted(set(table) - set(OPERATORS)):
        raise SignInError(f"operators.{unknown[0]} is not understood: allowed are {_listed(OPERATORS)}.")
    if not table:
        raise SignInError(f"[operators] is empty: give one of {_listed(OPERATORS)}.")
    people = sorted(set(table) - {"password"})
    if people and not providers:
        raise SignInError(f"operators.{people[0]} needs a provider in [auth].")
    if "password" in table and not is_hash(table["password"]):
        raise SignInError(
            "operators.password must be the hash that `python -m gan_runtime operator-password` prints, never the password itself."
        )
    emails = _names("operators.emails", table["emails"]) if "emails" in table else []
    subjects = _subjects(table["subjects"], providers) if "subjects" in table else []
    return {
        "emails": frozenset(email.lower() for email in emails),
        "subjects": frozenset(subjects),
        "password": table.get("password", ""),
    }


def _subjects(given: Any, providers: tuple[str, ...]) -> list[tuple[str, str]]:
    """(provider, its number of a person): the same number is somebody else's at another provider."""
    if not isinstance(given, dict):
        numbers = _names("operators.subjects", given)
        if len(providers) > 1:
            raise SignInError(
                "operators.subjects must say whose numbers they are, as there are several providers: "
                f"a list for each in [operators.subjects], under its name ({_listed(tuple(filter(None, providers)))})."
            )
        return [(providers[0], number) for number in numbers]
    if unknown := sorted(set(given) - set(providers)):
        raise SignInError(
            f"operators.subjects.{unknown[0]} is no provider: allowed are {_listed(providers)}."
        )
    if not given:
        raise SignInError("[operators.subjects] is empty.")
    return [(name, number) for name in given for number in _names(f"operators.subjects.{name}", given[name])]


def _table(name: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise SignInError(f"{name} must be a table: write [{name}] on a line of its own.")
    return given


def _texts(name: str, table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        if not isinstance(table.get(key), str) or not table[key]:
            given = _listed(tuple(sorted(table))) or "nothing"
            raise SignInError(f"{name}.{key} must be a text that is not empty; [{name}] holds {given}.")


def _names(name: str, given: Any) -> list[str]:
    if not isinstance(given, list) or not given or not all(isinstance(text, str) and text for text in given):
        raise SignInError(f"{name} must be a list of texts, and neither it nor any of them is empty.")
    return given


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
