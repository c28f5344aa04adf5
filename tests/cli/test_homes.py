"""Homes that are owned, damaged, full or not folders, and `rebuild`."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import Result

from gan_runtime.base.errors import HomeError, HomeInUseError
from gan_runtime.cli import training
from gan_runtime.device_locks.locks import FOLDER_VARIABLE
from gan_runtime.records.home import Home
from gan_runtime.store.ingest import Ingestor
from gan_runtime.supervision import owner
from tests.support.command_line import answer, refused
from tests.support.stored_tables import contents
from tests.support.trained_home import SCALARS, TINY


def test_rebuild_gives_the_same_rows(command: Callable[..., Result], trained_copy: Path) -> None:
    before = contents(Home(trained_copy))
    (trained_copy / "results.duckdb").unlink()
    rows = answer(command("rebuild", "--json", home=trained_copy))["rows"]
    assert (rows["runs"], rows["scalars"], rows["epochs"], rows["samples"]) == (1, SCALARS, 2, 2)
    assert contents(Home(trained_copy)) == before


def test_rebuild_ignores_the_wal_of_a_lost_database(
    command: Callable[..., Result], trained_copy: Path
) -> None:
    file = trained_copy / "results.duckdb"
    before = contents(Home(trained_copy))
    file.unlink()
    killed = (
        f"import duckdb, os; c = duckdb.connect({str(file)!r}); c.execute('CREATE TABLE stray (x"
        " INT)'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", killed], check=True)
    file.unlink()
    assert (trained_copy / "results.duckdb.wal").exists()
    answer(command("rebuild", "--json", home=trained_copy))
    assert contents(Home(trained_copy)) == before


def test_rebuild_renames_a_damaged_database(
    command: Callable[..., Result], trained_copy: Path
) -> None:
    before = contents(Home(trained_copy))
    (trained_copy / "results.duckdb").write_bytes(b"not a database" * 1000)
    (trained_copy / "results.duckdb.wal").write_bytes(b"its log")
    damaged = Path(answer(command("rebuild", "--json", home=trained_copy))["damaged"])
    assert damaged.read_bytes().startswith(b"not a database")
    assert damaged.with_name(f"{damaged.name}.wal").read_bytes() == b"its log"
    assert contents(Home(trained_copy)) == before
    assert not list(trained_copy.glob("results.duckdb.new-*"))


def test_rebuild_is_refused_while_the_home_is_in_use(
    command: Callable[..., Result], trained: Path
) -> None:
    before = (trained / "results.duckdb").read_bytes()
    lock = owner.acquire(Home(trained))
    try:
        assert f"is in use by process {os.getpid()}" in refused(command("rebuild", home=trained))
    finally:
        lock.release()
    assert (trained / "results.duckdb").read_bytes() == before


def test_rebuild_does_not_replace_a_named_pipe(command: Callable[..., Result], home: Home) -> None:
    os.mkfifo(home.database)
    assert "results.duckdb is a named pipe, not a regular file" in refused(
        command("rebuild", home=home.path)
    )
    assert home.database.is_fifo()


@pytest.mark.usefixtures("known_host")
@pytest.mark.parametrize("words", [["train", *TINY], ["rebuild"]], ids=["train", "rebuild"])
def test_a_database_open_in_another_process_is_refused(
    home: Home, command: Callable[..., Result], words: list[str]
) -> None:
    hold = (
        f"import duckdb, sys; c = duckdb.connect({str(home.database)!r}); print('held',"
        " flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        before = home.database.read_bytes()
        sentence = refused(command(*words, home=home.path))
        assert home.database.read_bytes() == before
        holder.communicate()
    assert f"is open in process {holder.pid}" in sentence
    assert home.run_dirs() == []


def test_an_invalid_database_file_is_renamed_and_reported(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.database.write_bytes(b"not a database" * 1000)
    with training.Supervision(home) as supervision:
        assert supervision.runtime is not None
    (old,) = home.path.glob("results.duckdb.damaged-*")
    assert old.read_bytes() == b"not a database" * 1000
    stderr = " ".join(capsys.readouterr().err.split())
    assert (
        f"It was renamed to {old.name}. The new database has 0 runs, read from their journals."
        in stderr
    )


def test_a_full_disk_is_named_by_its_folder(
    command: Callable[..., Result], trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise duckdb.IOException('Could not write file "x": No space left on device')

    before = contents(Home(trained))
    monkeypatch.setattr(Ingestor, "catch_up", full)
    monkeypatch.setattr(Ingestor, "catch_up_run", full)
    sentence = "the disk of {} is full: free space on it; unsaved data was lost."
    assert refused(command("rebuild", home=trained)) == sentence.format(trained)
    assert refused(command("runs", home=trained)) == sentence.format(tempfile.gettempdir())
    assert contents(Home(trained)) == before


def test_a_command_out_of_memory_reports_it(
    command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_all(*_: object, **__: object) -> None:
        raise MemoryError

    for module in (
        "gan_runtime.commands.Commands.rebuild",
        "gan_runtime.cli.runs.ingest.store_of",
    ):
        monkeypatch.setattr(module, take_all)
    for words in (["rebuild"], ["runs"], ["sql", "SELECT 1"]):
        assert refused(command(*words)).startswith(
            "there is too little memory for this: end other programs"
        )


@pytest.mark.usefixtures("known_host")
def test_a_home_that_cannot_be_written_is_refused(
    command: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    below_a_file = tmp_path / "file" / "home"  # tests may run as root, which ignores permissions
    for words in (["train"], ["train", "--detach"], ["rebuild"]):
        assert refused(command(*words, home=below_a_file)).startswith(
            f"home {below_a_file} cannot be written (Not a directory)"
        )


@pytest.fixture
def nfs_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which locking fails as on such a mount."""
    mount, flock = tmp_path / "mount", fcntl.flock
    mount.mkdir()

    def fail_on_the_mount(file: Any, operation: int) -> None:
        number = file if isinstance(file, int) else file.fileno()
        if Path(f"/proc/self/fd/{number}").readlink().is_relative_to(mount):
            raise OSError(errno.ENOLCK, "No locks available")
        flock(number, operation)

    monkeypatch.setattr(fcntl, "flock", fail_on_the_mount)
    return mount


