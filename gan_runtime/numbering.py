"""Numbers of runs and jobs, such as 7 in quick-0007, and places in the queue: counted in the home, each given once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from gan_runtime.home import BIN, LAST_NUMBER, Home, run_number
from gan_runtime.records import own_files
from gan_runtime.records.rundir import write_whole

LAST_RANK = ".last-rank"


def next_number(folder: Path) -> int:
    """No number is given twice, also when what it named is deleted: whoever still holds rows of the old run would mix up the two."""
    remembered = folder / LAST_NUMBER
    with FileLock(remembered.with_suffix(".lock")):
        number = _highest(folder, remembered) + 1
        write_whole(remembered, f"{number}\n")
        return number


def next_rank(home: Home, clock: Callable[[], float] = time.time) -> float:
    """A place in the queue behind all that were given before in this home, whatever the clocks say.

    The first one is the time of day, in seconds: runs that wait since before ranks were counted have theirs from there.
    """
    remembered = home.runs / LAST_RANK
    with FileLock(remembered.with_suffix(".lock")):
        last = _number_in(remembered)
        rank = last + 1 if last else int(clock()) + 1
        write_whole(remembered, f"{rank}\n")
        return float(rank)


def _highest(folder: Path, remembered: Path) -> int:
    """The remembered one or that of a folder, also one in the bin: the file may be missing in a home that was copied or written by hand."""
    folders = [*folder.iterdir(), *(folder / BIN).glob("*")]
    numbers = [number for path in folders if (number := run_number(path.name)) is not None]
    return max([*numbers, _number_in(remembered)])


def _number_in(file: Path) -> int:
    """0 where the file is missing or holds anything else."""
    try:
        text = own_files.content(file).decode("utf-8", errors="replace").strip()
    except (FileNotFoundError, own_files.NotPlainError):
        return 0
    return int(text) if text.isdecimal() else 0
