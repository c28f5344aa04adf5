"""`serve` and `operator-password`."""

from __future__ import annotations

import platform
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from gan_runtime.cli import app
from tests.support import certificates, local_server
from tests.support.command_line import refused


def test_serve_exits_on_an_invalid_secrets_file(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a typo in the file, no sign-in would be required, and everyone on this machine would be
    an operator.
    """
    file = tmp_path / "secrets.toml"
    file.write_text('[operators]\npasword = "$argon2id$"', encoding="utf-8")
    monkeypatch.setenv("STREAMLIT_SECRETS_FILES", str(file))
    process = start("serve", "--port", str(local_server.free_port()), "--json")
    stderr = process.communicate()[1]
    assert process.returncode == 2
    assert "operators.pasword is unknown. Allowed: emails, subjects and password." in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    ("address", "opened", "warned"),
    [
        ("127.0.0.1", "http://127.0.0.1:8501", False),
        ("::1", "http://[::1]:8501", False),
        ("localhost", "http://localhost:8501", False),
        ("0.0.0.0", "http://127.0.0.1:8501", True),
        ("::", "http://127.0.0.1:8501", True),
        ("192.168.1.5", "http://192.168.1.5:8501", True),
    ],
)
def test_a_server_address_gives_a_url_and_warns_of_exposure(
    address: str, opened: str, warned: bool
) -> None:
    assert app.ServerAddress(address, 8501).url == opened
    assert (
        app.exposure(app.ServerAddress(address, 8501)).startswith(
            "Everyone who reaches this machine"
        )
        == warned
    )


def test_serve_warns_who_else_can_see_the_pages(
    command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "become_dashboard", lambda *_, **__: None)
    result = command(
        "serve", "--address", "0.0.0.0", "--port", str(port := local_server.free_port())
    )
    assert result.stdout == f"The dashboard is at http://127.0.0.1:{port}\n"
    assert (
        f"at http://{platform.node()}:{port} or another name of this machine can see all runs."
        " Pages change nothing until sign-in is set up" in result.stderr
    )


def test_serve_refuses_a_certificate_without_its_key(
    command: Callable[..., Result], tmp_path: Path
) -> None:
    certificate, _ = certificates.make_certificate(tmp_path)
    (tmp_path / "other").mkdir()
    _, other = certificates.make_certificate(tmp_path / "other")
    assert "needs its key" in refused(command("serve", "--tls-cert", str(certificate)))
    for key in (other, tmp_path / "none.pem", tmp_path):
        sentence = refused(command("serve", "--tls-cert", str(certificate), "--tls-key", str(key)))
        assert sentence.startswith(f"certificate {certificate} with key {key} cannot be used (")


def test_the_operator_password_is_printed_as_a_hash_only(command: Callable[..., Result]) -> None:
    reply = command("operator-password", typed="correct horse battery\ncorrect horse battery\n")
    assert reply.stdout.strip().startswith('[operators]\npassword = "$argon2id$')
    assert "correct horse" not in reply.stdout + reply.stderr
    short = command("operator-password", typed="short\nshort\n")
    # Without a terminal, the end of each prompt is on stdout, which is invisible to users and
    # scripts.
    assert (short.exit_code, short.stdout.strip()) == (2, "")
    assert "has 5 characters" in short.stderr


def test_serve_refuses_a_port_in_use(place: Path, command: Callable[..., Result]) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        sentence = refused(command("serve", "--port", str(port)))
    assert sentence.startswith(f"port {port} is in use")
    assert f"`make run PORT={port + 1}`" in sentence
    assert not place.exists()


def test_serve_refuses_an_address_of_another_machine(
    place: Path, command: Callable[..., Result]
) -> None:
    assert refused(command("serve", "--address", "192.0.2.1")).startswith(
        "the dashboard cannot listen on address 192.0.2.1 with port 8501 ("
    )
    assert not place.exists()


def test_serve_refuses_a_home_that_cannot_be_written(
    command: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    port = str(local_server.free_port())
    assert "cannot be written (Not a directory)" in refused(
        command("serve", "--port", port, home=tmp_path / "file" / "x")
    )
