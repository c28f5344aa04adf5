"""Commands that change runs, on real folders."""

from __future__ import annotations

import pkgutil
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from types import SimpleNamespace

import pytest

from gan_runtime.base.errors import HomeError, RunStateError, SpecError, UnknownRunError
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import Home, command_line, is_run_name, next_rank
from gan_runtime.records.journal import Created, Renamed, StatusChange
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir, TrainerProcess, latest_status
from gan_runtime.spec import RunSpec
from gan_runtime.supervision import queue, trash
from tests.support.asking import ask, ask_of

NewRun = Callable[..., RunDir]


def names(run: RunDir) -> list[str]:
    return [
        record.name
        for record in journal.read_all(run.supervisor_journal)
        if isinstance(record, Renamed)
    ]


def test_a_run_can_be_renamed_repeatedly(new_run: NewRun) -> None:
    run = new_run("quick-0001")
    ask_of(run).rename(run.run_id, "first try")
    ask_of(run).rename(run.run_id, "v1.2_b-3")
    assert names(run) == ["first try", "v1.2_b-3"]


@pytest.mark.parametrize("name", ["", " ", "   ", "two\n", "\n", "a/b", "über", "x" * 61])
def test_an_invalid_run_name_is_refused(new_run: NewRun, name: str) -> None:
    run = new_run("quick-0001")
    with pytest.raises(SpecError) as refused:
        ask_of(run).rename(run.run_id, name)
    assert refused.value.by_field()["name"].startswith(
        f"name is {name!r}, but allowed is text of up to 60 letters"
    )
    assert names(run) == []


def test_submitting_on_a_full_disk_leaves_no_run(
    home: Home, host: Host, files_end_at: Callable[[int], AbstractContextManager[None]]
) -> None:
    with (
        files_end_at(0),
        pytest.raises(
            HomeError, match=r"spec\.json cannot be written \(File too large\): check the disk"
        ),
    ):
        ask(home, host).submit(RunSpec())
    assert list(home.runs.iterdir()) == []


# ---- requesters and queue order ------------------------------------------------------------------


def test_a_run_records_who_requested_each_change(home: Home, host: Host) -> None:
    run = ask(home, host, actor=operator("anna")).submit(RunSpec())
    ask_of(run, actor=operator("ben")).rename(run.run_id, "mine")
    ask_of(run, actor=operator("carl")).stop(run.run_id)
    journal.append(run.supervisor_journal, 1, StatusChange(status="stopped", reason="on request"))
    assert run.stop_file.read_text() == "carl"
    ask_of(run, actor=operator("dora")).resume(run.run_id)
    askers = [
        (record.kind, record.asker)
        for record in journal.read_all(run.supervisor_journal)
        if isinstance(record, Created | StatusChange | Renamed) and record.asker
    ]
    assert askers == [("created", "anna"), ("renamed", "ben"), ("status", "dora")]


def test_queue_ranks_increase_even_if_the_clock_goes_back(home: Home) -> None:
    noon, an_hour_before = 1_767_268_800.0, 1_767_265_200.0
    ranks = [next_rank(home, clock=lambda now=now: now) for now in (noon, an_hour_before, 0.0)]
    assert ranks == [noon + 1, noon + 2, noon + 3]


# ---- resuming ------------------------------------------------------------------------------------


@pytest.fixture
def imported(new_run: NewRun) -> RunDir:
    """A stopped run with numbers but no checkpoint, as loaded from a bundle."""
    run = new_run("quick-0001")
    numbers = journal.Scalars(epoch=1, first_step=1, wall_s=[1.0], values={"loss_generator": [0.5]})
    journal.append(
        run.trainer_journal(),
        1,
        numbers,
        StatusChange(status="stopped", reason="stopped on request"),
    )
    return run


