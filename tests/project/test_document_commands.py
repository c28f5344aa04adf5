"""Runs the commands of README.md and docs/ one after another in one home, as a reader would; large
imports come last.

Two runs are trained, for one epoch; others are admitted to the queue of a second home, which no
process trains. NOT_RUN lists the commands that are not run, with reasons.
"""

from __future__ import annotations

import shlex
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gan_runtime.records.home import HOME_VARIABLE, REPOSITORY
from tests.project.test_documents import COMMANDS
from tests.support import command_line, documents
from tests.support.command_line import built_once

__all__ = ["built_once"]

NOT_RUN = {  # start of a command, after the program's name → why it is not run
    "make ": "installs, serves, or is this suite",
    "GAN_DATA_DIR=": "trains for an hour; needs MNIST",
    "pip install": "tests/full/project/test_packaging.py does it",
    "mkdir -p /shared": "a cluster",
    "echo '{": "a cluster",
    "srun ": "a cluster",
    "python -m pytest": "the suites run it",
    "python -m benchmarks.batch_study": "hours: tests/full/benchmarks/test_batch_study.py",
    "serve": "serves until it is ended: tests/full/cli/test_processes.py",
    "operator-password": "asks at a terminal: tests/cli",
    "resume ": "needs a stopped run: tests/full/cli and tests/full/supervision",
    "train --preset showers": "minutes: tests/full/browser trains this preset",
    "train --preset karman": "minutes: tests/full/browser trains this preset",
    "study loop": "minutes: tests/training compares both loops",
    "evaluate showers-0001": "needs minutes of training: tests/full/domains",
    "evaluate RUN rollout": "a placeholder",
    "evaluate karman-0001": "needs minutes of training: tests/full/domains",
    "tpu-check": "minutes: tests/full/tpu",
    "gpu-check": "needs the compiler of `make gpu-compiler`: tests/full/gpu",
    "targets check": "a cluster: tests/full/targets",
    "train --preset modern --on": "a cluster: tests/full/targets",
    "train --preset paper --set accelerator=tpu": "needs a TPU",
    "train --preset quick --set accelerator=gpu": "needs a GPU",
    "train --set workload=wgan_gp": "tests/full/project/test_adding_a_workload.py",
    "train --set workload=spots_gan": "tests/full/project/test_python_page.py",
    "evaluate run-0001 brightness": "the same",
    "evaluate quick-0001 sharpness": "tests/full/project/test_adding_an_evaluation.py",
    "data prepare npz": "tests/project/test_adding_a_data_preparation.py",
    "data prepare karman": "minutes: tests/domains simulates flows",
    "data prepare showers --set": "minutes; showers_tiny is run",
    "data prepare showers_hdf5": "files of other authors: tests/data",
    "data prepare calochallenge": "files of other authors: tests/data",
}
TRAINED = (
    "train --preset quick",
    "train --set workload=pix2pix --set dataset=facades --set tile=64 --set batch_size_global=16",
)
ONE_EPOCH = ["--set", "epochs=1", "--set", "precision=float32"]
QUEUED = ["--detach"]
SHORTER = {"evaluate": ["--set", "samples=200"]}


def words_of(line: str) -> str:
    """A command without the name of the program."""
    words = documents.program_words(line)
    return shlex.join(words) if words else line.removeprefix(".venv/bin/")


LINES = list(dict.fromkeys(words_of(line) for _, line in COMMANDS))
RUN = [line for line in LINES if not line.startswith(tuple(NOT_RUN))]
# Every later command would read the journals of all imported runs.
RUN.sort(key=lambda line: line.startswith("import"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of the commands, with the files they name; also the reader's HOME."""
    place = tmp_path_factory.mktemp("reader")
    (place / "examples").symlink_to(REPOSITORY / "examples")
    random = np.random.RandomState(0)

    def image(path: Path, width: int = 80) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.randint(0, 255, (80, width, 3), np.uint8)).save(path)
        return path

    with zipfile.ZipFile(place / "photos.zip", "w") as photos:
        for number in range(40):
            name = f"{'cats' if number % 2 else 'dogs'}/{number}.png"
            photos.write(image(place / "made" / name), name)
    with zipfile.ZipFile(place / "facades.zip", "w") as facades:
        for number in range(20):
            file = image(place / "made" / f"{number}.png")
            Image.open(file).resize((512, 256)).save(file)
            facades.write(file, f"{number}.png")
    for side in ("A", "B"):
        for number in range(20):
            image(place / "shoes" / side / f"{number}.png")
    return place


@pytest.mark.parametrize("line", RUN)
def test_a_documented_command_runs(
    folder: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("GAN_DATA_DIR", raising=False)
    words = [word.replace("~/", f"{folder}/") for word in shlex.split(line)]
    is_queued = words[0] in {"train", "study"} and line not in TRAINED
    monkeypatch.setenv(HOME_VARIABLE, str(folder / ("queue" if is_queued else "home")))
    if line in TRAINED:
        words += ONE_EPOCH
    elif is_queued:
        words += QUEUED
    result = command_line.run(*words, *SHORTER.get(words[0], []))
    assert result.exit_code == 0, result.output


def test_every_exception_matches_a_documented_command() -> None:
    assert [start for start in NOT_RUN if not any(line.startswith(start) for line in LINES)] == []
    assert set(TRAINED) <= set(RUN)
    assert len(RUN) > 20
