"""What a kill leaves behind: folders in the making, files half written. Removed where surely nobody uses them any more."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from gan_runtime.base.errors import JournalError
from gan_runtime.jobs import job_queue, uploads
from gan_runtime.records import flow_frames, processes
from gan_runtime.records.home import Home
from gan_runtime.records.processes import SCRATCH_PREFIX
from gan_runtime.records.run_folder import RunDir

IDLE_SECONDS = (
    3_600.0  # another process may be submitting or importing right now, which takes seconds to minutes
)
_IN_THE_MAKING = (".new-", ".import-")
_SCRATCH = re.compile(SCRATCH_PREFIX + r"([0-9]{1,10})-\w+")
_ASIDE = re.compile(r"\.[a-z]+\.json\.[0-9]+")  # see rundir.write_whole


def of_home(home: Home) -> None:
    """For the owner, when it begins: only an owner makes results.duckdb anew, and nobody needs what was deleted."""
    for path in home.path.glob(f"{home.database.name}.new-*"):
        _remove(path)
    uploads.forget_old(home)
    now = _now(home.runs)
    for path in [*home.runs.glob(".*-*"), *home.data.glob(".*-*"), *home.jobs.glob(".*-*")]:
        if path.name.startswith(".deleted-") or (
            path.name.startswith(_IN_THE_MAKING) and now - _changed(path) > IDLE_SECONDS
        ):
            _remove(path)
    _of_dead_trainers()
    _of_films(home)


def _of_dead_trainers() -> None:
    """Their temporary folders."""
    for path in Path(tempfile.gettempdir()).glob(f"{SCRATCH_PREFIX}*"):
        owner = _SCRATCH.fullmatch(path.name)
        if owner and not processes.is_there(int(owner[1])):
            _remove(path)


def _of_films(home: Home) -> None:
    """Films of iterations that no record names: a job writes them before the record, and a kill may come between."""
    runs = [run for run in home.run_dirs() if run.flow.is_dir()]
    # Before any record is read: a job that ends meanwhile counts as alive.
    looks = job_queue.looks(home) if runs else []
    iterated = {look.asked.options.get("run_id") for look in looks if look.is_live}
    for run in runs:
        if run.run_id not in iterated:
            with contextlib.suppress(OSError, JournalError):  # of another user, or gone
                _of_flow(run)


def _of_flow(run: RunDir) -> None:
    named = flow_frames.named(run)
    now = _now(run.flow)
    for path in run.flow.iterdir():
        is_unnamed = path.suffix == ".npz" and path not in named
        if (is_unnamed or path.suffix == ".part") and now - _changed(path) > IDLE_SECONDS:
            _remove(path)


def of_run(run: RunDir) -> None:
    """For the owner, while the run has no trainer."""
    for folder in (run.samples, run.checkpoints, run.snapshots):
        for path in folder.glob("*.part"):
            _remove(path)
    for path in run.path.glob(".*.json.*"):
        if _ASIDE.fullmatch(path.name):
            _remove(path)
    _of_dead_trainers()


def _now(folder: Path) -> float:
    """By the clock that dates the files in it."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b".")
        file.flush()
        return os.fstat(file.fileno()).st_mtime


def _changed(folder: Path) -> float:
    """When something in the folder or right below it last changed; now, if it vanishes meanwhile."""
    times = []
    for path in (folder, *folder.glob("*"), *folder.glob("*/*")):
        with contextlib.suppress(OSError):
            times.append(path.lstat().st_mtime)
    return max(times, default=float("inf"))


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # of another user, or gone: what stays does no harm
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
