"""Deleted runs: moved as one, listed with their remaining days, restored unchanged, and removed
only after their time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.base.errors import HomeError, RunStateError, UnknownRunError
from gan_runtime.records import journal, run_files
from gan_runtime.records.home import Home, next_number
from gan_runtime.records.journal import Renamed, StatusChange
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.store import ingest
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision import maintenance, trash
from tests.support import not_plain
from tests.support.asking import ask, ask_of

ASKER = operator("a test")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NewRun = Callable[..., RunDir]


@pytest.fixture
def run(new_run: NewRun) -> RunDir:
    """A finished run with numbers, an image, a checkpoint and its own name."""
    run_dir = new_run("quick-0001")
    numbers = journal.Scalars(
        epoch=1, first_step=1, wall_s=[1.0, 2.0], values={"loss_generator": [0.5, 0.4]}
    )
    journal.append(
        run_dir.trainer_journal(), 1, numbers, StatusChange(status="finished", reason="done")
    )
    journal.append(run_dir.supervisor_journal, 1, Renamed(name="mine"))
    for folder in (run_dir.samples, run_dir.checkpoints):
        folder.mkdir()
    (run_dir.samples / "samples-00001.png").write_bytes(b"picture")
    (run_dir.checkpoints / "step-00000002.safetensors").write_bytes(b"x" * 5_000)
    return run_dir


def files(folder: Path) -> dict[str, bytes]:
    """The content of a run's folder, except the note of its deletion."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and trash.NOTE not in path.name
    }


def rows(home: Home) -> dict[str, list[Any]]:
    """The rows of a database rebuilt from the journals."""
    store = ingest.store_of(home)
    return {
        view: store.rows(f"SELECT * FROM {view} ORDER BY ALL")
        for view in ("runs", "scalars", "samples", "events")
    }


def passed(days: float) -> datetime:
    return NOON + timedelta(days)


# ---- deletion and restoration --------------------------------------------------------------------


def test_a_deleted_run_is_restored_unchanged_from_the_trash(run: RunDir, home: Home) -> None:
    stored, stored_rows = files(run.path), rows(home)
    assert ask_of(run, actor=ASKER).delete(run.run_id) == "quick-0001"
    assert home.run_dirs() == []
    assert all(not values for values in rows(home).values())
    [binned] = trash.deleted_runs(home)
    assert (binned.run_id, binned.name, binned.status, binned.asker) == (
        "quick-0001",
        "mine",
        "finished",
        "a test",
    )
    assert binned.size_bytes is not None
    assert binned.size_bytes >= 5_000
    assert binned.days_left == pytest.approx(30, abs=0.01)
    assert ask(home, actor=ASKER).restore("quick-0001") == run
    assert files(run.path) == stored
    assert not (run.path / trash.NOTE).exists()
    assert rows(home) == stored_rows
    assert trash.deleted_runs(home) == []


def test_the_database_drops_a_deleted_run_and_regains_a_restored_one(
    run: RunDir, home: Home
) -> None:
    store = Store(home.database)
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    ask_of(run, actor=ASKER).delete(run.run_id)
    ingestor.catch_up_news()
    assert store.rows("SELECT count(*) FROM scalars") == [(0,)]
    ask(home, actor=ASKER).restore("quick-0001")
    ingestor.catch_up_news()
    assert store.rows("SELECT name, (SELECT count(*) FROM scalars) FROM runs") == [("mine", 2)]
    store.close()


def test_a_deleted_run_keeps_its_name_despite_invalid_journal_lines(
    run: RunDir, home: Home
) -> None:
    with run.supervisor_journal.open("ab") as file:
        file.write(b"what is this?\n" * (run_files.MAX_BAD_LINES + 1))
    trash.put(run, "a test")
    assert [binned.name for binned in trash.deleted_runs(home)] == ["mine"]


def test_a_deleted_queued_run_is_restored_as_stopped(new_run: NewRun, home: Home) -> None:
    waiting = new_run("quick-0001")
    ask_of(waiting, actor=ASKER).delete(waiting.run_id)
    restored = ask(home, actor=ASKER).restore("quick-0001")
    assert latest_status(restored).status == "stopped"


def test_a_running_run_cannot_be_deleted(new_run: NewRun, home: Home) -> None:
    training = new_run("quick-0001")
    journal.append(training.trainer_journal(), 1, StatusChange(status="running", reason="training"))
    with pytest.raises(
        RunStateError, match=r"run quick-0001 is running: stop it first, then delete it\."
    ):
        ask_of(training, actor=ASKER).delete(training.run_id)
    with pytest.raises(RunStateError, match="is running"):  # it started after the check
        trash.put(training, "a test")
    assert home.run_dirs() == [training]
    assert trash.deleted_runs(home) == []


