"""Maintenance of a home in a thread: measures disk usage, and removes expired runs from the trash.

A folder is walked again only if a direct entry has changed, so each ended run costs one scan of its
folder, however many images it has.
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

from gan_runtime.base import disk, framework_settings
from gan_runtime.records.home import BIN, Home, is_run_name
from gan_runtime.store import database_file
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.supervision import trash

log = logging.getLogger("gan_runtime")


# ---- disk usage ----------------------------------------------------------------------------------


# Name, bytes and modification time of each direct entry of a folder.
Entries = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class FreeSpace:
    """Free bytes of a disk, and the limit below which it is low."""

    free: int
    low: int

    @property
    def is_low(self) -> bool:
        """Whether the disk is worth a warning."""
        return self.free < self.low


@dataclass(frozen=True)
class Space:
    """Bytes of a home by use.

    `runs`: by run id. `data`: prepared data sets. `jobs`: background jobs with results, and
    uploads. `spill`: temporary files of queries. `keras_cache`: downloads of Keras, shared by all
    homes. `bin`: the trash, including runs being removed. `free`, `low`: free bytes and warning
    limit of the home's disk; `runs_disk`: of the disk of runs/, if that is another disk.
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
        """Whether the home's disk, apart from `runs_disk`, is worth a warning."""
        return self.free < self.low

    @property
    def all_runs(self) -> int:
        """Bytes of all runs, without the trash."""
        return sum(self.runs.values())


class DiskUsage:
    """Measures the disk usage of a home, reusing results of unchanged folders. Not thread-safe."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._measured: dict[Path, tuple[Entries, int]] = {}
        self.walked = 0  # folders walked so far

    def space(self) -> Space:
        """The current usage."""
        home, before = self._home, self._measured
        self._measured = {}
        spill = database_file.spill_folder(home.database)
        runs, rest = {}, 0
        for path, size in self._each(home.runs, before).items():
            if is_run_name(path.name):
                runs[path.name] = size
            else:
                rest += size if path.name != BIN else 0
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
            bin=sum(self._each(home.bin, before).values()) + rest,
            free=disk.free_bytes(home.path),
            low=disk.low_bytes(home.path),
            runs_disk=_free_space(home.runs) if disk.is_other(home.runs, home.path) else None,
        )

    def _keras_cache(self, before: Mapping[Path, tuple[Entries, int]]) -> int:
        with contextlib.suppress(RuntimeError):  # the system user has no home folder
            return sum(self._each(framework_settings.keras_cache(), before).values())
        return 0

    def _each(self, parent: Path, before: Mapping[Path, tuple[Entries, int]]) -> dict[Path, int]:
        """The bytes of each folder and file in `parent`; empty if that is missing."""
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
        entries = _entries(path)
        measured = before.get(path)
        if measured is None or measured[0] != entries:
            self.walked += 1
            measured = (entries, disk.used_bytes(path))
        self._measured[path] = measured
        return measured[1]


def _entries(folder: Path) -> Entries:
    stamps = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                stamps.append((entry.name, status.st_size, status.st_mtime_ns))
    return tuple(sorted(stamps))


def _free_space(folder: Path) -> FreeSpace:
    return FreeSpace(disk.free_bytes(folder), disk.low_bytes(folder))


def _file_bytes(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.lstat().st_size
    return 0


# ---- the thread ----------------------------------------------------------------------------------


FIRST_SECONDS = 3.0  # before the first round, which would slow down the first page load
ROUND_SECONDS = 30.0  # between two rounds
TRASH_SECONDS = 600.0  # between two checks of the trash


class Maintenance:
    """The maintenance thread of one open home; without ownership it only measures."""

    def __init__(self, home: Home, is_owned: bool = True, clock: Clock = time.monotonic) -> None:
        self.space: Space | None = None  # None before the first measurement
        self._home, self._is_owned, self._clock = home, is_owned, clock
        self._measure = DiskUsage(home)
        self._checked_trash_s = float("-inf")
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._work, name="gan-maintenance", daemon=True)

    def begin(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def end(self) -> None:
        """Ends the thread after a round in progress."""
        self._ended.set()
        self._thread.join()

    def run_round(self) -> None:
        """Does all maintenance that is due."""
        with self._lock:
            if self._is_owned and self._clock() - self._checked_trash_s >= TRASH_SECONDS:
                self._checked_trash_s = self._clock()
                for run in trash.remove_old(self._home):
                    log.info(
                        "run %s is removed: it was in the trash for %d days", run.key, trash.DAYS
                    )
            self.space = self._measure.space()

    def _work(self) -> None:
        pause = FIRST_SECONDS
        while not self._ended.wait(pause):
            pause = ROUND_SECONDS
            try:
                self.run_round()
            except Exception:  # such as a full disk; the next round tries again
                log.warning("maintenance of the home failed", exc_info=True)
