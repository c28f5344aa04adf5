"""Numbers of runs and jobs, such as 7 in quick-0007: counted by the folder that holds them, each given once."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

from gan_runtime.home import LAST_NUMBER, run_number
from gan_runtime.records.rundir import write_whole


def next_number(folder: Path) -> int:
    """No number is given twice, also when what it named is deleted: whoever still holds rows of the old run would mix up the two."""
    remembered = folder / LAST_NUMBER
    with FileLock(remembered.with_suffix(".lock")):
        number = _highest(folder, remembered) + 1
        write_whole(remembered, f"{number}\n")
        return number


def _highest(folder: Path, remembered: Path) -> int:
    """The remembered one or that of a folder: the file may be missing in a home that was copied or written by hand."""
    try:
        text = remembered.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        text = ""
    numbers = [number for path in folder.iterdir() if (number := run_number(path.name)) is not None]
    return max([*numbers, int(text) if text.isdecimal() else 0])
