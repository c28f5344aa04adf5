"""The operator password: its hash, wrong attempts and the pauses after them; and the settings in a
secrets file.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
import streamlit as st
from streamlit import config

from dashboard.frame import access, sign_in
from dashboard.frame.sign_in import INVALID, MOST_USERS, SignedInUsers, SignInSettings, parsed
from gan_runtime.base.errors import SignInError
from gan_runtime.base.web_access import (
    MOST_WAITING,
    MOST_WAITING_PER_ADDRESS,
    PasswordCheck,
    hash_of,
    is_hash,
)

PASSWORD = "correct horse battery"


class Hand:
    """A clock that only the test advances."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture(scope="module")
def password_hash() -> str:
    """The hash of PASSWORD: computing one takes a tenth of a second."""
    return hash_of(PASSWORD)


def as_text(password_hash: str, password: str) -> bool:
    """Compares plain texts, so that hundreds of attempts take no time."""
    return password_hash == password


def tried(
    door: PasswordCheck, password_hash: str, password: str, address: str = "192.0.2.7"
) -> str:
    """The refusal of a password; empty for the correct one."""
    try:
        door.check(password_hash, password, address)
    except SignInError as error:
        return str(error)
    return ""


def test_only_the_exact_password_is_accepted(password_hash: str) -> None:
    assert is_hash(password_hash)
    assert PASSWORD not in password_hash
    assert password_hash != hash_of(PASSWORD), "each has a salt of its own"
    wrong = [
        "",
        PASSWORD[:-1],
        f"{PASSWORD} ",
        PASSWORD.upper(),
        password_hash,
        "\0",
        "\ud800" * 20,
        "x" * 10_000,
    ]
    assert tried(PasswordCheck(), password_hash, PASSWORD) == ""
    assert {tried(PasswordCheck(), password_hash, password) for password in wrong} == {
        "That is not the operator password."
    }


@pytest.mark.parametrize("password", ["", "short", "x" * 11, "x" * 201])
def test_new_password_of_invalid_length_is_refused(password: str) -> None:
    with pytest.raises(
        SignInError, match=f"has {len(password)} characters, but allowed are 12 to 200"
    ):
        hash_of(password)


def test_pause_doubles_after_five_wrong_passwords_until_a_correct_one() -> None:
    clock = Hand()
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        clock.seconds += seconds

    door = PasswordCheck(clock, sleep, as_text)
    for number in range(11):
        assert (
            tried(door, "right", "wrong", f"192.0.2.{number}")
            == "That is not the operator password."
        )
    assert pauses == [0, 0, 0, 0, 0, 1, 2, 4, 8, 15, 15], "whatever address they came from"
    assert tried(door, "right", "right", "192.0.2.1") == "", (
        "it waited for its turn, and was not refused"
    )
    assert pauses[-1] == 15
    assert tried(door, "right", "wrong") == "That is not the operator password."
    assert pauses[-1] == 0


def test_pause_ends_an_hour_after_wrong_passwords() -> None:
    clock = Hand()
    pauses: list[float] = []
    door = PasswordCheck(clock, pauses.append, as_text)
    for _ in range(9):
        tried(door, "right", "wrong")
    clock.seconds += 3600
    assert tried(door, "right", "right") == ""
    assert pauses[-1] == 0


def test_one_machine_cannot_fill_the_sign_in_line_and_memory_is_bounded() -> None:
    """Addresses of one /64 belong to one machine."""
    door = PasswordCheck(Hand(), lambda _: None, as_text)
    full = "Too many sign-ins are waiting. Try again in a minute."
    with ExitStack() as waiting:
        for number in range(MOST_WAITING_PER_ADDRESS):
            waiting.enter_context(door.place(f"2001:db8::{number:x}"))
        assert tried(door, "right", "right", "2001:db8::ffff") == full
        assert tried(door, "right", "right", "198.51.100.7") == "", "somebody else has a place"
        for number in range(MOST_WAITING - MOST_WAITING_PER_ADDRESS):
            waiting.enter_context(door.place(f"198.51.100.{number}"))
        assert tried(door, "right", "right", "203.0.113.7") == full
    assert tried(door, "right", "right", "2001:db8::ffff") == ""
    assert door.waiting == 0


