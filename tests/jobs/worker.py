"""A job process with test jobs in addition to the real ones: they wait until a file lets them
continue.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from gan_runtime.base.errors import DatasetError
from gan_runtime.jobs import process
from gan_runtime.jobs.folder import JobDir
from gan_runtime.jobs.job import Job, jobs
from gan_runtime.jobs.process import Task

IDLE_S = 3.0  # how long a process of the kind "stay" waits for its next job

_DECLARED = (
    Job("count", "Count", "tests.jobs.worker:count"),
    Job("count_in_turn", "Count", "tests.jobs.worker:count", turn="counter"),
    replace(jobs()["prepare_data"], work="tests.jobs.worker:prepare"),
    Job("refuse", "Refuse", "tests.jobs.worker:refuse"),
    Job("break", "Break", "tests.jobs.worker:break_down"),
    Job("deaf", "Hear nothing", "tests.jobs.worker:deaf"),
    Job(
        "deaf_and_whole",
        "Hear nothing",
        "tests.jobs.worker:deaf",
        stored="its answers are stored",
        killed_at_once=True,
    ),
    Job(
        "stay",
        "Stay",
        "tests.jobs.worker:stay",
        stays_s=IDLE_S,
        loads=lambda _home, options: str(options.get("loads", "")),
    ),
    Job(
        "tell_color", "Tell a color", "tests.jobs.worker:tell_color", environment={"COLOR": "green"}
    ),
)
TEST_JOBS = {job.name: job for job in _DECLARED}


def count(task: Task) -> dict[str, Any]:
    """Counts to three, the last two only when the file named in its options exists."""
    (task.work / "half-made.txt").write_text("half", encoding="utf-8")
    task.progress(1, 3, "counts")
    while not Path(task.options["until"]).exists():
        time.sleep(0.02)
        task.progress(1, 3, "counts")
    task.progress(3, 3, "has counted")
    return {"counted": 3}


def prepare(task: Task) -> dict[str, Any]:
    """Replaces the preparation of a data set: fails, unless the home contains a file "counts"; then
    it waits for one called "go on".
    """
    if not (task.home.path / "counts").exists():
        return refuse(task)
    task.options["until"] = str(task.home.path / "go on")
    return count(task)


def stay(task: Task) -> dict[str, Any]:
    """Waits for the file named in its options, if any; returns its process id."""
    print(f"works on {task.options.get('name', '')}", flush=True)
    while "until" in task.options and not Path(task.options["until"]).exists():
        time.sleep(0.02)
        task.progress(1, 2, "waits")
    return {"pid": os.getpid()}


def refuse(_: Task) -> dict[str, Any]:
    raise DatasetError("there is nothing to count: give it something.")


def break_down(_: Task) -> dict[str, Any]:
    raise RuntimeError("a screw is loose")


def deaf(task: Task) -> dict[str, Any]:
    task.past_cancelling()
    while not Path(task.options["until"]).exists():
        time.sleep(0.02)
    return {}


def tell_color(_: Task) -> dict[str, Any]:
    return {"color": os.environ["COLOR"]}


if __name__ == "__main__":
    jobs().update(TEST_JOBS)
    sys.exit(process.main(JobDir(Path(sys.argv[1]))))