@pytest.mark.usefixtures("known_host")
def test_a_home_without_locks_is_refused_with_the_remedy(
    command: Callable[..., Result], nfs_without_locks: Path
) -> None:
    for words in (["train"], ["train", "--detach"], ["rebuild"]):
        assert refused(command(*words, home=nfs_without_locks / "home")).startswith(
            f"{nfs_without_locks / 'home'} cannot be locked (No locks available), as its file"
            " system has no locks: mount it with them"
        )
    unmounted = HomeError.not_written(
        nfs_without_locks, OSError(errno.ENOLCK, "No locks available")
    )
    assert "lost" not in str(unmounted)


@pytest.mark.usefixtures("known_host")
def test_train_is_refused_where_no_device_can_be_locked(
    command: Callable[..., Result],
    place: Path,
    nfs_without_locks: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would wait forever for its device."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(nfs_without_locks / "locks"))
    sentence = refused(command("train", "--preset", "quick", home=place))
    assert sentence.startswith(
        f"the locks of this host's devices cannot be stored in {nfs_without_locks / 'locks'} (No"
        " locks available: its file system has no locks): check that folder, or set"
    )
    assert Home(place).run_dirs() == []
    assert not owner.is_owned(Home(place))


@pytest.mark.parametrize("place", ["~nosuch-user/x", "/tmp/" + "x" * 300, "/tmp" + "/x" * 3000])
def test_an_impossible_home_path_is_refused(command: Callable[..., Result], place: str) -> None:
    for words in (["runs"], ["train", "--detach"]):
        sentence = refused(command(*words, home=Path(place)))
        assert re.match(
            r"home '.{5,80} cannot be used \(.+\): choose another folder with --home DIR or",
            sentence,
        )


def test_a_home_has_one_owner(home: Home) -> None:
    assert not owner.is_owned(home)
    lock = owner.acquire(home)
    assert owner.is_owned(home)
    begin = time.monotonic()
    with pytest.raises(HomeInUseError, match=f"is in use by process {os.getpid()}"):
        owner.acquire(home)
    assert time.monotonic() - begin < 5
    lock.release()
    assert not owner.is_owned(home)


def test_an_unwritable_owner_lock_raises_and_leaves_no_owner(home: Home) -> None:
    home.owner_lock.mkdir()
    with pytest.raises(
        HomeError, match=r"\.owner\.lock cannot be written \(Is a directory\): check the disk"
    ):
        owner.acquire(home)
    assert owner.holder(home) is None


def test_reading_a_missing_home_creates_nothing(
    place: Path, command: Callable[..., Result]
) -> None:
    assert command("runs").stdout.startswith("no runs yet")
    assert answer(command("runs", "--json")) == []
    assert answer(command("sql", "SELECT count(*) AS runs FROM runs", "--json")) == [{"runs": 0}]
    assert "there is no such folder" in refused(command("show", "run-0001"))
    assert not place.exists()


def test_an_unreadable_run_is_named_and_skipped(
    place: Path, command: Callable[..., Result]
) -> None:
    bad = place / "runs" / "quick-0001"
    bad.mkdir(parents=True)
    (bad / "journal-supervisor.jsonl").write_text('{"kind": "created"}\n')
    (place / "runs" / "\x1b[31mred").mkdir()
    for words in (["runs"], ["runs", "--json"]):
        stderr = command(*words).stderr.splitlines()
        assert (
            stderr[0] == "\\x1b[31mred cannot be read and is skipped: its folder has a name"
            " that no run can have."
        )
        assert stderr[1].startswith(
            "quick-0001 cannot be read and is skipped: the first line of journal-supervisor"
        )
        assert len(stderr) == 2
    assert answer(command("sql", "SELECT run_id FROM set_aside ORDER BY ALL", "--json"))[1] == {
        "run_id": "quick-0001"
    }
    for words in (["show"], ["stop"], ["resume"], ["export", "--to", str(place / "out")]):
        refused = command(*words, "quick-0001")
        assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1), refused.output
        assert "quick-0001 cannot be read" in refused.stderr
