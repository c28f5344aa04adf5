"""The preparations `mnist` and `fashion_mnist`: Keras downloads them into its cache, in a child
process.

It does so into a folder aside; only whole files get to their places.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import mnist
from gan_runtime.data.contract import Progress
from gan_runtime.records.home import REPOSITORY

SECONDS = 300.0
POLL_SECONDS = 0.2
ASIDE = ".gan-download-"


def prepare(name: str, progress: Progress) -> None:
    """Does nothing when the images are at hand.

    Raises:
        DatasetError: they cannot be had; the message names the three ways to get them.
    """
    if mnist.availability(name).ready:
        return
    datasets = mnist.keras_cache()
    try:
        datasets.mkdir(parents=True, exist_ok=True)
        _forget_old(datasets)
        with tempfile.TemporaryDirectory(dir=datasets, prefix=ASIDE) as aside:
            download(name, Path(aside), progress)
            shutil.copytree(
                Path(aside) / "datasets", datasets, dirs_exist_ok=True, copy_function=_move
            )
    except OSError as error:
        raise DatasetError(
            f"{name} cannot be put into Keras' cache ({datasets}: {error.strerror}): "
            "make room there, or set KERAS_HOME to another folder."
        ) from None


def _forget_old(datasets: Path) -> None:
    """What a killed download left there."""
    for path in datasets.glob(f"{ASIDE}*"):
        if time.time() - path.stat().st_mtime > 2 * SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _move(source: str, target: str) -> None:
    Path(source).replace(target)


def download(name: str, aside: Path, progress: Progress) -> None:
    """Into the folder `aside`, by a process that can be ended."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "gan_runtime.data.loading", name],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "KERAS_HOME": str(aside)},
        )
        try:
            while child.poll() is None:
                seconds = time.monotonic() - begin
                if seconds > SECONDS:
                    raise DatasetError(
                        f"{name} was not downloaded within {SECONDS:.0f} s: try again, "
                        "or set GAN_DATA_DIR to a folder of IDX files."
                    )
                progress(0, 0, f"Keras downloads {name}, {seconds:.0f} s")
                time.sleep(POLL_SECONDS)
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
                child.wait()
        if child.returncode:
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines()
            raise DatasetError((lines or [f"{name} could not be downloaded."])[-1])
