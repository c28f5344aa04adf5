"""The command line within the test process, and its answers."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer.testing
from typer.testing import CliRunner, Result

from gan_runtime.cli.app import app


@pytest.fixture(scope="session", autouse=True)
def built_once() -> Iterator[None]:
    """Builds the commands once per process; Typer's runner builds them for each call, which takes
    longer than most calls.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))
        yield


def run(*words: str, typed: str | None = None) -> Result:
    """Runs a command; `typed` is the input for its prompts."""
    return CliRunner().invoke(app, list(words), input=typed)


def refused(result: Result) -> str:
    """The one-sentence error of a refused command."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    sentence = result.stderr.strip()
    assert re.search(r"[.?]$", sentence), sentence
    outside_of_brackets = re.sub(r"\([^)]*\)", "", sentence)
    assert "\n" not in sentence, sentence
    assert not re.search(r"[.?!] +[A-Z]", outside_of_brackets), sentence
    return sentence


def answer(result: Result) -> Any:
    """The JSON document that a command printed."""
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)