def test_a_run_without_a_checkpoint_is_not_resumed_and_keeps_its_numbers(
    imported: RunDir, home: Home
) -> None:
    before = imported.supervisor_journal.read_bytes()
    with pytest.raises(RunStateError) as refused:
        ask_of(imported).resume(imported.run_id)
    assert (
        str(refused.value)
        == "run quick-0001 has no checkpoint to resume from: train its options again with"
        f" `{command_line()} train --spec {imported.spec_path} --home {home.path}`."
    )
    assert imported.supervisor_journal.read_bytes() == before


def test_a_run_without_measurements_can_restart_from_scratch(new_run: NewRun) -> None:
    run = new_run("quick-0001")
    journal.append(
        run.supervisor_journal, 1, StatusChange(status="stopped", reason="taken from the queue")
    )
    ask_of(run).resume(run.run_id)
    assert latest_status(run).attempt == 2


def test_a_run_killed_before_its_first_checkpoint_restarts_from_scratch(
    imported: RunDir, new_run: NewRun
) -> None:
    """The run was killed in its first epoch, or after it while the checkpoint was being written.

    An imported run was trained elsewhere.
    """
    run = new_run("quick-0002")
    numbers = journal.Scalars(epoch=1, first_step=1, wall_s=[1.0], values={"loss_generator": [0.5]})
    epoch = journal.EpochDone(epoch=1, step=1, seconds=1.0, images=64, images_per_s=64.0)
    journal.append(run.trainer_journal(), 1, numbers, epoch)
    journal.append(
        run.supervisor_journal, 1, StatusChange(status="lost", reason="killed by signal 9")
    )
    assert "no checkpoint" in queue.resume_refusal(run)
    for trained_here in (run, imported):
        trained_here.write_process(TrainerProcess(pid=1, started=1.0, attempt=1))
    ask_of(run).resume(run.run_id)
    assert latest_status(run).attempt == 2
    assert "no checkpoint" in queue.resume_refusal(imported), (
        "it has stopped, and then it has saved"
    )


def test_a_run_with_a_checkpoint_can_be_resumed(imported: RunDir) -> None:
    imported.checkpoints.mkdir()
    (imported.checkpoints / "best.safetensors").touch()
    ask_of(imported).resume(imported.run_id)
    assert latest_status(imported).status == "queued"


def test_a_full_disk_is_reported_before_resume_or_submit(
    home: Home, host: Host, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("quick-0001")
    journal.append(
        run.supervisor_journal, 1, StatusChange(status="stopped", reason="taken from the queue")
    )
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3_000_000))
    with pytest.raises(
        HomeError,
        match=(
            rf"the disk of {home.path} has 3 MB left, but resuming the run needs 20 MB: free"
            r" space"
        ),
    ):
        ask_of(run).resume(run.run_id)
    with pytest.raises(HomeError, match="has 3 MB left"):
        ask(home, host).submit(RunSpec())
    assert latest_status(run).status == "stopped"
    assert home.run_dirs() == [run]


# ---- numbers -------------------------------------------------------------------------------------


def test_run_numbers_continue_across_presets(home: Home, host: Host) -> None:
    run_ids = [
        ask(home, host).submit(RunSpec(), preset).run_id for preset in ("quick", "", "quick")
    ]
    assert run_ids == ["quick-0001", "run-0002", "quick-0003"]


def test_the_number_of_a_deleted_run_is_never_reused(home: Home, host: Host) -> None:
    ask(home, host).submit(RunSpec())
    newest = ask(home, host).submit(RunSpec())
    journal.append(
        newest.supervisor_journal, 1, StatusChange(status="stopped", reason="taken from the queue")
    )
    ask_of(newest).delete(newest.run_id)
    assert ask(home, host).submit(RunSpec()).run_id == "run-0003"


def test_the_number_of_a_manually_removed_folder_is_never_reused(home: Home, host: Host) -> None:
    shutil.rmtree(ask(home, host).submit(RunSpec()).path)
    assert ask(home, host).submit(RunSpec()).run_id == "run-0002"


