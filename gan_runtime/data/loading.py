"""Finds a dataset by its catalog name. Run as a module it fetches one, in a process of its own:

python -m gan_runtime.data.loading mnist
"""

from __future__ import annotations

import subprocess
import sys

from gan_runtime import catalog
from gan_runtime.data import digits, mnist
from gan_runtime.data.contract import ArraySet, Availability
from gan_runtime.errors import DatasetError, GanRuntimeError

FETCH_SECONDS = 300.0


def load(name: str) -> ArraySet:
    """The rows of a data set. Raises DatasetError; never falls back to other data."""
    return digits.load() if name == "digits" else mnist.load(name)


def availability(name: str) -> Availability:
    """Whether the images are at hand, and how many, without reading them. Raises DatasetError for a damaged folder."""
    if name == "digits":
        return Availability(True, catalog.DATASETS["digits"].rows, "embedded")
    return mnist.availability(name)


def ensure(name: str) -> Availability:
    """As `availability`, but lets Keras download what is missing, in a child process.

    Raises:
        DatasetError: the images cannot be had; the message names the three ways to get them.
    """
    known = availability(name)
    if known.ready:
        return known
    command = [sys.executable, "-m", "gan_runtime.data.loading", name]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise DatasetError(
            f"{name} was not downloaded within {FETCH_SECONDS:.0f} s: try again, or set GAN_DATA_DIR to a folder of IDX files."
        ) from None
    if child.returncode:
        raise DatasetError((child.stderr.strip().splitlines() or [f"{name} could not be downloaded."])[-1])
    return availability(name)


if __name__ == "__main__":
    try:
        load(sys.argv[1])
    except GanRuntimeError as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
