"""A run continues with the data that it was trained on, or begins from scratch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from gan_runtime.data import preparations
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.records import journal, run_folder
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.supervision import queue
from tests.support import own_pictures


@pytest.fixture
def run(new_run: Callable[..., RunDir]) -> RunDir:
    """A run stopped after two attempts on data sets with different content; the second left a
    checkpoint.
    """
    run = new_run("quick-0001", workload="mlp_gan", dataset="photos")
    for attempt, content in ((1, "a" * 64), (2, "b" * 64)):
        host = journal.HostFacts(facts={"cores": 8, run_folder.DATA_FACT: content})
        journal.append(run.trainer_journal(), attempt, host)
    journal.append(
        run.trainer_journal(),
        2,
        journal.StatusChange(status="stopped", reason="stopped on request"),
    )
    run.checkpoints.mkdir()
    (run.checkpoints / "step-00000001.safetensors").touch()
    return run


def test_data_content_comes_from_the_newest_attempt(run: RunDir) -> None:
    assert run_folder.data_content(run) == "b" * 64
    assert run_folder.data_refusal(run, "photos", "b" * 64) == ""
    assert run_folder.data_refusal(run, "photos", "a" * 64).startswith(
        "run quick-0001 was trained on another content of data set photos (bbbbbbbbbbbbbbbb, now"
    )


def test_unknown_data_content_is_not_refused(run: RunDir, new_run: Callable[..., RunDir]) -> None:
    assert run_folder.data_refusal(run, "digits", "") == "", (
        "a set of the program has no content to tell"
    )
    older = new_run("older-0002")
    assert run_folder.data_content(older) == ""
    (run.checkpoints / "step-00000001.safetensors").unlink()
    assert run_folder.data_refusal(run, "photos", "a" * 64) == "", "it would begin anew"


def test_a_deleted_dataset_does_not_block_a_resume_request(run: RunDir) -> None:
    assert queue.resume_refusal(run) == ""


def test_a_trainer_refuses_a_dataset_prepared_again_while_its_run_waited(
    run: RunDir, home: Home
) -> None:
    source = home.path / "photos.zip"
    source.write_bytes(own_pictures.noise(4))
    preparations.prepare(
        home,
        PreparationRequest("pictures", "photos", source, {"pixels": "28", "color": "gray"}),
        lambda *_: None,
    )
    command = [sys.executable, "-m", "gan_runtime.worker", str(run.path), "3", "cpu"]
    trainer = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
    )
    assert trainer.returncode == 1
    assert latest_status(run).status == "failed"
    assert latest_status(run).reason.startswith(
        "run quick-0001 was trained on another content of data set photos"
    )
