"""Runs that start after another run ends, in any state and across restarts, with a current note."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from gan_runtime.base.errors import RunStateError, UnknownRunError
from gan_runtime.cli.app import app
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.spec import RunSpec
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision.admission import Dependency, Readiness, RunDependencies
from gan_runtime.supervision.recovery import PAUSES_SECONDS
from tests.support.asking import ask, ask_of, ids
from tests.support.fake_trainers import FakeTrainers
from tests.support.toy_owner import Owner

NewRun = Callable[..., RunDir]
SOMEBODY = operator("a browser")
TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 2, "precision": "float32"}
LONG = {**TOY, "epochs": 2_000}


@pytest.fixture
def pair(new_run: NewRun) -> tuple[RunDir, RunDir]:
    """Two waiting runs, the later one first in the queue."""
    return new_run("quick-0001", seconds=2, **LONG), new_run("quick-0002", seconds=1, **TOY)


def ended(run: RunDir, status: str) -> None:
    """Records the end as its trainer or owner does."""
    journal.append(
        run.supervisor_journal, 1, StatusChange(status="starting", reason="starting a trainer")
    )
    journal.append(run.supervisor_journal, 1, StatusChange(status=status, reason="by hand"))  # type: ignore[arg-type]


def test_dependent_run_starts_after_the_other_ends_despite_a_restart(
    home: Home, pair: tuple[RunDir, RunDir]
) -> None:
    before, behind = pair
    trainers = FakeTrainers()
    ask_of(behind, actor=SOMEBODY).start_after([behind.run_id], Dependency(before.run_id))
    owner = Owner(home, trainers.starter)
    owner.after(0.0)
    assert trainers.run_ids() == [before.run_id], "the one behind it goes first"
    trainers.of(before).trains(2)
    assert owner.note(behind) == "starts when run quick-0001 ends, in any state"
    again = Owner(home, trainers.starter)  # as after a restart
    again.after(1.0)
    assert again.status(behind) == "queued"
    trainers.of(before).dies()
    again.after(1.0)
    assert again.status(before) == "lost"
    again.after(1.0)
    assert trainers.run_ids() == [before.run_id, behind.run_id]


@pytest.mark.parametrize(
    ("condition", "end", "starts"),
    [
        ("ended", "finished", True),
        ("ended", "stopped", True),
        ("ended", "failed", True),
        ("ended", "lost", True),
        ("ended", "deleted", True),
        ("finished", "finished", True),
        ("finished", "stopped", False),
        ("finished", "failed", False),
        ("finished", "lost", False),
        ("finished", "deleted", False),
    ],
)
def test_condition_decides_whether_each_end_starts_the_dependent_run(
    home: Home,
    pair: tuple[RunDir, RunDir],
    condition: journal.Condition,
    end: str,
    starts: bool,
) -> None:
    trainers = FakeTrainers()
    before, behind = pair
    ask_of(behind, actor=SOMEBODY).start_after(
        [behind.run_id], Dependency(before.run_id, condition)
    )
    ended(before, "finished" if end == "deleted" else end)
    if end == "deleted":
        ask_of(before, actor=SOMEBODY).delete(before.run_id)
    owner = Owner(home, trainers.starter)
    owner.after(0.0)
    owner.after(1.0)
    assert (behind.run_id in trainers.run_ids()) == starts
    if starts:
        reasons = [change.reason for _, change in journal.statuses(behind.supervisor_journal)]
        assert reasons[-2:] == ["waiting for the accelerator", "starting a trainer on cpu"]
    else:
        mended = "restore it" if end == "deleted" else "resume it"
        assert (
            owner.note(behind)
            == f"starts when run quick-0001 finishes, but that run is {end}: {mended}, or start"
            " this run without waiting"
        )
        ask_of(behind, actor=SOMEBODY).start_after([behind.run_id], None)
        owner.after(1.0)
        assert trainers.run_ids() == [behind.run_id]


def test_lost_run_that_resumes_automatically_has_not_ended(home: Home, new_run: NewRun) -> None:
    trainers = FakeTrainers()
    before, behind = new_run("quick-0001", resume_lost="yes", **LONG), new_run("quick-0002", **TOY)
    ask_of(behind, actor=SOMEBODY).start_after([behind.run_id], Dependency(before.run_id))
    ended(before, "lost")
    owner = Owner(home, trainers.starter)
    owner.after(1.0)
    assert owner.note(behind) == "starts when run quick-0001 ends, in any state"
    for pause_s in PAUSES_SECONDS:
        owner.after(pause_s + 1.0)
        owner.after(0.0)
        assert (owner.status(before), owner.note(behind)[:6]) == ("starting", "starts")
        trainers.of(before).dies()
        owner.after(0.0)
    owner.after(1.0)
    owner.after(1.0)
    assert owner.status(before) == "lost"
    assert owner.status(behind) == "starting", "nobody will resume it by itself any more"


def test_impossible_dependency_is_refused(new_run: NewRun) -> None:
    first, second, third = (
        new_run(f"quick-{number:04d}", seconds=number, **TOY) for number in (1, 2, 3)
    )
    ask_of(second, actor=SOMEBODY).start_after([second.run_id], Dependency(first.run_id))
    ask_of(third, actor=SOMEBODY).start_after([third.run_id], Dependency(second.run_id))
    with pytest.raises(RunStateError, match="run quick-0001 cannot wait for itself:"):
        ask_of(first, actor=SOMEBODY).start_after([first.run_id], Dependency(first.run_id))
    with pytest.raises(
        RunStateError, match="run quick-0003 already waits for run quick-0001, so neither"
    ):
        ask_of(first, actor=SOMEBODY).start_after([first.run_id], Dependency(third.run_id))
    with pytest.raises(UnknownRunError, match="quick-0009"):
        ask_of(first, actor=SOMEBODY).start_after([first.run_id], Dependency("quick-0009"))
    ended(first, "failed")
    with pytest.raises(RunStateError, match="run quick-0001 is failed: resume it first, or"):
        ask_of(third, actor=SOMEBODY).start_after(
            [third.run_id], Dependency(first.run_id, "finished")
        )
    with pytest.raises(
        RunStateError, match="run quick-0001 is failed: only a waiting run can wait for another run"
    ):
        ask_of(first, actor=SOMEBODY).start_after([first.run_id], Dependency(third.run_id))
    assert [latest_status(run).after for run in (first, second, third)] == [
        "",
        "quick-0001",
        "quick-0002",
    ]


def test_move_in_the_queue_keeps_the_dependency(home: Home, pair: tuple[RunDir, RunDir]) -> None:
    before, behind = pair
    ask_of(behind, actor=SOMEBODY).start_after(
        [behind.run_id], Dependency(before.run_id, "finished")
    )
    ask_of(behind).move_in_queue(behind.run_id, "down", ids([[before], [behind]]))
    state = latest_status(behind)
    assert (state.after, state.after_if) == ("quick-0001", "finished")
    assert state.reason == "starts when run quick-0001 finishes"
    assert home.runs == behind.path.parent


def test_run_can_be_submitted_to_start_after_another(
    home: Home, host: Host, new_run: NewRun
) -> None:
    before = new_run("quick-0001", **TOY)
    run = ask(home, host, actor=SOMEBODY).submit(
        RunSpec.parse(TOY), after=Dependency(before.run_id, "finished")
    )
    state = latest_status(run)
    assert (state.after, state.after_if, state.reason) == (
        "quick-0001",
        "finished",
        "starts when run quick-0001 finishes",
    )
    with pytest.raises(UnknownRunError):
        ask(home, host, actor=SOMEBODY).submit(RunSpec.parse(TOY), after=Dependency("quick-0009"))
    assert len(home.run_dirs()) == 2, "nothing was queued"


def test_command_line_sets_and_removes_a_dependency(
    home: Home, host: Host, pair: tuple[RunDir, RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    before, behind = pair

    def press(*words: str) -> str:
        result = CliRunner().invoke(app, [*words, "--home", str(home.path)], env={"COLUMNS": "160"})
        assert result.exit_code == 0, result.output
        return result.output

    output = press("queue", "after", behind.run_id, before.run_id, "--only-if-finished")
    assert "starts when run quick-0001 finishes" in output
    press("queue", "after", behind.run_id)
    assert latest_status(behind).after == ""
    words = [
        "--set",
        "workload=mlp_gan",
        "--set",
        "batch_size_global=8",
        "--after",
        "quick-0001",
        "--detach",
    ]
    press("train", *words)
    newest = home.run_dirs()[-1]
    assert (newest.run_id, latest_status(newest).after) == ("run-0003", "quick-0001")


def test_user_change_during_a_tick_is_not_reverted(home: Home, pair: tuple[RunDir, RunDir]) -> None:
    before, behind = pair
    ask_of(behind, actor=SOMEBODY).start_after([behind.run_id], Dependency(before.run_id))
    ended(before, "stopped")
    store = Store()
    Ingestor(home, store).catch_up()
    awaited = RunDependencies(home, store, lambda _: False)
    awaited.refresh([behind])
    newest = latest_status(behind)
    moved = newest.model_copy(update={"queue_rank": 7.5, "at": journal.now()})
    journal.append(behind.supervisor_journal, 1, moved)
    news = awaited.of(behind).news
    assert news is not None
    assert news.queue_rank == 7.5
    journal.append(behind.supervisor_journal, 1, moved.model_copy(update={"after": "quick-0042"}))
    assert awaited.of(behind) == Readiness(is_ready=False)  # until the owner's next scan


def test_quarantined_run_has_not_ended_and_starts_no_dependent_run(
    home: Home, pair: tuple[RunDir, RunDir]
) -> None:
    trainers = FakeTrainers()
    before, behind = pair
    ask_of(behind, actor=SOMEBODY).start_after([behind.run_id], Dependency(before.run_id))
    whole = before.supervisor_journal.read_bytes()
    before.supervisor_journal.write_bytes(b"spoiled" + whole)
    owner = Owner(home, trainers.starter)
    owner.after(1.0)
    owner.after(1.0)
    assert (trainers.run_ids(), owner.status(behind)) == ([], "queued")
    assert (
        owner.note(behind)
        == "starts when run quick-0001 ends, but that run cannot be read: repair it, or start this"
        " run without waiting"
    )
    before.supervisor_journal.write_bytes(whole)
    before.announce()
    owner.after(1.0)
    assert (trainers.run_ids(), owner.note(behind)) == (
        [before.run_id],
        "starts when run quick-0001 ends, in any state",
    )
    trainers.of(before).stops()
    owner.after(1.0)
    owner.after(1.0)
    assert trainers.run_ids()[-1] == behind.run_id


def test_temporarily_unreadable_request_raises_and_keeps_the_run_waiting(
    home: Home, pair: tuple[RunDir, RunDir]
) -> None:
    before, behind = pair
    ask_of(behind, actor=SOMEBODY).start_after([behind.run_id], Dependency(before.run_id))
    store = Store()
    Ingestor(home, store).catch_up()
    awaited = RunDependencies(home, store, lambda _: False)
    elsewhere = behind.supervisor_journal.rename(home.path / "elsewhere")
    awaited.refresh([behind])
    with pytest.raises(FileNotFoundError):
        awaited.of(behind)
    elsewhere.rename(behind.supervisor_journal)
    assert awaited.of(behind) == Readiness(is_ready=False)
