"""The trash of a home: deleted runs that can be restored for 30 days.

runs/.bin/quick-0007/   the folder of the run, and in it deleted.json: time, user, size

A single rename moves a run into the trash and back. deleted.json is written before the move, and is
harmless in a run that was not moved.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import time
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from filelock import FileLock

from gan_runtime.base import disk
from gan_runtime.base.errors import HomeError, JournalError, RunStateError, UnknownRunError, quoted
from gan_runtime.records import journal, run_files
from gan_runtime.records.home import Home, is_run_name
from gan_runtime.records.journal import Created, Renamed, StatusChange
from gan_runtime.records.record import YEARS
from gan_runtime.records.run_folder import RunDir, latest_status, write_json, write_whole
from gan_runtime.records.states import Reason, cause

DAYS = 30
NOTE = "deleted.json"
REPEAT = "~"  # between an id and a number, if that id is already in the trash


@dataclass(frozen=True)
class DeletedRun:
    """A run in the trash. `key`: name of its folder: the id, or `quick-0007~2` if that id is
    already in the trash.

    `deleted_at`, `size_bytes` and `days_left` are None, and `asker` is empty, for a folder that a
    user moved there. It never expires.
    """

    key: str
    run_id: str
    name: str
    status: str
    deleted_at: datetime | None
    asker: str
    size_bytes: int | None
    days_left: float | None


def deleted_runs(home: Home, moment: Moment | None = None) -> list[DeletedRun]:
    """The runs in the trash, latest first."""
    moment = moment or Moment.now()
    notes = _notes(home)
    seconds = read_clock(home.bin, moment, _least(notes)) if notes else 0.0
    runs = [_deleted_run(path.name, note, seconds) for path, note in notes.items()]
    return sorted(
        runs,
        key=lambda run: (run.deleted_at is not None, run.deleted_at or 0, run.key),
        reverse=True,
    )


def put(run: RunDir, asker: str, moment: Moment | None = None) -> str:
    """Moves a run into the trash; returns its key there.

    Raises:
        RunStateError: the run has just started training, and is not moved.
        HomeError: the home cannot be written.
    """
    home = Home(run.path.parent.parent)
    try:
        home.bin.mkdir(exist_ok=True)
        seconds = advance_clock(home.bin, moment or Moment.now(), _least(_notes(home)))
        write_json(
            run.path / NOTE,
            {
                "run_id": run.run_id,
                "name": _name(run),
                "status": latest_status(run).status,
                "deleted_at": journal.now().isoformat(),
                "asker": asker,
                "size_bytes": disk.used_bytes(run.path),
                "counted_s": seconds,
            },
        )
        place = free_place(home, run.run_id)
        run.path.rename(place)
    except OSError as error:
        raise HomeError.not_written(home.bin, error) from None
    status = latest_status(RunDir(place)).status
    if status in journal.ACTIVE:  # the owner started it between the check and the move
        place.rename(run.path)
        raise RunStateError(f"run {run.run_id} is {status}: stop it first, then delete it.")
    return place.name


def restore(home: Home, key: str) -> RunDir:
    """Moves a run out of the trash. A queued run returns as stopped.

    Raises:
        UnknownRunError: the run is not in the trash.
        RunStateError: another run has its id now.
        HomeError: the home cannot be written.
    """
    place = _place(home, key)
    run = RunDir(home.runs / key.partition(REPEAT)[0])
    if run.path.exists():
        raise RunStateError(
            f"run {run.run_id} cannot be restored, as another run has this name: delete that run"
            " first."
        )
    deleted = RunDir(place)
    newest = latest_status(deleted)
    if newest.status == "queued":
        restored = StatusChange.of("stopped", cause(Reason.RESTORED_FROM_BIN))
        journal.append(deleted.supervisor_journal, newest.attempt, restored)
    try:
        place.rename(run.path)
    except OSError as error:
        raise HomeError.not_written(run.path, error) from None
    for note in (run.path / NOTE, *run.path.glob(f".{NOTE}.*")):  # and its leftovers after a crash
        note.unlink(missing_ok=True)
    run.announce()
    return run


def remove(home: Home, key: str) -> None:
    """Removes a run from the trash permanently.

    Raises:
        UnknownRunError: the run is not in the trash, or was just restored.
        HomeError: the home cannot be written.
    """
    place = _place(home, key)
    try:
        discard(home, place)
    except FileNotFoundError:
        raise _not_there(home, key) from None
    except OSError as error:
        raise HomeError.not_written(home.bin, error) from None


def remove_old(home: Home, moment: Moment | None = None) -> list[DeletedRun]:
    """Permanently removes runs that have been in the trash for 30 days; returns them.

    Both the trash's clock and the calendar must agree. A calendar that puts the deletion into the
    future is wrong and is ignored.
    """
    if not _notes(home):
        return []
    moment = moment or Moment.now()
    advance_clock(home.bin, moment, _least(_notes(home)))
    old = [
        run
        for run in deleted_runs(home, moment)
        if run.days_left == 0 and not _is_too_early(run, moment)
    ]
    for run in old:
        with contextlib.suppress(UnknownRunError):  # just restored
            remove(home, run.key)
    return old


def discard(home: Home, folder: Path) -> None:
    """Permanently removes a folder of the home: renames it, then deletes its files."""
    doomed = home.runs / f".deleted-{folder.name}-{secrets.token_hex(4)}"
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _is_too_early(run: DeletedRun, moment: Moment) -> bool:
    passed_s = moment.day_s - run.deleted_at.timestamp() if run.deleted_at else 0.0
    return 0 <= passed_s < DAYS * DAY_S


def _place(home: Home, key: str) -> Path:
    place = home.bin / key
    if not _is_key(key) or not place.is_dir():
        raise _not_there(home, key)
    return place


def _not_there(home: Home, key: str) -> UnknownRunError:
    keys = ", ".join(run.key for run in deleted_runs(home)[:8])
    content = f"it contains {keys}" if keys else "it is empty"
    return UnknownRunError(f"run {quoted(key)} is not in the trash: {content}.")


def free_place(home: Home, run_id: str) -> Path:
    """A free folder in the trash, such as quick-0007, or quick-0007~2 if that is taken."""
    names = (run_id if number == 1 else f"{run_id}{REPEAT}{number}" for number in count(1))
    return next(place for name in names if not (place := home.bin / name).exists())


def _is_key(name: str) -> bool:
    run_id, mark, number = name.partition(REPEAT)
    return is_run_name(run_id) and (not mark or (number.isascii() and number.isdecimal()))


def _notes(home: Home) -> dict[Path, dict[str, Any]]:
    """Each folder of the trash with its deleted.json; {} if that is unreadable."""
    notes: dict[Path, dict[str, Any]] = {}
    for path in sorted(home.bin.glob("*")):
        if path.is_dir() and _is_key(path.name):
            content: object = None
            with contextlib.suppress(OSError, ValueError, RecursionError):
                content = json.loads(run_files.content(path / NOTE))
            notes[path] = content if isinstance(content, dict) else {}
    return notes


def _least(notes: dict[Path, dict[str, Any]]) -> float:
    """The highest clock reading in any deleted.json."""
    counted = (note.get("counted_s") for note in notes.values())
    return max(
        (float(seconds) for seconds in counted if isinstance(seconds, int | float)), default=0.0
    )


def _deleted_run(key: str, note: dict[str, Any], seconds: float) -> DeletedRun:
    run_id = key.partition(REPEAT)[0]
    begin, size, days_left = note.get("counted_s"), note.get("size_bytes"), None
    if isinstance(begin, int | float):
        days_left = max(0.0, DAYS - max(0.0, seconds - begin) / DAY_S)
    return DeletedRun(
        key=key,
        run_id=run_id,
        name=str(note.get("name", run_id))[:200],
        status=str(note.get("status", ""))[:20],
        deleted_at=_moment(note.get("deleted_at")),
        asker=str(note.get("asker", ""))[:200],
        size_bytes=size if isinstance(size, int) else None,
        days_left=days_left,
    )


def _moment(text: object) -> datetime | None:
    with contextlib.suppress(ValueError, TypeError):
        moment = datetime.fromisoformat(str(text))
        if moment.tzinfo and YEARS[0] <= moment.year < YEARS[1]:
            return moment
    return None


def _name(run: RunDir) -> str:
    """The display name of a run. A damaged journal counts up to the damage."""
    name = ""
    with contextlib.suppress(JournalError, FileNotFoundError):
        for _, record in journal.naming(run.supervisor_journal, b'"name"'):
            match record:
                case Renamed():
                    name = record.name
                case Created():
                    name = name or str(record.spec.get("name", ""))
    return name or run.run_id


DAY_S = 86_400.0
MOST_UNSEEN_S = DAY_S  # most seconds that count for the time around a reboot
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STATE, _LOCK = ".clock.json", ".clock.lock"


@dataclass(frozen=True)
class Moment:
    """A point in time. `day_s`: seconds since 1970. `boot`: boot id, or "". `up_s`: seconds since
    boot, including sleep.
    """

    day_s: float
    boot: str
    up_s: float

    @classmethod
    def now(cls) -> Moment:
        """The current moment."""
        boot = ""
        with contextlib.suppress(OSError):
            boot = _BOOT.read_text(encoding="ascii").strip()
        up_s = (
            time.clock_gettime(time.CLOCK_BOOTTIME)
            if hasattr(time, "CLOCK_BOOTTIME")
            else time.monotonic()
        )
        return cls(time.time(), boot, up_s)


@dataclass(frozen=True)
class ClockReading:
    """A reading of the trash's clock: the seconds counted at a moment."""

    seconds: float
    moment: Moment

    def at(self, moment: Moment) -> float:
        """Seconds counted at a later moment."""
        if moment.boot and moment.boot == self.moment.boot:
            return self.seconds + max(0.0, moment.up_s - self.moment.up_s)
        return self.seconds + min(max(0.0, moment.day_s - self.moment.day_s), MOST_UNSEEN_S)


def read_clock(folder: Path, moment: Moment, least: float = 0.0) -> float:
    """The seconds counted until `moment`. `least`: a lower bound, in case the file is lost."""
    reading = _stored(folder / _STATE)
    return least if reading is None else max(least, reading.at(moment))


def advance_clock(folder: Path, moment: Moment, least: float = 0.0) -> float:
    """As `read_clock`, and stores the reading. Raises HomeError if the disk is full."""
    with FileLock(folder / _LOCK):
        seconds = read_clock(folder, moment, least)
        write_whole(
            folder / _STATE, json.dumps({"seconds": seconds, "moment": asdict(moment)}) + "\n"
        )
    return seconds


def _stored(path: Path) -> ClockReading | None:
    """The stored reading; None if the file is missing or unreadable."""
    try:
        content = json.loads(run_files.content(path))
        moment = content["moment"]
        return ClockReading(
            float(content["seconds"]),
            Moment(float(moment["day_s"]), str(moment["boot"]), float(moment["up_s"])),
        )
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
