"""Recovery from crashes: orphan processes, leftover files, stalled runs, automatic resume.

A run stalls if a deadlock, a hung accelerator or disk, or a suspended process blocks it. Its
process exists, so it is not lost. A lost run resumes automatically a few times, since the cause can
be unique, such as a reboot.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from pathlib import Path

from gan_runtime.base.errors import GanRuntimeError, JournalError
from gan_runtime.data import uploads
from gan_runtime.jobs import job_queue
from gan_runtime.records import image_files, journal, processes, run_files
from gan_runtime.records.home import Home
from gan_runtime.records.journal import ENDED, Event, StatusChange
from gan_runtime.records.record import Actor, operator
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.records.states import Reason, StateTimer
from gan_runtime.spec.run_options import HERE, StallAction
from gan_runtime.store import queries
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.store.store import Store
from gan_runtime.supervision import queue
from gan_runtime.supervision.queue import LiveRun
from gan_runtime.supervision.starters import Attempt, Starter
from gan_runtime.targets import configuration

# ---- orphan processes ----------------------------------------------------------------------------


def orphans(home: Home, starter: Starter) -> list[LiveRun]:
    """The ended attempts of this home that still have processes."""
    return [
        LiveRun(attempt.run, "ended", attempt.number, attempt.accelerator)
        for attempt in starter.present(home.runs)
        if is_over(attempt)
    ]


def is_over(attempt: Attempt) -> bool:
    """Whether an attempt has ended, or a later one has begun; False if uncertain."""
    try:
        attempt.run.path.lstat()
        newest = latest_status(attempt.run)
    except FileNotFoundError:  # deleted
        return True
    except (OSError, GanRuntimeError):
        return False
    return newest.attempt > attempt.number or (
        newest.attempt == attempt.number and newest.status in ENDED
    )


# ---- leftover files ------------------------------------------------------------------------------


IDLE_SECONDS = 3_600.0  # another process can be submitting or importing
_INCOMPLETE = (".new-", ".import-")
_TEMPORARY = re.compile(r"\.[a-z]+\.json\.[0-9]+")  # files of `write_whole`


def clean_home(home: Home) -> None:
    """Removes leftover files of a home. A new owner calls it."""
    for path in home.path.glob(f"{home.database.name}.new-*"):
        _remove(path)
    uploads.remove_old(home)
    now = run_files.now_in(home.runs)
    for path in [*home.runs.glob(".*-*"), *home.data.glob(".*-*"), *home.jobs.glob(".*-*")]:
        if path.name.startswith(".deleted-") or (
            path.name.startswith(_INCOMPLETE) and now - _changed(path) > IDLE_SECONDS
        ):
            _remove(path)
    processes.remove_abandoned_scratch_folders()
    _clean_films(home)


def _clean_films(home: Home) -> None:
    """Removes films that no record names, since a job can be killed before it writes the record."""
    runs = [run for run in home.run_dirs() if run.films.is_dir()]
    # Listed before any record is read, so that a job that ends in the meantime counts as running.
    snapshots = job_queue.snapshots(home) if runs else []
    iterated = {
        snapshot.request.options.get("run_id") for snapshot in snapshots if snapshot.is_live
    }
    for run in runs:
        if run.run_id not in iterated:
            with contextlib.suppress(OSError, JournalError):  # of another user, or deleted
                _clean_films_of(run)


def _clean_films_of(run: RunDir) -> None:
    named = image_files.referenced_films(run)
    now = run_files.now_in(run.films)
    for path in run.films.iterdir():
        is_unnamed = path.suffix == ".npz" and path not in named
        if (is_unnamed or path.suffix == ".part") and now - _changed(path) > IDLE_SECONDS:
            _remove(path)


def clean_run(run: RunDir) -> None:
    """Removes leftover files of a run without a trainer. A silent one on a cluster may still
    write.
    """
    if run.is_on_cluster:
        return
    for folder in (run.samples, run.checkpoints, run.snapshots):
        for path in folder.glob("*.part"):
            _remove(path)
    for path in run.path.glob(".*.json.*"):
        if _TEMPORARY.fullmatch(path.name):
            _remove(path)
    processes.remove_abandoned_scratch_folders()


def _changed(folder: Path) -> float:
    """The last modification in a folder, two levels deep; infinity if the folder disappears."""
    times = []
    for path in (folder, *folder.glob("*"), *folder.glob("*/*")):
        with contextlib.suppress(OSError):
            times.append(path.lstat().st_mtime)
    return max(times, default=float("inf"))


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # of another user, or deleted
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


# ---- stalled runs --------------------------------------------------------------------------------


LEAST_STALL_SECONDS = 120.0
USUAL_CALLS = 20.0
LONGEST_PROBES = 3.0  # factor for the end of an epoch, where scoring thousands of rows is no stall
STALLED, GOES_ON = queries.STANDS_STILL, "goes_on"
_STALL_ACTIONS = {
    "note": "Check its log; stop it, or kill its process and resume the run.",
    "stop": "The owner stops it, and kills it if it does not respond.",
    "restart": "The owner kills it and resumes it from its last checkpoint.",
}


class StallDetection:
    """Detects runs whose journal has had no new line for much longer than a usual call takes."""

    def __init__(self, store: Store, clock: Clock = time.monotonic) -> None:
        self._store, self._timer = store, StateTimer(clock)
        self._stalled: set[tuple[str, int]] = set()  # run and attempt

    def news(self, run: RunDir, attempt: int) -> Event | None:
        """A warning when a run has stalled, a note when it continues, else None."""
        silent_s = self._timer.seconds("still", run.run_id, (attempt, _written_bytes(run)))
        if (run.run_id, attempt) in self._stalled:
            if silent_s < LEAST_STALL_SECONDS:
                self._stalled.discard((run.run_id, attempt))
                return Event(
                    level="info",
                    topic=GOES_ON,
                    message="The run continues: its journal has new lines.",
                )
            return None
        if silent_s < LEAST_STALL_SECONDS:
            return None
        usual = queries.usual_seconds(self._store, run.run_id, attempt)
        if silent_s < max(USUAL_CALLS * usual.call, LONGEST_PROBES * usual.longest_probe):
            return None
        self._stalled.add((run.run_id, attempt))
        return Event(
            level="warning",
            topic=STALLED,
            message=(
                f"The run has stalled: no new numbers for {silent_s:.0f} s, while a call usually"
                f" takes {usual.call:.3g} s. {_STALL_ACTIONS[stall_action(run)]}"
            ),
        )


def stall_action(run: RunDir) -> StallAction:
    """The run's option `still_action`; "note" for old runs, and on other hosts: a requeued job
    waits, and a connection breaks, without a stall.
    """
    if run.is_on_cluster:
        return "note"
    with contextlib.suppress(Exception):  # the trainer reports unreadable options
        spec = run.spec()
        return spec.still_action if spec.target == HERE else "note"
    return "note"


def _written_bytes(run: RunDir) -> int:
    """Bytes of the first worker's journal."""
    with contextlib.suppress(FileNotFoundError):
        return run.trainer_journal().stat().st_size
    return 0


