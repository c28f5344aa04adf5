"""Faults outside training: kills of a preparation job, and of a user's command that loads a bundle
or queues a run.
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
from benchmarks.faults.fault import FINISHED, Expectation
from benchmarks.faults.stage import ACTOR, BrokenGuaranteeError, Stage, kill
from gan_runtime import bundles
from gan_runtime.data import prepared
from gan_runtime.jobs.folder import JobDir
from gan_runtime.records.home import Home
from gan_runtime.supervision import recovery
from tests.support.asking import ask, ask_of
from tests.support.inject import Injection

IMAGES = 60


def kill_preparation(stage: Stage) -> Expectation:
    """SIGKILL of the job that prepares a data set: no partial file remains, and a second job
    prepares the set.
    """
    run = stage.submit()
    stage.open()
    source = stage.scratch.parent / "photos.zip"
    source.write_bytes(_image_archive(stage.random.randrange(1000)))
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
            # The job was killed after it had published the set.
            ask(stage.home, actor=ACTOR).remove_data("photos")
        second_job = _requested_job(stage, source)
        stage.wait(lambda: second_job.end() is not None, "the second job ends")

    def check_rows(home: Home) -> list[str]:
        manifest = prepared.manifest(home, "photos")
        return (
            []
            if manifest.rows == IMAGES
            else [f"the data set has {manifest.rows} rows instead of {IMAGES}"]
        )

    return Expectation(run, (FINISHED,), [check_rows])


def _requested_job(stage: Stage, source: Path) -> JobDir:
    options = {"pixels": "28", "color": "gray", "held_out_percent": "0"}
    return ask(stage.home, actor=ACTOR).prepare_data("pictures", "photos", source, options)


def _image_archive(seed: int) -> bytes:
    random, file = np.random.default_rng(seed), io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(IMAGES):
            image = io.BytesIO()
            Image.fromarray(random.integers(0, 256, (64, 64), np.uint8)).save(image, "PNG")
            archive.writestr(f"{number}.png", image.getvalue())
    return file.getvalue()


def kill_import(stage: Stage) -> Expectation:
    """SIGKILL of the command that loads a bundle: all or none of its run exists, and it can be
    loaded again.
    """
    run = stage.submit()
    stage.open()
    stage.wait_for_end(run)
    bundle = stage.scratch.parent / "one.zip"
    bundles.pack([run], bundle, "copy-")
    _run_interrupted(stage, "import", str(bundle))
    ask(stage.home, actor=ACTOR).import_bundle(bundle)

    def check_copies(home: Home) -> list[str]:
        copies = [run for run in home.run_dirs() if run.run_id.startswith("copy-")]
        values = checks.journaled_values(run)
        complete = [copy for copy in copies if checks.journaled_values(copy) == values]
        return (
            []
            if len(copies) == len(complete) == 1
            else [f"{len(complete)} of {len(copies)} copies are complete"]
        )

    return Expectation(run, (FINISHED,), [check_copies])


def kill_submit(stage: Stage) -> Expectation:
    """SIGKILL of the command that queues a run: the run is queued completely or not at all."""
    _run_interrupted(stage, "submit", json.dumps(stage.options))
    without_options = [run.run_id for run in stage.home.run_dirs() if not run.spec_path.exists()]
    if without_options:
        raise BrokenGuaranteeError(f"{without_options[0]} was queued without options")
    for queued in stage.home.run_dirs():
        ask_of(queued, actor=ACTOR).delete(queued.run_id)
    run = stage.submit()
    stage.open()
    return Expectation(run, (FINISHED,))


def _run_interrupted(stage: Stage, name: str, argument: str) -> None:
    """Runs a user's command that is killed at one of its file operations, and backdates its
    temporary folders, so that the owner deletes them.
    """
    injection = Injection("user command", 0, "kill", "file operation", stage.random.randint(1, 12))
    stage.actions.append(injection.in_words)
    command = [
        sys.executable,
        "-m",
        "benchmarks.faults.user_command",
        name,
        str(stage.home.path),
        argument,
    ]
    subprocess.run(
        command, env=stage.environment_of(injection.environment), check=False, capture_output=True
    )
    for folder in [*stage.home.runs.glob(".new-*"), *stage.home.runs.glob(".import-*")]:
        stage.actions.append(f"left {folder.name[:5]}")
        stage.backdate(folder, 2 * recovery.IDLE_SECONDS)
