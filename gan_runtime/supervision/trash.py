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
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from gan_runtime.base import disk
from gan_runtime.base.errors import HomeError, JournalError, RunStateError, UnknownRunError, quoted
from gan_runtime.records import journal, run_files
from gan_runtime.records.home import Home, is_run_name
from gan_runtime.records.journal import Created, Renamed, StatusChange
from gan_runtime.records.record import YEARS
from gan_runtime.records.run_folder import RunDir, latest_status, write_json
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


def deleted_runs(home: Home, moment: datetime | None = None) -> list[DeletedRun]:
    """The runs in the trash, latest first."""
    moment = moment or journal.now()
    runs = [_deleted_run(path.name, note, moment) for path, note in _notes(home).items()]
    return sorted(
        runs,
        key=lambda run: (run.deleted_at is not None, run.deleted_at or 0, run.key),
        reverse=True,
    )


def put(run: RunDir, asker: str, moment: datetime | None = None) -> str:
    """Moves a run into the trash; returns its key there.

    Raises:
        RunStateError: the run has just started training, and is not moved.
        HomeError: the home cannot be written.
    """
    home = Home(run.path.parent.parent)
    try:
        home.bin.mkdir(exist_ok=True)
        write_json(
            run.path / NOTE,
            {
                "run_id": run.run_id,
                "name": _name(run),
                "status": latest_status(run).status,
                "deleted_at": (moment or journal.now()).isoformat(),
                "asker": asker,
                "size_bytes": disk.used_bytes(run.path),
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


def remove_old(home: Home, moment: datetime | None = None) -> list[DeletedRun]:
    """Permanently removes runs that have been in the trash for 30 days; returns them."""
    old = [run for run in deleted_runs(home, moment) if run.days_left == 0]
    for run in old:
        with contextlib.suppress(UnknownRunError):  # just restored
            remove(home, run.key)
    return old


def discard(home: Home, folder: Path) -> None:
    """Permanently removes a folder of the home: renames it, then deletes its files."""
    doomed = home.runs / f".deleted-{folder.name}-{secrets.token_hex(4)}"
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


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


def _deleted_run(key: str, note: dict[str, Any], moment: datetime) -> DeletedRun:
    run_id = key.partition(REPEAT)[0]
    size, deleted_at = note.get("size_bytes"), _moment(note.get("deleted_at"))
    days_left = max(0.0, DAYS - (moment - deleted_at) / timedelta(1)) if deleted_at else None
    return DeletedRun(
        key=key,
        run_id=run_id,
        name=str(note.get("name", run_id))[:200],
        status=str(note.get("status", ""))[:20],
        deleted_at=deleted_at,
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
