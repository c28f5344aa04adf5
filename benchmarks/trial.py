"""A home folder for one measurement: empty at the start; its processes end with it."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from gan_runtime.data.idx_files import DATA_VARIABLE
from gan_runtime.records.home import Home

MNIST_IMAGES = 60_000


@contextmanager
def trial_home() -> Iterator[Home]:
    """An empty home in a temporary folder. The folder and all processes started meanwhile are
    removed afterwards.
    """
    with (
        tempfile.TemporaryDirectory(prefix="gan-bench-", ignore_cleanup_errors=True) as folder,
        no_process_left(),
    ):
        yield Home(Path(folder)).prepare()


@contextmanager
def no_process_left() -> Iterator[None]:
    """Ends all processes started meanwhile: trainers outlive a dashboard on purpose, and after a
    failed measurement a trainer would disturb the next.
    """
    before = set(psutil.Process().children(recursive=True))
    try:
        yield
    finally:
        _kill([child for child in psutil.Process().children(recursive=True) if child not in before])


@contextmanager
def random_mnist(images: int = MNIST_IMAGES) -> Iterator[None]:
    """The dataset `mnist` of this process and its children is so many random 28 × 28 images
    in an IDX file, as MNIST comes.
    """
    with tempfile.TemporaryDirectory(prefix="gan-bench-images-") as folder:
        pixels = np.random.default_rng(1).integers(0, 256, (images, 28, 28), np.uint8)
        header = struct.pack(">HBB3I", 0, 8, 3, *pixels.shape)
        (Path(folder) / "train-images-idx3-ubyte").write_bytes(header + pixels.tobytes())
        before = os.environ.get(DATA_VARIABLE)
        os.environ[DATA_VARIABLE] = folder
        try:
            yield
        finally:
            os.environ.pop(DATA_VARIABLE)
            if before is not None:
                os.environ[DATA_VARIABLE] = before


def end_with_children(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Closes the child's standard input, which requests its end; after `patience_s` it is killed
    with all its children.
    """
    with contextlib.suppress(psutil.NoSuchProcess):
        family = [
            psutil.Process(process.pid),
            *psutil.Process(process.pid).children(recursive=True),
        ]
        with contextlib.suppress(BrokenPipeError, ValueError):
            assert process.stdin is not None
            process.stdin.close()
        _, alive = psutil.wait_procs(family, timeout=patience_s)
        _kill(alive)
    process.wait()


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=10)
