"""Numbers of runs and jobs, such as 7 in quick-0007, and places in the queue: counted in the home, each given once."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from filelock import FileLock

from gan_runtime.records import run_files
from gan_runtime.records.home import BIN, LAST_NUMBER, Home, run_number
from gan_runtime.records.run_folder import write_whole

LAST_RANK = ".last-rank"
# Numbers of our own stay below MOST, so that each run can be bundled. Imported runs have up to 8 digits; the count never goes on from those
# of more than 6.
MOST, MOST_COUNTED = 10_000_000, 1_000_000
MOST_DIGITS = 15  # of a remembered number: a rank, which counts on from the seconds since 1970, has ten


def next_number(folder: Path) -> int:
    """No number is given twice, also when what it named is deleted: whoever still holds rows of the old run would mix up the two."""
    remembered = folder / LAST_NUMBER
    with FileLock(remembered.with_suffix(".lock")):
        given = _given(folder)
        number = next(free for free in count(_last(given, remembered) + 1) if free not in given)
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


def keep_count(folder: Path) -> None:
    """Before runs of others are placed: what is numbered here goes on from its own last number, not from theirs."""
    remembered = folder / LAST_NUMBER
    with FileLock(remembered.with_suffix(".lock")):
        write_whole(remembered, f"{_last(_given(folder), remembered)}\n")


def _last(given: set[int], remembered: Path) -> int:
    """The last number of our own; that of the folders where its file is missing, as in a home that was copied or written by hand."""
    last = _number_in(remembered)
    if last is not None and last < MOST:
        return last
    return max([0, *(number for number in given if number < MOST_COUNTED)])


def _given(folder: Path) -> set[int]:
    """Those of folders, also in the bin."""
    paths = [*folder.iterdir(), *(folder / BIN).glob("*")]
    return {number for path in paths if (number := run_number(path.name)) is not None}


def _number_in(file: Path) -> int | None:
    """None where the file is missing or holds anything else."""
    try:
        text = run_files.content(file).decode("utf-8", errors="replace").strip()
    except (FileNotFoundError, run_files.NotPlainError):
        return None
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None