# ---- the secrets file ----------------------------------------------------------------------------

PROVIDER = {
    "client_id": "gan",
    "client_secret": "a secret of the provider",
    "server_metadata_url": "https://id.example/.well-known/openid-configuration",
}
AUTH = {
    "redirect_uri": "https://lab.example/oauth2callback",
    "cookie_secret": "0123456789abcdef01234567",
}
ONE_PROVIDER = AUTH | PROVIDER
TWO = AUTH | {"google": PROVIDER, "lab": PROVIDER}


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("m=65536", "m=4000000000"),
        ("m=65536", "m=64"),
        ("t=3", "t=99999999"),
        ("t=3", "t=0"),
        ("p=4", "p=1000"),
        ("argon2id", "argon2i"),
        ("v=19", "v=16"),
    ],
)
def test_hash_whose_comparison_is_weak_or_takes_too_long_is_refused(
    password_hash: str, part: str, other: str
) -> None:
    assert is_hash(password_hash)
    assert not is_hash(password_hash.replace(part, other))


def test_hash_cut_anywhere_is_refused(password_hash: str) -> None:
    assert not any(is_hash(password_hash[:end]) for end in range(len(password_hash)))
    assert not is_hash(f"{password_hash}=")
    assert not is_hash(f"{password_hash}\n")


def test_missing_file_sets_up_nothing() -> None:
    assert not parsed({}).are_set_up


def test_operator_needs_a_listed_subject_or_verified_email() -> None:
    settings = parsed(
        {"operators": {"emails": ["Anna@lab.example"], "subjects": ["7"]}, "auth": ONE_PROVIDER}
    )
    claims = {
        "provider": "default",
        "email": "anna@LAB.example",
        "email_verified": True,
        "sub": "1",
    }
    assert settings.is_operator(claims)
    assert settings.is_operator({"provider": "default", "sub": "7"})
    for changed in (
        {"email_verified": False},
        {"email_verified": None},
        {"email_verified": "true"},
        {"email": "anna@lab.example.evil.example"},
        {"email": None},
        {"email": ["anna@lab.example"]},
        {"email": "anna@lab.example "},
        {"sub": 7, "email": ""},
        {"provider": "google"},
        {"provider": None},
        {"provider": ""} | {"email": ""},
    ):
        assert not settings.is_operator({**claims, **changed}), changed
    assert not settings.is_operator({})


def test_subject_of_one_provider_is_no_operator_at_another() -> None:
    settings = parsed({"operators": {"subjects": {"lab": ["7"], "google": ["8"]}}, "auth": TWO})
    assert not settings.problem
    accounts = [(provider, sub) for provider in ("lab", "google", "default") for sub in ("7", "8")]
    assert [
        pair
        for pair in accounts
        if settings.is_operator(dict(zip(("provider", "sub"), pair, strict=True)))
    ] == [
        ("lab", "7"),
        ("google", "8"),
    ]
    only = parsed({"operators": {"subjects": ["7"]}, "auth": AUTH | {"lab": PROVIDER}})
    assert only.is_operator({"provider": "lab", "sub": "7"})
    assert not only.is_operator({"provider": "google", "sub": "7"})


def test_a_provider_without_operators_makes_all_users_viewers() -> None:
    settings = parsed({"auth": ONE_PROVIDER})
    assert settings.are_set_up
    assert not settings.is_operator(
        {"provider": "default", "sub": "", "email": "", "email_verified": True}
    )


