"""The next owner removes the leftovers of a kill, but keeps files that may be in use."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gan_runtime.commands.runtime import Runtime
from gan_runtime.jobs.folder import JobDir, JobRequest
from gan_runtime.records import journal, processes
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.supervision import recovery
from gan_runtime.supervision.starters import Attempt
from tests.support import measured_flows
from tests.support.trainers import idle


def folder(path: Path, seconds_ago: float = 0.0) -> Path:
    """Creates a folder with a folder and a file in it, all modified `seconds_ago`."""
    (path / "run").mkdir(parents=True)
    (path / "run" / "spec.json").write_text("{}")
    now = path.stat().st_mtime
    for file in (path / "run" / "spec.json", path / "run", path):
        os.utime(file, (now - seconds_ago, now - seconds_ago))
    return path


def test_owner_removes_leftovers_of_a_kill(
    home: Home, new_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("quick-0001")
    run.request_stop("a test")
    old = 2 * recovery.IDLE_SECONDS
    gone = [
        folder(home.runs / name, old)
        for name in (".new-abcd1234", ".import-x", ".deleted-quick-0009")
    ]
    gone += [
        folder(home.runs / ".deleted-quick-0010"),
        home.path / "results.duckdb.new-4711",
        home.path / "results.duckdb.new-4711.wal",
    ]
    remaining = [folder(home.runs / name) for name in (".new-efgh5678", ".import-y")] + [
        folder(home.runs / ".mine-1", old),
        run.path,
    ]
    for path in gone[-2:]:
        path.write_bytes(b"half a database")
    monkeypatch.setattr(tempfile, "tempdir", str(home.path / "tmp"))
    (home.path / "tmp").mkdir()
    remaining.append(folder(home.path / "tmp" / ".gan-scratch-mine"))
    Runtime.open(home).close()
    assert [path for path in gone if path.exists()] == []
    assert [path for path in remaining if not path.exists()] == []


@contextlib.contextmanager
def process_with_folder(program: str, place: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that runs `program`, and its temporary folder in `place`, once it is printed."""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**processes.environment(os.environ), "TMPDIR": str(place)},
    )
    try:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
    finally:
        process.kill()
        process.communicate()


HOLD = """
from gan_runtime.records import processes
with processes.scratch_folder() as folder:
    (folder / "weights.tmp").touch()
    print(folder, flush=True)
    input()
"""


def test_temporary_folder_is_removed_once_its_process_is_killed(
    new_run: Callable[..., RunDir], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock decides, not a pid: the process can be in another container that shares /tmp."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = new_run("quick-0001")
    with process_with_folder(HOLD, tmp_path) as (trainer, held):
        recovery.clean_run(run)
        assert (held / "weights.tmp").exists()
        trainer.kill()
        os.waitid(os.P_PID, trainer.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        recovery.clean_run(run)
        assert not held.exists()


REMOVE = """
import pathlib, shutil
from gan_runtime.records import processes
def rmtree(folder, **_):
    for file in pathlib.Path(folder).iterdir():
        file.unlink()
    print(folder, flush=True)
    input()
shutil.rmtree = rmtree
with processes.scratch_folder() as folder:
    (folder / "weights.tmp").touch()
"""


def test_temporary_folder_of_a_process_killed_while_it_removes_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with process_with_folder(REMOVE, tmp_path) as (ending, held):
        processes.remove_abandoned_scratch_folders()
        assert held.exists(), "its process still removes it"
        ending.kill()
        ending.wait()
        processes.remove_abandoned_scratch_folders()
        assert not held.exists()


def test_a_trainer_killed_after_its_last_line_leaves_no_temporary_folder(
    new_run: Callable[..., RunDir], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run has ended, so no end of a trainer is noted."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    starter, attempt = idle(), Attempt(new_run("quick-0001"), 1, "cpu")
    with starter.claim(attempt) as claim:
        starter.start(attempt, claim)
    with process_with_folder(HOLD, place) as (_, held):
        pass
    assert starter.busy_accelerators([]) == {"cpu"}
    assert held.exists()
    starter.end(attempt)
    while starter.alive(attempt):
        pass
    assert starter.busy_accelerators([]) == set()
    assert not held.exists()


def test_partial_files_are_removed_while_a_run_has_no_trainer(
    new_run: Callable[..., RunDir],
) -> None:
    run = new_run("quick-0001")
    for place in (run.samples, run.checkpoints, run.snapshots):
        place.mkdir()
        (place / "epoch-00001.part").write_bytes(b"half")
        (place / "epoch-00001.png").write_bytes(b"whole")
    (run.path / ".process.json.4711").write_text("{")
    (run.path / ".worker.lock").touch()
    recovery.clean_run(run)
    names = sorted(path.name for path in run.path.rglob("*") if path.is_file())
    assert names == [
        ".worker.lock",
        *["epoch-00001.png"] * 3,
        "journal-supervisor.jsonl",
        "spec.json",
    ]


def films(run: RunDir, home_clock: float) -> list[Path]:
    """Creates old films with and without a record, partial files, and a new film."""
    run.films.mkdir()
    ages = {"iterate-0001-naive.npz": 1e6, "iterate-0001-whole.npz": 1e6, "old.part": 1e6}
    for name, seconds_ago in {**ages, "new.part": 0.0, "iterate-0002-naive.npz": 0.0}.items():
        (run.films / name).write_bytes(b"frames")
        os.utime(run.films / name, (home_clock - seconds_ago, home_clock - seconds_ago))
    record = measured_flows.iteration(way="naive")
    journal.append(
        run.earlier_journal("flow"),
        1,
        record.model_copy(update={"frames": "flow/iterate-0001-naive.npz"}),
    )
    return sorted(run.films.iterdir())


def iterating(home: Home, run_id: str) -> None:
    """Creates a running job whose process is this one."""
    job = JobDir(home.jobs / "iterate-0002")
    job.path.mkdir(parents=True)
    job.write_request(JobRequest(kind="iterate", options={"run_id": run_id}, asker="a test"))
    job.write_process(os.getpid())


def test_owner_removes_unrecorded_films_even_of_ended_runs(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    ended, busy = new_run("quick-0001"), new_run("quick-0002")
    journal.append(
        ended.supervisor_journal, 1, StatusChange(status="finished", reason="all epochs")
    )
    clock = home.runs.stat().st_mtime
    films(ended, clock)
    there = films(busy, clock)
    iterating(home, "quick-0002")
    busy.request_stop("a test")
    Runtime.open(home).close()
    names = sorted(path.name for path in ended.films.iterdir())
    assert names == ["iterate-0001-naive.npz", "iterate-0002-naive.npz", "new.part"]
    assert sorted(busy.films.iterdir()) == there, "a job is alive"
