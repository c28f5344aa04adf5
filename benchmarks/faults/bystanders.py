"""Faults outside training: the preparation of a data set, or a user's command that loads a bundle
or queues a run, is killed.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.faults import checks
from benchmarks.faults.harm import FINISHED, Harm
from benchmarks.faults.stage import ASKER, Stage, UntrueError, kill
from gan_runtime import bundles
from gan_runtime.data import prepared
from gan_runtime.jobs.folder import JobDir
from gan_runtime.records.home import Home
from gan_runtime.supervision import recovery
from tests.support.asking import ask, ask_of
from tests.support.inject import Injection

PICTURES = 60


def kill_preparation(stage: Stage) -> Harm:
    """SIGKILL of the job that prepares a data set: no partial file remains, and a second request
    gives the same set.
    """
    run = stage.submit()
    stage.open()
    source = stage.scratch.parent / "photos.zip"
    source.write_bytes(_pictures(stage.random.randrange(1000)))
    job = _requested_job(stage, source)
    time.sleep(stage.random.random() * 1.2)
    process = job.process()
    if process is not None:
        kill([process])
    stage.wait(lambda: job.end() is not None, "the job reports its end")
    end = job.end()
    stage.actions.append(f"job {end.state if end else ''}")
    if end is not None and end.state == "lost":
        if prepared.exists(stage.home, "photos"):
            ask(stage.home, actor=ASKER).remove_data(
                "photos"
            )  # killed after it had taken its place
        again = _requested_job(stage, source)
        stage.wait(lambda: again.end() is not None, "the second job ends")

    def whole(home: Home) -> list[str]:
        manifest = prepared.manifest(home, "photos")
        return (
            []
            if manifest.rows == PICTURES
            else [f"the data set has {manifest.rows} rows instead of {PICTURES}"]
        )

    return Harm(run, (FINISHED,), [whole])


def _requested_job(stage: Stage, source: Path) -> JobDir:
    options = {"pixels": "28", "color": "grey"}
    return ask(stage.home, actor=ASKER).prepare_data("pictures", "photos", source, options)


def _pictures(seed: int) -> bytes:
    random, file = np.random.default_rng(seed), io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(PICTURES):
            picture = io.BytesIO()
            Image.fromarray(random.integers(0, 256, (64, 64), np.uint8)).save(picture, "PNG")
            archive.writestr(f"{number}.png", picture.getvalue())
    return file.getvalue()


def kill_import(stage: Stage) -> Harm:
    """SIGKILL of the command that loads a bundle: its runs exist completely or not at all, and can
    be loaded again.
    """
    run = stage.submit()
    stage.open()
    stage.wait_for_end(run)
    bundle = stage.scratch.parent / "one.zip"
    bundles.pack([run], bundle, "copy-")
    _interrupted(stage, "import", str(bundle))
    ask(stage.home, actor=ASKER).import_bundle(bundle)

    def whole(home: Home) -> list[str]:
        copies = [run for run in home.run_dirs() if run.run_id.startswith("copy-")]
        whole_ones = [copy for copy in copies if checks.journalled(copy) == checks.journalled(run)]
        return (
            []
            if len(copies) == len(whole_ones) == 1
            else [f"{len(whole_ones)} of {len(copies)} copies are whole"]
        )

    return Harm(run, (FINISHED,), [whole])


def kill_submit(stage: Stage) -> Harm:
    """SIGKILL of the command that queues a run: the run is queued completely or not at all."""
    _interrupted(stage, "submit", json.dumps(stage.options))
    halves = [run.run_id for run in stage.home.run_dirs() if not run.spec_path.exists()]
    if halves:
        raise UntrueError(f"{halves[0]} was queued without options")
    for queued in stage.home.run_dirs():
        ask_of(queued, actor=ASKER).delete(queued.run_id)
    run = stage.submit()
    stage.open()
    return Harm(run, (FINISHED,))


def _interrupted(stage: Stage, what: str, argument: str) -> None:
    """A user's command that is killed at one of its file operations; its files are two hours old
    at once.
    """
    injection = Injection("user command", 0, "kill", "file operation", stage.random.randint(1, 12))
    stage.actions.append(injection.in_words)
    command = [
        sys.executable,
        "-m",
        "benchmarks.faults.user_command",
        what,
        str(stage.home.path),
        argument,
    ]
    subprocess.run(
        command, env=stage.environment_of(injection.environment), check=False, capture_output=True
    )
    for folder in [*stage.home.runs.glob(".new-*"), *stage.home.runs.glob(".import-*")]:
        stage.actions.append(f"left {folder.name[:5]}")
        stage.age(folder, 2 * recovery.IDLE_SECONDS)
