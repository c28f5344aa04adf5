"""An empty home for one measurement, and the end of all processes that it started."""

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
    """An empty home in a temporary folder. On exit, deletes the folder and kills all processes
    started in the meantime.
    """
    with (
        tempfile.TemporaryDirectory(prefix="gan-bench-", ignore_cleanup_errors=True) as folder,
        children_killed_on_exit(),
    ):
        yield Home(Path(folder)).prepare()


@contextmanager
def children_killed_on_exit() -> Iterator[None]:
    """Kills all processes started in the meantime. Trainers outlive a dashboard by design, and
    after a failed measurement would disturb the next one.
    """
    existing = set(psutil.Process().children(recursive=True))
    try:
        yield
    finally:
        _kill(
            [child for child in psutil.Process().children(recursive=True) if child not in existing]
        )


@contextmanager
def random_mnist(images: int = MNIST_IMAGES) -> Iterator[None]:
    """Replaces the data set `mnist` of this process and its children: `images` random 28 × 28
    images in an IDX file.
    """
    with tempfile.TemporaryDirectory(prefix="gan-bench-images-") as folder:
        pixels = np.random.default_rng(1).integers(0, 256, (images, 28, 28), np.uint8)
        header = struct.pack(">HBB3I", 0, 8, 3, *pixels.shape)
        (Path(folder) / "train-images-idx3-ubyte").write_bytes(header + pixels.tobytes())
        previous = os.environ.get(DATA_VARIABLE)
        os.environ[DATA_VARIABLE] = folder
        try:
            yield
        finally:
            os.environ.pop(DATA_VARIABLE)
            if previous is not None:
                os.environ[DATA_VARIABLE] = previous


def end_with_children(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    """Closes the standard input of a child, which requests its exit. Kills it and its children
    after `timeout_s`.
    """
    with contextlib.suppress(psutil.NoSuchProcess):
        family = [
            psutil.Process(process.pid),
            *psutil.Process(process.pid).children(recursive=True),
        ]
        with contextlib.suppress(BrokenPipeError, ValueError):
            assert process.stdin is not None
            process.stdin.close()
        _, alive = psutil.wait_procs(family, timeout=timeout_s)
        _kill(alive)
    process.wait()


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=10)