@pytest.mark.parametrize(
    "name", [".new-56075943", ".deleted-quick-0008", "quick-٣٣٣٣", "-0008", "quick-9999999999"]
)
def test_folders_that_are_not_runs_do_not_affect_numbering(
    home: Home, host: Host, new_run: NewRun, name: str
) -> None:
    """The random suffix of a folder that is being created may be eight digits."""
    new_run("quick-0007")
    (home.runs / name).mkdir()
    assert ask(home, host).submit(RunSpec(), "quick").run_id == "quick-0008"


@pytest.mark.parametrize("name", ["quick-0001", "paper-quick-0001", "my.run_2", "7"])
def test_names_from_submit_and_bundles_are_run_names(name: str) -> None:
    assert is_run_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        ".owner.lock",
        ".new-1",
        "-0001",
        "a b",
        "a/b",
        "ü-0001",
        "quick-0001\n",
        "x" * 101,
    ],
)
def test_other_folder_names_are_not_run_names(name: str) -> None:
    assert not is_run_name(name)


@pytest.mark.parametrize("content", [b"", b"what?", b"\xff"])
def test_numbering_continues_after_folders_if_the_last_number_is_lost(
    home: Home, host: Host, new_run: NewRun, content: bytes
) -> None:
    new_run("quick-0007")
    home.last_number_file.write_bytes(content)
    assert ask(home, host).submit(RunSpec()).run_id == "run-0008"


def test_concurrently_submitted_runs_get_unique_numbers(home: Home, host: Host) -> None:
    with ThreadPoolExecutor(8) as pool:
        run_ids = list(pool.map(lambda _: ask(home, host).submit(RunSpec()).run_id, range(16)))
    assert sorted(run_ids) == [f"run-{number:04d}" for number in range(1, 17)]


# ---- concurrent users ----------------------------------------------------------------------------

CHANGES_OF_A_RUN: dict[str, Callable[[RunDir], object]] = {
    "delete": lambda run: ask_of(run).delete(run.run_id),
    "resume": lambda run: ask_of(run).resume(run.run_id),
    "rename": lambda run: ask_of(run).rename(run.run_id, "another"),
    "mark": lambda run: ask_of(run).mark([run.run_id], remark="mine"),
    "stop": lambda run: ask_of(run).stop(run.run_id),
}


@pytest.mark.parametrize("change", CHANGES_OF_A_RUN.values(), ids=list(CHANGES_OF_A_RUN))
def test_changing_a_trashed_run_suggests_restoring_it(
    new_run: NewRun, change: Callable[[RunDir], object]
) -> None:
    run = new_run("quick-0001")
    trash.put(run, "somebody else")
    with pytest.raises(UnknownRunError, match="run quick-0001 is in the trash: restore it"):
        change(run)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("resume", "gan_runtime.supervision.queue.next_rank"),
        ("resume", "gan_runtime.supervision.queue.changed_rates"),
        ("delete", "gan_runtime.supervision.trash.free_place"),
        ("delete", "gan_runtime.supervision.trash.disk.used_bytes"),
        ("delete", "gan_runtime.commands.runs.run_folder.marks_of"),
        ("mark", "gan_runtime.commands.runs.latest_status"),
    ],
)
def test_a_run_deleted_during_a_change_is_reported_as_deleted(
    new_run: NewRun, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    """Another user deletes the run during the change, at several points."""
    run = new_run("quick-0001")
    journal.append(run.supervisor_journal, 1, StatusChange(status="stopped", reason="on request"))
    module, _, function = place.rpartition(".")
    real = pkgutil.resolve_name(module)
    original = getattr(real, function)

    def with_a_deletion(*arguments: object) -> object:
        answer = original(*arguments)
        run.path.rename(run.path.with_name(".deleted"))
        return answer

    monkeypatch.setattr(real, function, with_a_deletion)
    with pytest.raises(
        UnknownRunError, match="run quick-0001 does not exist anymore: another user has deleted it"
    ):
        CHANGES_OF_A_RUN[name](run)
    assert not run.path.exists()
