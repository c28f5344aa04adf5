"""The bin of a home: deleted runs that can be brought back for 30 days.

runs/.bin/quick-0007/   the folder of the run, whole, and in it deleted.json: when, by whom, how
large

One rename of its folder moves a run there and back, so at any moment it is either a run or in the
bin. The note in its folder is written before the move; in a run that was not moved it does no harm.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from gan_runtime.base import disk
from gan_runtime.base.errors import HomeError, JournalError, RunStateError, UnknownRunError, quoted
from gan_runtime.records import journal, run_files
from gan_runtime.records.home import Home, is_run_name
from gan_runtime.records.journal import Created, Renamed, StatusChange
from gan_runtime.records.reasons import Reason, cause
from gan_runtime.records.record import YEARS
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.records.run_state import latest_status
from gan_runtime.supervision import bin_clock
from gan_runtime.supervision.bin_clock import DAY_S, Moment

DAYS = 30
NOTE = "deleted.json"
TWICE = "~"  # between the id and a number, where a run of that id is in the bin already


@dataclass(frozen=True)
class BinnedRun:
    """`key`: the name of its folder in the bin: its id, or `quick-0007~2` where a run of that id is
    there already.

    `deleted_at`, `size_bytes` and `days_left` are None, and `asker` is empty, for a folder that was
    put there by hand. It stays until a person removes it.
    """

    key: str
    run_id: str
    name: str
    status: str
    deleted_at: datetime | None
    asker: str
    size_bytes: int | None
    days_left: float | None


def listed(home: Home, moment: Moment | None = None) -> list[BinnedRun]:
    """What is in the bin, the latest first."""
    moment = moment or Moment.now()
    notes = _notes(home)
    seconds = bin_clock.read(home.bin, moment, _least(notes)) if notes else 0.0
    runs = [_binned(path.name, note, seconds) for path, note in notes.items()]
    return sorted(
        runs,
        key=lambda run: (run.deleted_at is not None, run.deleted_at or 0, run.key),
        reverse=True,
    )


def put(run: RunDir, asker: str, moment: Moment | None = None) -> str:
    """Moves a run into the bin of its home; returns its key there.

    Raises:
        RunStateError: it began to train meanwhile, and was left where it was.
        HomeError: the home cannot be written.
    """
    home = Home(run.path.parent.parent)
    try:
        home.bin.mkdir(exist_ok=True)
        seconds = bin_clock.advance(home.bin, moment or Moment.now(), _least(_notes(home)))
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
    if status in journal.ACTIVE:  # the owner started it between the question and the move
        place.rename(run.path)
        raise RunStateError(f"run {run.run_id} is {status}: stop it first, then delete it.")
    return place.name


def take_out(home: Home, key: str) -> RunDir:
    """Makes a run in the bin a run again; one that waited for its turn comes back as stopped.

    Raises:
        UnknownRunError: it is not in the bin.
        RunStateError: another run has its id by now.
        HomeError: the home cannot be written.
    """
    place = _place(home, key)
    run = RunDir(home.runs / key.partition(TWICE)[0])
    if run.path.exists():
        raise RunStateError(
            f"run {run.run_id} cannot be restored: another run is called {run.run_id} by now."
            " Delete that one first."
        )
    binned = RunDir(place)
    if latest_status(binned).status == "queued":
        attempt = latest_status(binned).attempt
        restored = StatusChange.of("stopped", cause(Reason.RESTORED_FROM_BIN))
        journal.append(binned.supervisor_journal, attempt, restored)
    try:
        place.rename(run.path)
    except OSError as error:
        raise HomeError.not_written(run.path, error) from None
    for note in (
        run.path / NOTE,
        *run.path.glob(f".{NOTE}.*"),
    ):  # half a note, where a kill came while it was written
        note.unlink(missing_ok=True)
    run.announce()
    return run


def remove(home: Home, key: str) -> None:
    """Removes a run in the bin for good.

    Raises:
        UnknownRunError: it is not in the bin, or somebody else has just taken it out.
        HomeError: the home cannot be written.
    """
    place = _place(home, key)
    try:
        discard(home, place)
    except FileNotFoundError:
        raise _not_there(home, key) from None
    except OSError as error:
        raise HomeError.not_written(home.bin, error) from None


def remove_old(home: Home, moment: Moment | None = None) -> list[BinnedRun]:
    """Removes what has been in the bin for 30 days, for good; returns it.

    Both count: the clock of the bin, which nobody can set, and the calendar. A calendar that puts
    the deletion into the future is wrong and is ignored.
    """
    if not _notes(home):
        return []
    moment = moment or Moment.now()
    bin_clock.advance(home.bin, moment, _least(_notes(home)))
    old = [
        run for run in listed(home, moment) if run.days_left == 0 and not _is_too_early(run, moment)
    ]
    for run in old:
        with contextlib.suppress(UnknownRunError):  # somebody restored it just now
            remove(home, run.key)
    return old


def discard(home: Home, folder: Path) -> None:
    """Removes a folder of the home for good: first its name, by one rename, then its files."""
    doomed = home.runs / f".deleted-{folder.name}-{secrets.token_hex(4)}"
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _is_too_early(run: BinnedRun, moment: Moment) -> bool:
    passed_s = moment.day_s - run.deleted_at.timestamp() if run.deleted_at else 0.0
    return 0 <= passed_s < DAYS * DAY_S


def _place(home: Home, key: str) -> Path:
    place = home.bin / key
    if not _is_key(key) or not place.is_dir():
        raise _not_there(home, key)
    return place


def _not_there(home: Home, key: str) -> UnknownRunError:
    keys = ", ".join(run.key for run in listed(home)[:8])
    there = f"there are {keys}" if keys else "it is empty"
    return UnknownRunError(f"run {quoted(key)} is not in the bin: {there}.")


def free_place(home: Home, run_id: str) -> Path:
    """Of a run whose id is there already: quick-0007~2."""
    names = (run_id if number == 1 else f"{run_id}{TWICE}{number}" for number in count(1))
    return next(place for name in names if not (place := home.bin / name).exists())


def _is_key(name: str) -> bool:
    run_id, twice, number = name.partition(TWICE)
    return is_run_name(run_id) and (not twice or (number.isascii() and number.isdecimal()))


def _notes(home: Home) -> dict[Path, dict[str, Any]]:
    """Each folder of the bin, and the content of its note; empty where that cannot be read."""
    notes: dict[Path, dict[str, Any]] = {}
    for path in sorted(home.bin.glob("*")):
        if path.is_dir() and _is_key(path.name):
            content: object = None
            with contextlib.suppress(OSError, ValueError, RecursionError):
                content = json.loads(run_files.content(path / NOTE))
            notes[path] = content if isinstance(content, dict) else {}
    return notes


def _least(notes: dict[Path, dict[str, Any]]) -> float:
    """Seconds that the clock had counted at least when the last of them was deleted."""
    counted = (note.get("counted_s") for note in notes.values())
    return max(
        (float(seconds) for seconds in counted if isinstance(seconds, int | float)), default=0.0
    )


def _binned(key: str, note: dict[str, Any], seconds: float) -> BinnedRun:
    run_id = key.partition(TWICE)[0]
    begin, size, left = note.get("counted_s"), note.get("size_bytes"), None
    if isinstance(begin, int | float):
        left = max(0.0, DAYS - max(0.0, seconds - begin) / DAY_S)
    return BinnedRun(
        key=key,
        run_id=run_id,
        name=str(note.get("name", run_id))[:200],
        status=str(note.get("status", ""))[:20],
        deleted_at=_moment(note.get("deleted_at")),
        asker=str(note.get("asker", ""))[:200],
        size_bytes=size if isinstance(size, int) else None,
        days_left=left,
    )


def _moment(text: object) -> datetime | None:
    with contextlib.suppress(ValueError, TypeError):
        moment = datetime.fromisoformat(str(text))
        if moment.tzinfo and YEARS[0] <= moment.year < YEARS[1]:
            return moment
    return None


def _name(run: RunDir) -> str:
    """Its name in lists.

    Where the journal breaks off, what is before that counts: such a run can be deleted too.
    """
    name = ""
    with contextlib.suppress(JournalError, FileNotFoundError):
        for _, record in journal.naming(run.supervisor_journal, b'"name"'):
            match record:
                case Renamed():
                    name = record.name
                case Created():
                    name = name or str(record.spec.get("name", ""))
    return name or run.run_id
