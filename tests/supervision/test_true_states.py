"""A live run that does not train is reported, and a lost one may resume automatically."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import PhaseSeconds, Scalars, StatusChange
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir, TrainerProcess, latest_status
from gan_runtime.records.states import Reason
from gan_runtime.store import queries
from gan_runtime.supervision import recovery
from gan_runtime.supervision.starters import HANDSHAKE_SECONDS
from tests.support.asking import ask_of
from tests.support.fake_trainers import STEPS_PER_EPOCH, FakeTrainers
from tests.support.toy_owner import GRACE_SECONDS, Owner
from tests.support.trainers import idle, processes_of

NewRun = Callable[..., RunDir]
Wait = Callable[..., Any]
SOMEBODY = operator("a test")
TOY = {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 2_000, "precision": "float32"}


def begin(run: RunDir, call_s: float, at: Callable[[float], Any]) -> None:
    """Records calls of `call_s` seconds each; the trainer is this process, which is alive."""
    run.write_process(TrainerProcess.of(os.getpid(), attempt=1))
    calls = [
        Scalars(
            at=at(call_s * step),
            epoch=1,
            first_step=step,
            wall_s=[step],
            values={"loss_generator": [0.5]},
        )
        for step in range(1, 6)
    ]
    journal.append(
        run.trainer_journal(), 1, StatusChange(status="running", reason="training"), *calls
    )


# ---- stalled runs --------------------------------------------------------------------------------


def test_a_stalled_trainer_is_reported_once_and_again_when_it_continues(
    home: Home, new_run: NewRun, at: Callable[[float], Any]
) -> None:
    run = new_run("quick-0001")
    begin(run, 10.0, at)
    owner = Owner(home)
    for seconds in (0.0, 199.0):  # 20 calls of 10 s
        owner.at(seconds)
    assert owner.messages(run, recovery.STALLED) == []
    for seconds in (201.0, 300.0):
        owner.at(seconds)
    [event] = owner.messages(run, recovery.STALLED)
    assert (
        event
        == "The run has stalled: no new numbers for 201 s, while a call usually takes 10 s. Check"
        " its log; stop it, or kill its process and resume the run."
    )
    assert queries.stall_event(owner.store, run.run_id) == event
    assert owner.status(run) == "running"
    later = Scalars(
        at=journal.now() + timedelta(seconds=1),
        epoch=1,
        first_step=6,
        wall_s=[6.0],
        values={"loss_generator": [0.5]},
    )
    journal.append(run.trainer_journal(), 1, later)
    owner.at(301.0)
    assert owner.messages(run, recovery.GOES_ON) == [
        "The run continues: its journal has new lines."
    ]
    assert queries.stall_event(owner.store, run.run_id) == ""


@pytest.mark.parametrize(
    ("call_s", "probe_s", "quiet_until"), [(0.1, 0.0, 119.0), (1.0, 90.0, 269.0)]
)
def test_two_minutes_or_work_at_the_end_of_an_epoch_are_not_a_stall(
    home: Home,
    new_run: NewRun,
    at: Callable[[float], Any],
    call_s: float,
    probe_s: float,
    quiet_until: float,
) -> None:
    run = new_run("quick-0001")
    begin(run, call_s, at)
    journal.append(run.trainer_journal(), 1, PhaseSeconds(phase="probe", seconds=probe_s))
    owner = Owner(home)
    owner.at(0.0)
    owner.at(quiet_until)
    assert owner.messages(run, recovery.STALLED) == []
    owner.after(2.0)
    assert len(owner.messages(run, recovery.STALLED)) == 1


@pytest.mark.parametrize(("option", "end"), [("restart", "lost"), ("stop", "stopped")])
def test_frozen_trainer_is_ended_when_its_options_request_it(
    home: Home, new_run: NewRun, option: str, end: str
) -> None:
    """After a restart, it resumes automatically from its checkpoint."""
    run, trainers = new_run("quick-0001", **TOY, still_action=option), FakeTrainers()
    owner = Owner(home, trainers.starter)
    owner.at(0.0)
    trainers.of(run).trains(7)
    trainers.of(run).freezes()
    owner.after(0.0)
    owner.after(recovery.LEAST_STALL_SECONDS - 1)
    assert owner.messages(run, recovery.STALLED) == []
    owner.after(2.0)  # the alarm and its action
    assert len(owner.messages(run, recovery.STALLED)) == 1
    owner.after(GRACE_SECONDS + 1.0)  # grace period of a stop
    owner.after(0.0)
    assert (owner.status(run), trainers.living()) == (end, [])
    if option == "restart":
        assert latest_status(run).code is Reason.STALLED
        assert owner.note(run).startswith("the trainer was killed because it stalled (")
        owner.after(recovery.PAUSES_SECONDS[0] + 1)
        assert (trainers.of(run).attempt.number, trainers.of(run).step) == (2, STEPS_PER_EPOCH)
        trainers.of(run).trains(8)
        owner.after(0.0)
        assert owner.status(run) == "running"


# ---- lost runs -----------------------------------------------------------------------------------


def lose(run: RunDir) -> None:
    """Records the loss of the newest attempt, whose process is gone."""
    attempt = latest_status(run).attempt
    journal.append(
        run.supervisor_journal, attempt, StatusChange(status="lost", reason="gone without a word")
    )
    run.announce()


def test_lost_run_resumes_three_times_with_growing_pauses_if_enabled(
    home: Home, new_run: NewRun
) -> None:
    asks, asks_not = new_run("quick-0001", resume_lost="yes"), new_run("quick-0002")
    for run in (asks, asks_not):
        lose(run)
    trainers = FakeTrainers()
    owner = Owner(home, trainers.starter)
    for times, pause_s in enumerate(recovery.PAUSES_SECONDS):
        owner.after(0.0)
        owner.after(pause_s - 1.0)
        assert latest_status(asks).status == "lost"
        assert recovery.times_resumed(asks) == times
        owner.after(2.0)
        assert latest_status(asks).attempt == times + 2
        trainers.of(asks).dies()
        owner.after(0.0)
        assert latest_status(asks).status == "lost"
    owner.after(10_000.0)
    owner.after(10_000.0)
    assert latest_status(asks).attempt == 4
    assert owner.messages(asks, recovery.NOT_RESUMED) == [
        "The run was resumed automatically 3 times and is lost again: check its log before you"
        " resume it."
    ]
    assert latest_status(asks_not).attempt == 1
    ask_of(asks, actor=SOMEBODY).resume(asks.run_id)
    assert recovery.times_resumed(asks) == 0, "a user has checked, so it is counted anew"


def test_stopped_or_failed_run_does_not_resume_automatically(home: Home, new_run: NewRun) -> None:
    runs = [new_run(f"quick-000{number}", resume_lost="yes") for number in (1, 2)]
    for run, status in zip(runs, ("stopped", "failed"), strict=True):
        journal.append(run.supervisor_journal, 1, StatusChange(status=status, reason="a test"))
    owner = Owner(home)
    owner.at(0.0)
    owner.at(10_000.0)
    assert [latest_status(run).status for run in runs] == ["stopped", "failed"]


def test_lost_run_that_cannot_resume_reports_it_once(home: Home, new_run: NewRun) -> None:
    """It has scalars but no checkpoint, and was not trained here."""
    run = new_run("quick-0001", resume_lost="yes")
    numbers = Scalars(epoch=1, first_step=1, wall_s=[1.0], values={"loss_generator": [0.5]})
    journal.append(run.trainer_journal(), 1, numbers)
    lose(run)
    owner = Owner(home)
    for seconds in (0.0, 11.0, 100.0):
        owner.at(seconds)
    [event] = owner.messages(run, recovery.NOT_RESUMED)
    assert event.startswith("The run cannot resume automatically: run quick-0001 has no checkpoint")
    Owner(home).at(100.0)
    Owner(home).at(200.0)
    assert (
        len(
            [
                record
                for record in journal.read_all(run.supervisor_journal)
                if record.kind == "event"
            ]
        )
        == 1
    )


# ---- dead trainers and workers -------------------------------------------------------------------


def test_active_runs_are_lost_within_15_seconds_of_a_machine_reset(
    home: Home, new_run: NewRun
) -> None:
    runs = [new_run(f"quick-000{number}") for number in (1, 2, 3)]
    for run, status in zip(runs, ("starting", "compiling", "running"), strict=True):
        journal.append(
            run.supervisor_journal, 1, StatusChange(status=status, reason="before the reset")
        )
    for run in runs[1:]:
        run.write_process(
            TrainerProcess(pid=os.getpid(), started=1.0, born="another-boot:1", attempt=1)
        )
    owner = Owner(home)
    owner.at(0.0)
    assert [owner.status(run) for run in runs] == [
        "starting",
        "lost",
        "lost",
    ], "who never said its pid may come yet"
    assert HANDSHAKE_SECONDS <= 14.0
    owner.at(14.0)
    assert [owner.status(run) for run in runs] == ["lost"] * 3


def test_workers_are_ended_if_their_launcher_is_killed_early(
    home: Home, new_run: NewRun, wait_until: Wait
) -> None:
    run = new_run("quick-0001", **TOY, workers=2)
    owner = Owner(home, idle)
    try:
        owner.at(0.0)
        wait_until(lambda: len(processes_of(run)) == 3, "launcher and workers are there")
        processes_of(run)[0].kill()
        wait_until(lambda: owner.after(0.0) or owner.status(run) == "lost", "the loss is noticed")
        wait_until(lambda: processes_of(run) == [], "no worker is left", 10)
    finally:
        for process in processes_of(run):
            process.kill()


def test_run_whose_trainer_cannot_start_reports_why_immediately(
    home: Home, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    run.log.mkdir()  # in place of the trainer's output file
    owner = Owner(home)
    owner.at(0.0)
    assert owner.status(run) == "lost"
    assert (
        owner.note(run)
        == "the trainer could not start (Is a directory): fix this, then resume the run"
    )


def test_trainer_that_exits_without_a_record_is_lost_with_its_log_end(
    home: Home, new_run: NewRun, wait_until: Wait
) -> None:
    run = new_run("quick-0001", **TOY)
    run.worker_lock().mkdir()  # in place of a file that it needs before its journal
    owner = Owner(home)
    owner.at(0.0)
    wait_until(lambda: owner.after(0.0) or owner.status(run) == "lost", "the loss is noticed")
    assert "exit code 1; its log ends: " in owner.note(run)
    assert ".worker.lock" in owner.note(run)


def test_trainer_that_finds_a_file_in_place_of_a_python_module_names_the_file(
    home: Home, new_run: NewRun, wait_until: Wait, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow = tmp_path / "modules" / "platform.py"
    shadow.parent.mkdir()
    shadow.write_text("import turtle_game\n", encoding="utf-8")
    run = new_run("quick-0001", **TOY)
    monkeypatch.setenv("PYTHONPATH", str(shadow.parent))
    owner = Owner(home)
    owner.at(0.0)
    wait_until(lambda: owner.after(0.0) or owner.status(run) == "lost", "the loss is noticed")
    assert "No module named 'turtle_game'" in owner.note(run)
    assert f"{shadow} replaces the module of Python with that name: rename it" in owner.note(run)
