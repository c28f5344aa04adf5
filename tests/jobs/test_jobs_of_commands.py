"""Commands that run as a job: all users see it, Ctrl-C cancels it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from typer.testing import CliRunner

from gan_runtime.cli.app import app
from gan_runtime.jobs import job_queue
from gan_runtime.records.home import Home


def test_ctrl_c_cancels_the_preparation_job(counting: Home, wait_until: Callable[..., Any]) -> None:
    (counting.path / "counts").touch()  # the preparation then waits
    states: list[tuple[str, str, str]] = []

    def press_ctrl_c() -> None:
        looks = wait_until(
            lambda: [
                look for look in job_queue.snapshots(counting) if look.progress.sentence == "counts"
            ],
            "the job works",
        )
        states.extend((look.request.kind, look.request.asker, look.state) for look in looks)
        os.kill(os.getpid(), signal.SIGINT)

    person = threading.Thread(target=press_ctrl_c)
    person.start()
    ended = CliRunner().invoke(app, ["data", "prepare", "mnist", "--home", str(counting.path)])
    person.join()
    assert states == [("prepare_data", "command line", "running")]
    assert (ended.exit_code, ended.stdout, ended.stderr) == (
        1,
        "",
        "cancelled: nothing was stored.\n",
    )
    [job] = job_queue.snapshots(counting)
    assert job.state == "cancelled"
    assert not job.job.work.exists()


def test_a_failed_preparation_prints_one_sentence(counting: Home) -> None:
    refused = CliRunner().invoke(app, ["data", "prepare", "mnist", "--home", str(counting.path)])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == "there is nothing to count: give it something.\n"