def test_providers_are_listed_by_name() -> None:
    assert parsed({"auth": {**TWO, "client_kwargs": {}}}).providers == ("google", "lab")
    assert parsed({"auth": ONE_PROVIDER}).providers == ("",)
    assert parsed({"auth": ONE_PROVIDER | {"lab": PROVIDER}}).providers == ("", "lab")


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ({"operators": "anna"}, "operators must be a table"),
        ({"auth": 3}, "auth must be a table"),
        ({"operators": {}}, "[operators] is empty. Set one of emails, subjects and password."),
        (
            {"operators": {"emails": "anna@lab.example"}, "auth": ONE_PROVIDER},
            "operators.emails must be a list of texts",
        ),
        ({"operators": {"emails": []}, "auth": ONE_PROVIDER}, "operators.emails must be a list"),
        ({"operators": {"emails": [1]}, "auth": ONE_PROVIDER}, "operators.emails must be a list"),
        (
            {"operators": {"subjects": [""]}, "auth": ONE_PROVIDER},
            "operators.subjects must be a list",
        ),
        (
            {"operators": {"subjects": {"lab": []}}, "auth": TWO},
            "operators.subjects.lab must be a list",
        ),
        (
            {"operators": {"subjects": {"gogle": ["7"]}}, "auth": TWO},
            "operators.subjects.gogle is not a provider. Allowed: google and lab.",
        ),
        ({"operators": {"subjects": {}}, "auth": TWO}, "[operators.subjects] is empty"),
        (
            {"operators": {"subjects": ["7"]}, "auth": TWO},
            "There are several providers",
        ),
        (
            {"operators": {"email": ["anna@lab.example"]}, "auth": ONE_PROVIDER},
            "operators.email is unknown. Allowed: emails, subjects and password.",
        ),
        ({"operators": {"password": "the password itself"}}, "operators.password must be the hash"),
        (
            {"operators": {"password": "$argon2id$the password itself"}},
            "operators.password must be the hash",
        ),
        ({"operators": {"password": ""}}, "operators.password must be the hash"),
        ({"operators": {"password": 5}}, "operators.password must be the hash"),
        (
            {"operators": {"emails": ["anna@lab.example"]}},
            "operators.emails needs a provider in [auth].",
        ),
        (
            {"auth": AUTH},
            (
                "auth.client_id must be a text that is not empty. [auth] contains cookie_secret and"
                " redirect_uri."
            ),
        ),
        ({"auth": PROVIDER}, "auth.redirect_uri must be a text"),
        (
            {"auth": ONE_PROVIDER | {"cookie_secret": "short"}},
            "auth.cookie_secret must have at least 24 characters. Use a random text.",
        ),
        ({"auth": AUTH | {"lab": {"client_id": "gan"}}}, "auth.lab.client_secret must be a text"),
        (
            {"auth": AUTH | {"my_lab": PROVIDER}},
            "[auth.my_lab]: the name of a provider must not contain an underscore.",
        ),
        (
            {"auth": AUTH | {"default": PROVIDER}},
            (
                "[auth.default]: Streamlit uses this name for the provider of [auth]. Choose"
                " another name."
            ),
        ),
        (
            {"auth": AUTH | PROVIDER | {"server_metadata_url": ""}},
            "auth.server_metadata_url must be a text that is not empty",
        ),
    ],
)
def test_invalid_setting_refuses_all_changes_and_names_its_key(
    tables: dict[str, object], sentence: str
) -> None:
    settings = parsed(tables)
    assert settings.are_set_up
    assert settings.problem.startswith(f"{INVALID} {sentence}")
    for secret in (
        "the password itself",
        "a secret of the provider",
        AUTH["cookie_secret"],
        "short;",
    ):
        assert secret not in settings.problem.replace("never the password itself", "")


@pytest.fixture
def secrets_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of Streamlit's secrets file, which does not exist yet."""
    file = tmp_path / "secrets.toml"
    monkeypatch.setattr(
        st, "get_option", lambda name: [str(file)] if name == "secrets.files" else None
    )
    return file


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[operatos]\npassword = 1",
            "[operatos] in secrets.toml is unknown. Allowed: [operators] and [auth].",
        ),
        ("a = " + "[" * 20_000, "secrets.toml cannot be read as TOML."),
        ('password = "x"', "[password] in secrets.toml is unknown"),
        ('[operators]\npassword = "half a li', "secrets.toml cannot be read as TOML."),
        (None, "secrets.toml cannot be read as TOML."),
    ],
)
def test_unreadable_file_stops_the_start(
    secrets_file: Path, capsys: pytest.CaptureFixture[str], text: str | None, sentence: str
) -> None:
    sign_in.check_at_start()
    if text is None:
        secrets_file.mkdir()
    else:
        secrets_file.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit):
        sign_in.check_at_start()
    message = capsys.readouterr().err
    assert message.startswith(f"Error: {INVALID} {sentence}")
    assert str(secrets_file) in message
    assert str(secrets_file.parent) not in sign_in.settings().problem, "viewers read that"


