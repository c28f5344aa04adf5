"""Studies and bundles on the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gan_runtime.cli.app import app
from gan_runtime.home import HOME_VARIABLE, Home
from tests.support.commands_in_processes import starting

TINY = ["--set", "workload=mlp_gan", "--set", "precision=float32", "--set", "epochs=1"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def command(place: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command in this process."""
    monkeypatch.setenv(HOME_VARIABLE, str(place))
    return lambda *words: CliRunner().invoke(app, list(words))


@pytest.fixture
def start(place: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a command in a process of its own; what it trains is stopped afterwards."""
    with starting(place) as begin:
        yield begin


def answer(result: Result) -> Any:
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_a_study_trains_its_runs_one_after_another_and_its_bundle_goes_to_another_home(
    start: Callable[..., subprocess.Popen[str]], command: Callable[..., Result], tmp_path: Path
) -> None:
    process = start("study", "batch_size", "--values", "128,256", *TINY, "--title", "tiny", "--json")
    lines = [json.loads(line) for line in process.communicate()[0].splitlines()]
    assert process.returncode == 0
    ends = [(line["run_id"], line["name"]) for line in lines if line["status"] == "finished"]
    assert ends == [("batch-size-0002", "batch 128"), ("batch-size-0003", "batch 256")]
    sql = "SELECT title, question, runs, finished FROM studies"
    assert answer(command("sql", sql, "--json")) == [
        {"title": "tiny", "question": "batch_size", "runs": 2, "finished": 2}
    ]

    bundle = str(tmp_path / "tiny.zip")
    assert (
        answer(
            command("bundle", "batch-size-0002", "batch-size-0003", "--to", bundle, "--no-films", "--json")
        )["bytes"]
        < 200_000
    )
    other = ["--home", str(tmp_path / "other"), "--json"]
    assert answer(command("import", bundle, *other)) == {"runs": ["batch-size-0002", "batch-size-0003"]}
    assert answer(command("import", bundle, *other)) == {"runs": []}
    assert [row["images_per_s"] > 0 for row in answer(command("runs", *other))] == [True, True]


def test_ctrl_c_stops_the_run_that_trains_and_takes_the_others_from_the_queue(
    start: Callable[..., subprocess.Popen[str]], place: Path
) -> None:
    process = start("study", "seed", *TINY, "--set", "epochs=10000", "--json")
    assert process.stdout is not None
    next(line for line in process.stdout if json.loads(line)["epochs_done"] >= 1)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0
    done = subprocess.run(
        [sys.executable, "-m", "gan_runtime", "runs", "--json", "--home", str(place)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {row["status"] for row in json.loads(done.stdout)} == {"stopped"}
    assert [run.stop_file.exists() for run in Home(place).run_dirs()] == [True] * 3


def test_a_detached_study_waits(command: Callable[..., Result]) -> None:
    result = command("study", "precision", "--preset", "quick", "--detach")
    assert result.exit_code == 0
    assert "study study-0001: 2 queued." in result.stdout
    assert [row["name"] for row in answer(command("runs", "--json"))] == ["mixed bfloat16", "float32"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["study", "speed"],
            "question is 'speed', but allowed is batch_size, xla, precision, replicas, workers, loop, learning_rate, schedule, devices, seed: pick one of them.",
        ),
        (
            ["study", "xla", "--values", "jit"],
            "values has 1 value(s), but a study compares at least 2: try off,jit.",
        ),
        (
            ["import", "/no/such.zip"],
            "/no/such.zip cannot be read (No such file or directory): give a file made by `bundle`.",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    command: Callable[..., Result], words: list[str], sentence: str
) -> None:
    result = command(*words)
    assert (result.exit_code, result.stderr.strip()) == (2, sentence)
