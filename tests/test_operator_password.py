"""The operator password: its hash, wrong tries and how long they keep one waiting; and what a secrets file opens."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st

from dashboard.frame import sign_in
from dashboard.frame.sign_in import MOST_SEATS, WRONG, Seats, Ways, parsed
from gan_runtime.errors import SignInError
from gan_runtime.operator_password import MOST_ADDRESSES, PasswordDoor, hash_of, is_hash

PASSWORD = "correct horse battery"


class Hand:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture(scope="module")
def known() -> str:
    """The hash of PASSWORD: making one takes a tenth of a second."""
    return hash_of(PASSWORD)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Compares as text, so that hundreds of tries take no time; the passwords that were compared."""
    compared: list[str] = []

    def is_right(known_hash: str, password: str) -> bool:
        compared.append(password)
        return known_hash == password

    monkeypatch.setattr("gan_runtime.operator_password._is_right", is_right)
    return compared


def tried(door: PasswordDoor, known: str, password: str, address: str = "192.0.2.7") -> str:
    """Why not; empty for the right one."""
    try:
        door.check(known, password, address)
    except SignInError as error:
        return str(error)
    return ""


def test_only_the_password_itself_is_right(known: str) -> None:
    assert is_hash(known)
    assert PASSWORD not in known
    assert known != hash_of(PASSWORD), "each has a salt of its own"
    wrong = ["", PASSWORD[:-1], f"{PASSWORD} ", PASSWORD.upper(), known, "\0", "\ud800" * 20, "x" * 10_000]
    assert tried(PasswordDoor(), known, PASSWORD) == ""
    assert {tried(PasswordDoor(), known, password) for password in wrong} == {
        "That is not the operator password."
    }


@pytest.mark.parametrize("password", ["", "short", "x" * 11, "x" * 201])
def test_a_password_of_another_length_is_refused_when_it_is_chosen(password: str) -> None:
    with pytest.raises(SignInError, match=f"has {len(password)} characters, but allowed is 12 to 200"):
        hash_of(password)


def test_after_five_wrong_ones_one_waits_and_is_not_even_compared(quick: list[str]) -> None:
    clock = Hand()
    door = PasswordDoor(clock)
    assert {tried(door, "right", "wrong") for _ in range(5)} == {"That is not the operator password."}
    assert tried(door, "right", "right") == "Too many wrong passwords: try again in 30 s."
    assert len(quick) == 5
    assert tried(door, "right", "right", "192.0.2.8") == "", "somebody else does not wait"
    clock.seconds += 30
    assert tried(door, "right", "right") == ""
    assert {tried(door, "right", "wrong") for _ in range(5)} == {"That is not the operator password."}, (
        "forgiven"
    )


def test_all_addresses_together_wait_too_and_a_network_counts_as_one(quick: list[str]) -> None:
    door = PasswordDoor(Hand())
    for number in range(6):
        tried(door, "right", "wrong", f"2001:db8::{number:x}")
    assert len(quick) == 5, "addresses of one /64 are one machine's"
    for number in range(100):
        tried(door, "right", "wrong", f"198.51.100.{number}")
    assert len(quick) == 60


def test_no_number_of_addresses_fills_the_memory(quick: list[str]) -> None:
    clock = Hand()
    door = PasswordDoor(clock)
    for number in range(MOST_ADDRESSES + 100):
        clock.seconds += 10
        tried(door, "right", "wrong", f"address {number}")
    assert len(quick) == MOST_ADDRESSES + 100
    assert len(door._debts) == MOST_ADDRESSES


# ---- the secrets file --------------------------------------------------------------------------------------------------------

PROVIDER = {"server_metadata_url": "https://id.example/.well-known/openid-configuration"}


def test_nothing_is_set_up_without_a_file() -> None:
    assert not parsed({}).are_set_up
    assert not parsed({"other": {"key": 1}}).are_set_up


def test_who_is_an_operator() -> None:
    ways = parsed({"operators": {"emails": ["Anna@lab.example"], "subjects": ["7"]}, "auth": PROVIDER})
    claims = {"email": "anna@LAB.example", "email_verified": True, "sub": "1"}
    assert ways.is_operator(claims)
    assert ways.is_operator({"sub": "7"})
    for changed in (
        {"email_verified": False}, {"email_verified": None}, {"email_verified": "true"}, {"email": "anna@lab.example.evil.example"},
        {"email": None}, {"email": ["anna@lab.example"]}, {"email": "anna@lab.example "}, {"sub": 7, "email": ""},
    ):  # fmt: skip
        assert not ways.is_operator({**claims, **changed}), changed
    assert not ways.is_operator({})


def test_an_empty_list_lets_nobody_in_and_everybody_look() -> None:
    ways = parsed({"auth": PROVIDER})
    assert ways.are_set_up
    assert not ways.is_operator({"sub": "", "email": "", "email_verified": True})
    assert not parsed({"operators": {"subjects": [""]}, "auth": PROVIDER}).is_operator({"sub": ""})


def test_providers_by_their_names() -> None:
    assert parsed({"auth": {"google": PROVIDER, "lab": PROVIDER, "client_kwargs": {}}}).providers == (
        "google",
        "lab",
    )
    assert parsed({"auth": PROVIDER}).providers == ("",)


@pytest.mark.parametrize(
    "tables",
    [
        {"operators": "anna"}, {"auth": 3}, {"operators": {"emails": "anna@lab.example"}, "auth": PROVIDER}, {"operators": {"emails": [1]}},
        {"operators": {"email": ["anna@lab.example"]}}, {"operators": {"password": "the password itself"}}, {"operators": {"password": 5}},
        {"operators": {"emails": ["anna@lab.example"]}},
    ],
)  # fmt: skip
def test_what_is_set_up_wrongly_lets_nobody_change_anything(tables: dict[str, object]) -> None:
    ways = parsed(tables)
    assert ways.are_set_up
    assert ways.trouble.startswith(WRONG)
    assert "the password itself" not in ways.trouble.replace("never the password itself", "")


def test_a_file_is_read_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    file = tmp_path / "secrets.toml"
    monkeypatch.setattr(st, "get_option", lambda name: [str(file)] if name == "secrets.files" else None)
    assert sign_in.ways() == Ways()
    file.write_text(f'[operators]\npassword = "{known}"', encoding="utf-8")
    assert sign_in.ways() == Ways(password=known)
    file.write_text('[operators]\npassword = "half a li', encoding="utf-8")
    assert sign_in.ways().trouble == f"{WRONG} secrets.toml cannot be read as TOML."
    file.write_bytes(b"\xff\xfe")
    assert sign_in.ways().are_set_up
    file.write_text("#" * (sign_in.MOST_BYTES + 1), encoding="utf-8")
    assert sign_in.ways().are_set_up


def test_a_seat_is_lost_by_leaving_by_time_and_when_the_settings_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Hand()
    monkeypatch.setattr("dashboard.frame.sign_in.time.monotonic", clock)
    seats, ways = Seats(), Ways(password="a")
    seats.take("s", ways, "anna")
    assert (seats.person("s", ways), seats.person("t", ways), seats.person("", ways)) == ("anna", "", "")
    assert seats.person("s", Ways(password="b")) == ""
    clock.seconds += sign_in.SECONDS
    assert seats.person("s", ways) == ""
    seats.take("s", ways, "anna")
    seats.leave("s")
    assert seats.person("s", ways) == ""
    for number in range(MOST_SEATS + 5):
        seats.take(f"{number}", ways, "anna")
    assert (seats.person("4", ways), seats.person("5", ways)) == ("", "anna")
