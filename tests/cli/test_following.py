"""`train`, `resume` and `study` follow runs to their end: Ctrl-C, other owners, failures.
Trainers are toys in their own processes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from gan_runtime.cli import training
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.supervision import owner
from tests.support import trainers
from tests.support.command_line import answer
from tests.support.toy_engine import IMAGES, PACE_VARIABLE

pytestmark = pytest.mark.usefixtures("known_host", "toy_trainers")
BATCH = 8
STEPS_PER_EPOCH = IMAGES // BATCH
TOY = (
    "--set",
    "workload=mlp_gan",
    "--set",
    "precision=float32",
    "--set",
    f"batch_size_global={BATCH}",
)
ENDLESS = (*TOY, "--set", "epochs=10000")


@pytest.fixture
def toy_trainers(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Owners in this process start toy trainers, none of which outlives the test."""
    monkeypatch.setattr(Runtime, "open", partial(Runtime.open, starter=trainers.toys()))
    yield
    trainers.end_trainers(Home(place))


def printed(result: Result) -> list[dict[str, Any]]:
    """The progress lines of a successful command."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@contextmanager
def signalled(
    number: signal.Signals, is_time: Callable[[], bool], wait_until: Callable[..., Any]
) -> Iterator[None]:
    """Sends this process a signal, as a terminal does, once `is_time()` is true."""

    def send() -> None:
        wait_until(is_time, "it is time for the signal")
        os.kill(os.getpid(), number)

    sending = threading.Thread(target=send)
    sending.start()
    yield
    sending.join()


def epochs_done(run: RunDir, attempt: int = 1) -> int:
    """Epochs that an attempt of a run has written to its journal."""
    if not run.trainer_journal().exists():
        return 0
    chunk = journal.read(run.trainer_journal())
    return sum(
        isinstance(record, journal.EpochDone) and record.attempt == attempt
        for record in chunk.records
    )


def test_ctrl_c_saves_the_run_and_resume_continues_it(
    place: Path, command: Callable[..., Result], wait_until: Callable[..., Any]
) -> None:
    run = RunDir(Home(place).runs / "run-0001")
    with signalled(signal.SIGINT, lambda: epochs_done(run) >= 1, wait_until):
        stopped = printed(command("train", *ENDLESS, "--json"))[-1]
    assert stopped["status"] == "stopped"
    assert re.fullmatch(
        r"stopped on request after step \d+ of 50,000; saved, can be resumed", stopped["note"]
    )
    assert list(run.checkpoints.glob("*.safetensors"))

    with signalled(signal.SIGTERM, lambda: epochs_done(run, 2) >= 1, wait_until):
        *_, last = resumed = printed(command("resume", "run-0001", "--json"))
    assert resumed[0]["attempt"] == 2
    assert (last["status"], last["step"] > stopped["step"]) == ("stopped", True)


def test_the_home_owner_trains_runs_requested_by_another_process(
    place: Path, command: Callable[..., Result]
) -> None:
    runtime = Runtime.open(Home(place))
    try:
        end = printed(command("train", *TOY, "--set", "epochs=1", "--json"))[-1]
        assert (end["status"], end["step"]) == ("finished", STEPS_PER_EPOCH)
        runtime.refresh()
        assert queries.run(runtime.store, "run-0001").status == "finished"
    finally:
        runtime.close()


def test_train_takes_over_if_the_owner_leaves_before_the_run_starts(
    place: Path,
    command: Callable[..., Result],
    wait_until: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "ORPHANED_SECONDS", 0.5)
    home = Home(place).prepare()
    lock = owner.acquire(home)

    def go() -> None:
        wait_until(home.run_dirs, "the queued run")
        lock.release()

    goes = threading.Thread(target=go)
    goes.start()
    result = command("train", *TOY, "--set", "epochs=1")
    goes.join()
    assert (result.exit_code, result.stdout) == (
        0,
        "run run-0001 is finished: the only epoch is done\n",
    )


def test_a_failed_run_gives_exit_code_1_and_its_reason(
    command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PACE_VARIABLE, "no number")  # so that the trainer fails
    result = command("train", *TOY)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1].startswith("run run-0001 is failed: ")
    assert "could not convert string to float: 'no number'" in result.stderr


def test_a_detached_run_is_queued_and_train_reports_it(
    place: Path, command: Callable[..., Result]
) -> None:
    result = command("train", "--preset", "quick", "--detach")
    assert result.exit_code == 0
    assert "start a dashboard or another `train` to train it" in result.stdout
    (run,) = answer(command("runs", "--json"))
    assert (run["run_id"], run["status"]) == ("quick-0001", "queued")
    assert not (place / "results.duckdb").exists()
    assert answer(command("stop", "quick-0001", "--json"))["stop_requested"]
    assert Home(place).run_dir("quick-0001").stop_file.exists()


def test_a_study_trains_in_sequence_and_its_bundle_imports_elsewhere(
    command: Callable[..., Result], tmp_path: Path
) -> None:
    tiny = (*TOY, "--set", "epochs=1", "--title", "tiny", "--json")
    lines = printed(command("study", "batch_size", "--values", "4,8", *tiny))
    ends = [(line["run_id"], line["name"]) for line in lines if line["status"] == "finished"]
    assert ends == [("batch-size-0002", "batch 4"), ("batch-size-0003", "batch 8")]
    sql = "SELECT title, question, runs, finished FROM studies"
    assert answer(command("sql", sql, "--json")) == [
        {"title": "tiny", "question": "batch_size", "runs": 2, "finished": 2}
    ]

    bundle, other = str(tmp_path / "tiny.zip"), tmp_path / "other"
    packed = answer(
        command(
            "bundle", "batch-size-0002", "batch-size-0003", "--to", bundle, "--no-films", "--json"
        )
    )
    assert packed["bytes"] < 200_000
    assert answer(command("import", bundle, "--json", home=other)) == {
        "runs": ["batch-size-0002", "batch-size-0003"]
    }
    assert answer(command("import", bundle, "--json", home=other)) == {"runs": []}
    assert [row["images_per_s"] > 0 for row in answer(command("runs", "--json", home=other))] == [
        True,
        True,
    ]


def test_ctrl_c_stops_the_training_study_run_and_dequeues_the_others(
    place: Path, command: Callable[..., Result], wait_until: Callable[..., Any]
) -> None:
    home = Home(place)
    with signalled(signal.SIGINT, lambda: sum(map(epochs_done, home.run_dirs())) >= 1, wait_until):
        assert command("study", "seed", *ENDLESS, "--json").exit_code == 0
    assert {row["status"] for row in answer(command("runs", "--json"))} == {"stopped"}
    assert [run.stop_file.exists() for run in home.run_dirs()] == [True] * 3
