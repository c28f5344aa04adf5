"""Studies on the command line, without training."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from typer.testing import Result

from tests.support.command_line import answer


@pytest.mark.usefixtures("known_host")
def test_a_detached_study_is_queued(command: Callable[..., Result]) -> None:
    result = command("study", "precision", "--preset", "quick", "--detach")
    assert result.exit_code == 0
    assert "study study-0001: 2 queued." in result.stdout
    assert [row["name"] for row in answer(command("runs", "--json"))] == [
        "mixed bfloat16",
        "float32",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["study", "speed"],
            (
                "question is 'speed', but allowed is batch_size, batch_updates, xla, precision,"
                " replicas, workers, loop, learning_rate, schedule, devices, seed: pick one of"
                " them."
            ),
        ),
        (
            ["study", "xla", "--values", "jit"],
            "values has 1 value(s), but a study compares at least 2: try off,jit.",
        ),
        (
            ["import", "/no/such.zip"],
            (
                "/no/such.zip cannot be read (No such file or directory): use a file made by"
                " `bundle`."
            ),
        ),
    ],
)
def test_invalid_arguments_are_refused_in_one_sentence(
    command: Callable[..., Result], words: list[str], sentence: str
) -> None:
    result = command(*words)
    assert (result.exit_code, result.stderr.strip()) == (2, sentence)
