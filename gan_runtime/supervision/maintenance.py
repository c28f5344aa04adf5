"""A thread of its own keeps a home in order: it measures the space that each part takes, and
empties what is old in the bin.

A folder is walked again only when something right in it or right below it has changed, so that a
look at thousands of ended runs costs a look at each of them, and none at its pictures.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gan_runtime.base import disk
from gan_runtime.data import mnist
from gan_runtime.records.home import BIN, Home, is_run_name
from gan_runtime.store import database_file
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.supervision import bin

log = logging.getLogger("gan_runtime")


# ---- disk usage ----------------------------------------------------------------------------------


# Of each entry right in a folder: name, bytes, time of its last change.
Entries = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class FreeSpace:
    """Bytes that are left on a disk, and below how many that is little."""

    free: int
    low: int

    @property
    def is_low(self) -> bool:
        """Whether the disk is worth a warning."""
        return self.free < self.low


@dataclass(frozen=True)
class Space:
    """Bytes of a home, by what takes them.

    `runs`: by run id; `data`: prepared data sets; `jobs`: background jobs with their results, and
    uploads; `spill`: temporary files of queries that need more than their memory; `keras_cache`:
    downloads of Keras, which all homes share; `bin`: with what is being removed; `free`, `low`:
    what is left on the disk of the home, and below how much that is little;
    `runs_disk`: the same of runs/ where that is another disk.
    """

    runs: Mapping[str, int]
    data: int
    jobs: int
    database: int
    spill: int
    keras_cache: int
    bin: int
    free: int
    low: int
    runs_disk: FreeSpace | None = None

    @property
    def is_low(self) -> bool:
        """Whether the disk of the home is worth a warning; that of runs/ says so by itself."""
        return self.free < self.low

    @property
    def all_runs(self) -> int:
        """Without those in the bin."""
        return sum(self.runs.values())


class DiskUsage:
    """Remembers what it has measured. Asked by one thread at a time."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._measured: dict[Path, tuple[Entries, int]] = {}
        self.walked = 0  # folders, so far

    def space(self) -> Space:
        """As it is now."""
        home, before = self._home, self._measured
        self._measured = {}  # so that what is gone is forgotten
        spill = database_file.spill_folder(home.database)
        runs, others = {}, 0
        for path, size in self._each(home.runs, before).items():
            if is_run_name(path.name):
                runs[path.name] = size
            else:
                others += size if path.name != BIN else 0
        return Space(
            runs=runs,
            data=sum(self._each(home.data, before).values()),
            jobs=sum(self._each(home.jobs, before).values()),
            database=sum(
                _file_bytes(path)
                for path in home.path.glob(f"{home.database.name}*")
                if path != spill
            ),
            spill=disk.used_bytes(spill),
            keras_cache=self._keras_cache(before),
            bin=sum(self._each(home.bin, before).values()) + others,
            free=disk.free_bytes(home.path),
            low=disk.low_bytes(home.path),
            runs_disk=_free_space(home.runs) if disk.is_other(home.runs, home.path) else None,
        )

    def _keras_cache(self, before: Mapping[Path, tuple[Entries, int]]) -> int:
        with contextlib.suppress(RuntimeError):  # there is no home folder of the user
            return sum(self._each(mnist.keras_cache(), before).values())
        return 0

    def _each(self, parent: Path, before: Mapping[Path, tuple[Entries, int]]) -> dict[Path, int]:
        """The bytes of each folder and file in `parent`; nothing where there is no such folder."""
        sizes: dict[Path, int] = {}
        with contextlib.suppress(OSError), os.scandir(parent) as entries:
            for entry in entries:
                path = Path(entry.path)
                with contextlib.suppress(OSError):
                    is_folder = entry.is_dir(follow_symlinks=False)
                    sizes[path] = self._folder(path, before) if is_folder else _file_bytes(path)
        return sizes

    def _folder(self, path: Path, before: Mapping[Path, tuple[Entries, int]]) -> int:
        if path.name == BIN:
            return 0
        seen = _entries(path)
        measured = before.get(path)
        if measured is None or measured[0] != seen:
            self.walked += 1
            measured = (seen, disk.used_bytes(path))
        self._measured[path] = measured
        return measured[1]


def _entries(folder: Path) -> Entries:
    listed = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                listed.append((entry.name, status.st_size, status.st_mtime_ns))
    return tuple(sorted(listed))


def _free_space(folder: Path) -> FreeSpace:
    return FreeSpace(disk.free_bytes(folder), disk.low_bytes(folder))


def _file_bytes(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.lstat().st_size
    return 0


# ---- the thread ----------------------------------------------------------------------------------


FIRST_SECONDS = 3.0  # until the first look, which would take time from the first page
LOOK_SECONDS = 30.0  # between two looks
TIDY_SECONDS = 600.0  # between two looks into the bin


class Maintenance:
    """One for each open home; without ownership it only measures.

    Nothing waits for it: gigabytes take a while.
    """

    def __init__(self, home: Home, is_owned: bool = True, clock: Clock = time.monotonic) -> None:
        self.space: Space | None = None  # None until it was measured
        self._home, self._is_owned, self._clock = home, is_owned, clock
        self._measure = DiskUsage(home)
        self._tidied = float("-inf")
        self._ended, self._looking = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._work, name="gan-housekeeping", daemon=True)

    def begin(self) -> None:
        """Looks by itself from now on."""
        self._thread.start()

    def end(self) -> None:
        """Waits for a look that is under way."""
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        """Everything that is due."""
        with self._looking:
            if self._is_owned and self._clock() - self._tidied >= TIDY_SECONDS:
                self._tidied = self._clock()
                for run in bin.remove_old(self._home):
                    log.info("run %s is removed: it was in the bin for %d days", run.key, bin.DAYS)
            self.space = self._measure.space()

    def _work(self) -> None:
        pause = FIRST_SECONDS
        while not self._ended.wait(pause):
            pause = LOOK_SECONDS
            try:
                self.look()
            except Exception:  # such as a full disk: the next look comes in a moment
                log.warning("the home could not be kept in order", exc_info=True)
