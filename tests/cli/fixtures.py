"""Fixtures of tests/cli and tests/full/cli: homes for commands, and commands that run on them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from gan_runtime.hardware import hosts
from gan_runtime.hardware.hosts import Host
from tests.support import command_line, trained_home
from tests.support.commands_in_processes import starting

Command = Callable[..., Result]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home that does not exist yet."""
    return tmp_path / "new" / "home"


@pytest.fixture
def command(place: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in this process, in `place` by default."""
    monkeypatch.delattr(
        os, "execve"
    )  # an accepted `serve` would replace the test process with Streamlit
    return lambda *words, home=place, typed=None: command_line.run(
        *words, "--home", str(home), typed=typed
    )


@pytest.fixture
def known_host(monkeypatch: pytest.MonkeyPatch, host: Host) -> None:
    """Saves the seconds in which a child process inspects the real host."""
    monkeypatch.setattr(hosts, "probe", lambda: host)


@pytest.fixture
def start(place: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts commands as processes; neither they nor trainers outlive the test."""
    with starting(place) as begin:
        yield begin


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with run-0001, for tests that do not change it."""
    path = tmp_path_factory.mktemp("trained")
    trained_home.train(path)
    return path


@pytest.fixture
def trained_copy(trained: Path, tmp_path: Path) -> Path:
    """A copy of that home, for a test that changes it."""
    return Path(shutil.copytree(trained, tmp_path / "trained"))