def test_a_run_is_not_restored_over_a_run_of_the_same_name(
    run: RunDir, new_run: NewRun, home: Home
) -> None:
    ask_of(run, actor=ASKER).delete(run.run_id)
    again = new_run("quick-0001")
    stored = files(again.path)
    with pytest.raises(RunStateError) as refused:
        ask(home, actor=ASKER).restore("quick-0001")
    assert (
        str(refused.value)
        == "run quick-0001 cannot be restored, as another run has this name: delete that run first."
    )
    assert files(again.path) == stored
    assert ask_of(again, actor=ASKER).delete(again.run_id) == "quick-0001~2"
    assert {record.key for record in trash.deleted_runs(home)} == {"quick-0001", "quick-0001~2"}
    ask(home, actor=ASKER).restore("quick-0001~2")
    assert files(home.run_dir("quick-0001").path).keys() == stored.keys()


def test_a_run_is_kept_while_a_queued_run_needs_its_weights(
    run: RunDir, new_run: NewRun, home: Home
) -> None:
    waiting = new_run("quick-0002", start_from=f"{run.run_id}:3")
    with pytest.raises(RunStateError) as refused:
        ask_of(run, actor=ASKER).delete(run.run_id)
    assert (
        str(refused.value)
        == "run quick-0001 is needed, as run quick-0002 starts from its weights: stop quick-0002"
        " first, or wait until it trains."
    )
    waiting.checkpoints.mkdir()
    (waiting.checkpoints / "step-00000000.safetensors").touch()  # its own is enough for a resume
    ask_of(run, actor=ASKER).delete(run.run_id)
    assert [deleted.key for deleted in trash.deleted_runs(home)] == ["quick-0001"]


@pytest.mark.parametrize(
    "key", ["quick-0009", "", ".", "..", "../quick-0001", "quick-0001~", "quick-0001~x", "/etc"]
)
def test_only_runs_in_the_trash_are_restored_or_removed(run: RunDir, home: Home, key: str) -> None:
    ask_of(run, actor=ASKER).delete(run.run_id)
    with pytest.raises(UnknownRunError, match=r"is not in the trash: it contains quick-0001\."):
        ask(home, actor=ASKER).restore(key)
    with pytest.raises(UnknownRunError, match="is not in the trash"):
        ask(home, actor=ASKER).remove_for_good([key])
    assert [record.key for record in trash.deleted_runs(home)] == ["quick-0001"]


def test_looking_up_one_run_does_not_read_all_others(
    run: RunDir, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Home, "run_dirs", lambda _: pytest.fail("read every run"))
    assert home.run_dir(run.run_id) == run


def test_looking_up_a_deleted_run_points_to_the_trash(run: RunDir, home: Home) -> None:
    ask_of(run, actor=ASKER).delete(run.run_id)
    with pytest.raises(
        UnknownRunError, match="run quick-0001 is in the trash: restore it on the Runs page"
    ):
        home.run_dir("quick-0001")


def test_the_number_of_a_run_in_the_trash_is_not_used_again(new_run: NewRun, home: Home) -> None:
    ask(home, actor=ASKER).delete(new_run("quick-0007").run_id)
    home.last_number_file.unlink(missing_ok=True)
    assert next_number(home.runs) == 8


# ---- interruptions -------------------------------------------------------------------------------

CHANGING = ("os.rename", "os.remove", "os.mkdir", "open", "shutil.rmtree", "os.utime")


