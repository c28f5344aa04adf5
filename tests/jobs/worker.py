"""The process of a job that knows kinds for tests besides the real ones: they wait until a file lets them go on."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from gan_runtime.base.errors import DatasetError
from gan_runtime.jobs import worker
from gan_runtime.jobs.folder import JobDir
from gan_runtime.jobs.kinds import KINDS, Kind
from gan_runtime.jobs.task import Task

TEST_KINDS = {
    "count": Kind("Count", "tests.jobs.worker:count"),
    "count_in_turn": Kind("Count", "tests.jobs.worker:count", turn="counter"),
    "prepare_data": Kind("Prepare", "tests.jobs.worker:prepare"),
    "refuse": Kind("Refuse", "tests.jobs.worker:refuse"),
    "break": Kind("Break", "tests.jobs.worker:break_down"),
    "deaf": Kind("Hear nothing", "tests.jobs.worker:deaf"),
    "deaf_and_whole": Kind(
        "Hear nothing", "tests.jobs.worker:deaf", kept="its answers are kept", killed_at_once=True
    ),
    "tell_color": Kind("Tell a color", "tests.jobs.worker:tell_color", environment={"COLOR": "green"}),
}


def count(task: Task) -> dict[str, Any]:
    """Counts to three, the last two only when the file named in its options is there."""
    (task.work / "half-made.txt").write_text("half", encoding="utf-8")
    task.progress(1, 3, "counts")
    while not Path(task.options["until"]).exists():
        time.sleep(0.02)
        task.progress(1, 3, "counts")
    task.progress(3, 3, "has counted")
    return {"counted": 3}


def prepare(task: Task) -> dict[str, Any]:
    """Stands for the preparation of a data set: fails, but where the home holds a file "counts" it waits for one "go on"."""
    if not (task.home.path / "counts").exists():
        return refuse(task)
    task.options["until"] = str(task.home.path / "go on")
    return count(task)


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
    KINDS.update(TEST_KINDS)
    sys.exit(worker.main(JobDir(Path(sys.argv[1]))))