@pytest.mark.usefixtures("secrets_file")
def test_explicitly_configured_file_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "is_manually_set", lambda name: name == "secrets.files")
    assert (
        sign_in.settings().problem
        == f"{INVALID} secrets.toml cannot be read (No such file or directory)."
    )


@pytest.mark.parametrize("text", ["", "# [operators]\n# password = 1\n"])
def test_explicitly_configured_file_without_settings_stops_the_start(
    secrets_file: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(config, "is_manually_set", lambda name: name == "secrets.files")
    secrets_file.write_text(text, encoding="utf-8")
    assert sign_in.settings().are_set_up
    with pytest.raises(SystemExit):
        sign_in.check_at_start()


def test_configuration_that_names_no_file_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "is_manually_set", lambda name: name == "secrets.files")
    monkeypatch.setattr(st, "get_option", lambda _: [])
    with pytest.raises(SystemExit):
        sign_in.check_at_start()


def test_pipe_as_secrets_file_stops_the_start(secrets_file: Path) -> None:
    os.mkfifo(secrets_file)
    with pytest.raises(SystemExit):
        sign_in.check_at_start()


def test_other_apps_tables_in_a_shared_file_are_ignored_but_typos_are_not(
    secrets_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in, "SHARED_FILE", secrets_file)
    secrets_file.write_text('api_key = "x"\n[connections.sql]\nurl = "y"', encoding="utf-8")
    assert sign_in.settings() == SignInSettings()
    secrets_file.write_text('[Operater]\npassword = "x"', encoding="utf-8")
    assert "[Operater]" in sign_in.settings().problem


def test_removed_file_refuses_all_changes_while_the_dashboard_runs(
    secrets_file: Path, password_hash: str
) -> None:
    """The same applies while an editor has emptied the file."""
    text = f'[operators]\npassword = "{password_hash}"'
    secrets_file.write_text(text, encoding="utf-8")
    guards = access.Guards()
    secrets_file.write_text("", encoding="utf-8")
    assert guards.sign_in_settings().problem == access.SETTINGS_REMOVED
    secrets_file.unlink()
    assert guards.sign_in_settings().problem == access.SETTINGS_REMOVED
    secrets_file.write_text(text, encoding="utf-8")
    assert guards.sign_in_settings() == SignInSettings(password=password_hash)


def test_changed_file_is_read_again(secrets_file: Path, password_hash: str) -> None:
    assert sign_in.settings() == SignInSettings()
    secrets_file.write_text(f'[operators]\npassword = "{password_hash}"', encoding="utf-8")
    assert sign_in.settings() == SignInSettings(password=password_hash)
    secrets_file.write_bytes(b"\xff\xfe")
    assert sign_in.settings().problem
    secrets_file.write_text("#" * (sign_in.MOST_BYTES + 1), encoding="utf-8")
    assert sign_in.settings().problem


def test_sign_in_ends_on_sign_out_timeout_or_changed_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Hand()
    monkeypatch.setattr("dashboard.frame.sign_in.time.monotonic", clock)
    users, settings = SignedInUsers(), SignInSettings(password="a")
    users.add("s", settings, "anna")
    assert (users.user("s", settings), users.user("t", settings), users.user("", settings)) == (
        "anna",
        "",
        "",
    )
    assert users.user("s", SignInSettings(password="b")) == ""
    clock.seconds += sign_in.SECONDS
    assert users.user("s", settings) == ""
    users.add("s", settings, "anna")
    users.remove("s")
    assert users.user("s", settings) == ""
    for number in range(MOST_USERS + 5):
        users.add(f"{number}", settings, "anna")
    assert (users.user("4", settings), users.user("5", settings)) == ("", "anna")