def killed_at(place: int, action: Callable[[], object]) -> bool:
    """Runs the action in a separate process that is killed just before its change number `place`;
    False if there are fewer.
    """
    pid = os.fork()
    if pid == 0:
        remaining = [place]

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            if event not in CHANGING or (
                event == "open" and not set(str(arguments[1])) & set("wax")
            ):
                return
            remaining[0] -= 1
            if remaining[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            action()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def whole_places(home: Home, stored: dict[str, bytes]) -> list[str]:
    """Where the run is, with all its files: "runs", "bin", or both, which would be an error."""
    places = {"runs": home.runs / "quick-0001", "bin": home.bin / "quick-0001"}
    there = {name: path for name, path in places.items() if path.exists()}
    assert all(files(path) == stored for path in there.values())
    return list(there)


def test_a_kill_during_deletion_leaves_one_complete_run(run: RunDir, home: Home) -> None:
    stored, places = files(run.path), []
    for place in range(100):
        was_killed = killed_at(place, lambda: ask_of(run, actor=ASKER).delete(run.run_id))
        [where] = whole_places(home, stored)
        places.append(where)
        if where == "runs":
            assert latest_status(run).status == "finished"
        else:
            ask(home, actor=ASKER).restore("quick-0001")
        if not was_killed:
            break
    assert places[0] == "runs"
    assert places[-1] == "bin"
    assert len(places) > 4, "it was killed nowhere"


def test_a_kill_during_restoration_leaves_one_complete_run(run: RunDir, home: Home) -> None:
    stored, places = files(run.path), []
    for place in range(100):
        ask_of(run, actor=ASKER).delete(run.run_id)
        was_killed = killed_at(place, lambda: ask(home, actor=ASKER).restore("quick-0001"))
        [where] = whole_places(home, stored)
        places.append(where)
        if where == "bin":
            assert [record.name for record in trash.deleted_runs(home)] == ["mine"]
            ask(home, actor=ASKER).restore("quick-0001")
        assert len(rows(home)["runs"]) == 1
        if not was_killed:
            break
    assert places[0] == "bin"
    assert places[-1] == "runs"


# ---- retention -----------------------------------------------------------------------------------


def test_a_run_is_removed_from_the_trash_after_thirty_days(run: RunDir, home: Home) -> None:
    trash.put(run, "a test", NOON)
    assert trash.deleted_runs(home, passed(29.0))[0].days_left == pytest.approx(1.0)
    assert trash.remove_old(home, passed(29.99)) == []
    assert [record.key for record in trash.remove_old(home, passed(30.01))] == ["quick-0001"]
    assert trash.deleted_runs(home) == []
    assert not [path for path in home.runs.rglob("*") if path.is_dir() and path != home.bin]


@pytest.mark.parametrize(
    "note",
    ["", "{", "[]", '{"deleted_at": 7, "size_bytes": null}', "[" * 100_000],
)
def test_a_run_with_an_invalid_note_stays_and_can_be_restored(
    run: RunDir, home: Home, note: str
) -> None:
    ask_of(run, actor=ASKER).delete(run.run_id)
    (home.bin / "quick-0001" / trash.NOTE).write_text(note)
    [binned] = trash.deleted_runs(home)
    assert (binned.days_left, binned.deleted_at) == (None, None)
    assert trash.remove_old(home, passed(4_000)) == []
    ask(home, actor=ASKER).restore("quick-0001")
    assert home.run_dir("quick-0001") == run


@pytest.mark.parametrize("kind", not_plain.KINDS)
def test_an_irregular_note_file_is_ignored_without_blocking(
    run: RunDir, home: Home, kind: str
) -> None:
    trash.put(run, "a test", NOON)
    not_plain.put(home.bin / run.run_id / trash.NOTE, kind)
    [binned] = trash.deleted_runs(home, passed(40))
    assert (binned.key, binned.days_left) == (run.run_id, None)


def test_maintenance_removes_expired_runs(run: RunDir, home: Home) -> None:
    trash.put(run, "a test", journal.now() - timedelta(31))
    maintenance.Maintenance(home).run_round()
    assert trash.deleted_runs(home) == []


def test_the_trash_is_emptied_on_request(run: RunDir, new_run: NewRun, home: Home) -> None:
    for deleted in (run, new_run("quick-0002")):
        ask_of(deleted, actor=ASKER).delete(deleted.run_id)
    ask(home, actor=ASKER).remove_for_good([record.key for record in trash.deleted_runs(home)])
    assert trash.deleted_runs(home) == []
    assert not list(home.runs.glob(".deleted-*"))


def test_a_run_removed_from_the_trash_concurrently_is_reported(
    run: RunDir, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ask_of(run, actor=ASKER).delete(run.run_id)
    rename = Path.rename

    def second(path: Path, target: Path) -> Path:
        rename(path, home.path / "elsewhere")  # another process was faster
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", second)
    with pytest.raises(UnknownRunError, match="run 'quick-0001' is not in the trash: it is empty"):
        ask(home, actor=ASKER).remove_for_good([key])
    with pytest.raises(UnknownRunError):
        ask(home, actor=ASKER).restore(key)


def test_a_trash_folder_that_cannot_be_emptied_is_reported(
    run: RunDir, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ask_of(run, actor=ASKER).delete(run.run_id)

    def refuse(*_: object) -> None:
        raise OSError(
            30, "Read-only file system"
        )  # root ignores permissions, and tests can run as root

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(HomeError, match="Read-only file system"):
        ask(home, actor=ASKER).remove_for_good([key])