# ---- lost runs -----------------------------------------------------------------------------------


PAUSES_SECONDS = (10.0, 60.0, 300.0)  # before the first, second and third resume
MOST_COPY_SECONDS = 3_600.0  # for the checkpoint of a run on another host
RESUMER = operator("automatic resume")
CONTINUER = operator("time limit")  # of runs that saved before it, as often as needed
NOT_RESUMED = "automatic_resume"


class AutoResume:
    """Resumes lost runs whose options request it. The journal counts the resumes."""

    def __init__(self, home: Home, store: Store, clock: Clock = time.monotonic) -> None:
        self._home, self._store, self._timer = home, store, StateTimer(clock)
        self._lost: list[tuple[RunDir, int, str | None]] = []  # run, attempt, code
        self._given_up: set[tuple[str, int]] = set()  # run and attempt

    def refresh(self) -> None:
        """Reads which lost runs to resume; called after news."""
        rows = self._store.rows(
            """
            SELECT run_id, attempt, code FROM ingest.newest JOIN ingest.created USING (run_id)
            WHERE (status = 'lost' AND (spec->>'resume_lost' = 'yes' OR (spec->>'still_action' =
                'restart' AND code = ?))) OR (code = ? AND spec->>'resume_lost' = 'yes')
            """,
            [Reason.STALLED.value, Reason.STOP_AT_TIME_LIMIT.value],
        )
        self._lost = [
            (RunDir(self._home.runs / run_id), attempt, code) for run_id, attempt, code in rows
        ]

    def will_resume(self, run_id: str) -> bool:
        """Whether a lost run waits for its automatic resume."""
        return any(
            run.run_id == run_id and (run_id, attempt) not in self._given_up
            for run, attempt, _ in self._lost
        )

    def tick(self) -> bool:
        """Resumes runs whose pause is over; returns whether a journal has news."""
        acted = False
        for run, attempt, code in list(self._lost):
            is_cut = code == Reason.STOP_AT_TIME_LIMIT
            times = 0 if is_cut else times_resumed(run)
            waited = self._timer.seconds("lost", run.run_id, attempt)
            is_due = times == len(PAUSES_SECONDS) or waited >= PAUSES_SECONDS[times]
            if is_cut:  # it has saved; from a home there its checkpoint comes a moment later
                is_due = waited > MOST_COPY_SECONDS or not self._is_coming(run)
            if is_due:
                self._lost.remove((run, attempt, code))
                acted |= self._resume(run, attempt, times, CONTINUER if is_cut else RESUMER)
        return acted

    def _is_coming(self, run: RunDir) -> bool:
        """Whether what a run needs to continue may still be on its way from another home."""
        with contextlib.suppress(GanRuntimeError):
            is_apart = configuration.is_apart(self._home, run.spec())
            return is_apart and bool(queue.resume_refusal(run))
        return False

    def _resume(self, run: RunDir, attempt: int, times: int, actor: Actor) -> bool:
        """Resumes a run, or logs once why it cannot."""
        refusal = (
            f"The run was resumed automatically {times} times and is lost again: check its log"
            " before you resume it."
        )
        if times < len(PAUSES_SECONDS):
            try:
                queue.resume(self._home, run, {}, actor.name)
            except GanRuntimeError as error:
                refusal = f"The run cannot resume automatically: {error}"
            else:
                return True
        is_news = (run.run_id, attempt) not in self._given_up
        self._given_up.add((run.run_id, attempt))
        return _warn_once(run, attempt, refusal) or is_news


def times_resumed(run: RunDir) -> int:
    """The number of automatic resumes since a user last queued the run."""
    times = 0
    for record in journal.read_all(run.supervisor_journal):
        if (
            isinstance(record, StatusChange)
            and record.status == "queued"
            and record.asker != queue.NEXT_OWNER.name
        ):
            times = times + 1 if record.asker == RESUMER.name else 0
    return times


def _warn_once(run: RunDir, attempt: int, message: str) -> bool:
    if any(
        isinstance(record, Event) and (record.attempt, record.topic) == (attempt, NOT_RESUMED)
        for record in journal.read_all(run.supervisor_journal)
    ):
        return False
    journal.append(
        run.supervisor_journal, attempt, Event(level="warning", topic=NOT_RESUMED, message=message)
    )
    return True
