"""A disk that fills during training: one warning, then a stop while a checkpoint still fits."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gan_runtime.base import disk
from gan_runtime.base.errors import HomeError
from gan_runtime.data import loading
from gan_runtime.engines.contract import StepNumbers, WorkerStatus
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, watch
from gan_runtime.training.watch import DiskWatch
from tests.support.asking import ask, ask_of
from tests.support.counting_engine import CountingEngine, events, train

ASKER = operator("a test")
PLENTY = 10**12


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """An empty run folder."""
    return RunDir(tmp_path)


@pytest.fixture
def free_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """`free[0]`: the free bytes of every disk, which is checked at every call."""
    free = [PLENTY]
    monkeypatch.setattr(disk, "free_bytes", lambda _: free[0])
    monkeypatch.setattr(watch, "DISK_SECONDS", 0.0)
    return free


class FillingEngine(CountingEngine):
    """The disk fills during its step 7."""

    def __init__(self, free_bytes: list[int], bytes_left: int) -> None:
        super().__init__()
        self.left, self.bytes_left = free_bytes, bytes_left

    def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
        numbers = super().run(steps, stop_requested)
        if self.step >= 7:
            self.left[0] = self.bytes_left
        return numbers


def test_nearly_full_disk_stops_the_run_with_a_checkpoint_to_resume_from(
    run: RunDir, free_bytes: list[int]
) -> None:
    outcome = train(run, FillingEngine(free_bytes, 15_000_000))
    assert outcome.status == "stopped"
    assert outcome.step < 15
    assert (
        outcome.reason
        == f"stopped because the disk is nearly full after step {outcome.step} of 15; saved, can be"
        f" resumed. The disk of {run.path} has 15 MB left of the 20 MB that it needs: free some"
        " space first"
    )
    assert checkpoints.newest_step(run.checkpoints) == outcome.step
    [message] = [message for topic, message in events(run) if topic == "disk"]
    assert (
        message
        == "The disk has 15 MB left; below 20 MB this run saves and stops. Free space: empty the"
        " trash, or delete runs."
    )
    free_bytes[0] = PLENTY
    again = train(run, CountingEngine(), attempt=2)
    assert (again.status, again.step) == ("finished", 15)


class FillingWorker(FillingEngine):
    """One of several workers; another one finds the disk full."""

    def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
        """Adds what the workers agree on."""
        numbers = super().run(steps, stop_requested)
        return replace(numbers, worker_status=WorkerStatus(stop_agreed=self.step >= 7))


@pytest.mark.parametrize(
    ("bytes_left", "why"),
    [(15_000_000, "because the disk is nearly full"), (PLENTY, "because another worker ended")],
)
def test_worker_stopped_by_another_explains_whether_its_disk_is_full(
    run: RunDir, free_bytes: list[int], monkeypatch: pytest.MonkeyPatch, bytes_left: int, why: str
) -> None:
    monkeypatch.setattr(watch, "DISK_SECONDS", 1e9)  # this worker has just checked
    outcome = train(run, FillingWorker(free_bytes, bytes_left))
    assert outcome.status == "stopped"
    assert outcome.reason.startswith(f"stopped {why} after step {outcome.step} of 15; saved")


def test_workers_stopped_on_request_give_that_reason(
    run: RunDir, free_bytes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "DISK_SECONDS", 1e9)
    outcome = train(run, FillingWorker(free_bytes, PLENTY), stop=lambda: True)
    assert outcome.reason.startswith("stopped on request after step ")


def test_low_disk_space_is_reported_once_and_training_continues(
    run: RunDir, free_bytes: list[int]
) -> None:
    outcome = train(run, FillingEngine(free_bytes, 90_000_000))
    assert (outcome.status, outcome.step) == ("finished", 15)
    assert [topic for topic, _ in events(run) if topic == "disk"] == ["disk"]


def test_a_run_with_enough_space_has_no_warning(run: RunDir, free_bytes: list[int]) -> None:
    assert free_bytes == [PLENTY]
    train(run, CountingEngine())
    assert [topic for topic, _ in events(run) if topic == "disk"] == []


def test_two_checkpoints_must_fit_and_the_disk_is_checked_at_intervals(
    run: RunDir, free_bytes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "DISK_SECONDS", 2.0)
    seconds = [0.0]
    with JournalWriter(run.trainer_journal()) as writer:
        disk = DiskWatch(run.path, writer, checkpoint_bytes=40_000_000, clock=lambda: seconds[0])
        free_bytes[0] = 100_000_000
        assert not disk.is_short()
        free_bytes[0] = 99_000_000
        assert not disk.is_short(), "the last check was a moment ago"
        seconds[0] = 2.0
        assert disk.is_short()
        free_bytes[0] = PLENTY
        seconds[0] = 9.0
        assert disk.is_short(), "several workers may have agreed on it already"


# ---- before the start ----------------------------------------------------------------------------


def test_a_run_whose_checkpoints_do_not_fit_is_not_queued(
    home: Home, host: Host, free_bytes: list[int]
) -> None:
    spec = RunSpec.parse({"keep_checkpoints": 10, "epochs": 100})
    needed = watch.checkpoints_bytes(spec, loading.check(spec, home))
    assert (
        needed == 12 * 16 * spec.entry.size(spec.of_workload, loading.check(spec, home)).parameters
    )
    free_bytes[0] = disk.LEAST_BYTES + needed - 1
    with pytest.raises(
        HomeError, match=r"but starting a run with its checkpoints needs \d+ MB: free space on it\."
    ):
        ask(home, host, actor=ASKER).submit(spec)
    assert home.run_dirs() == []
    free_bytes[0] += 1
    assert ask(home, host, actor=ASKER).submit(spec).path.exists()


def test_run_without_space_to_save_is_not_resumed(
    home: Home, host: Host, free_bytes: list[int]
) -> None:
    run = ask(home, host, actor=ASKER).submit(RunSpec())
    journal.append(
        run.supervisor_journal, 1, journal.StatusChange(status="stopped", reason="no space")
    )
    run.checkpoints.mkdir()
    with (run.checkpoints / "step-00000001.safetensors").open("wb") as file:
        os.truncate(file.fileno(), 30_000_000)
    free_bytes[0] = 79_000_000
    with pytest.raises(
        HomeError, match=r"has 79 MB left, but resuming the run needs 80 MB: free space on it\."
    ):
        ask_of(run, actor=ASKER).resume(run.run_id)
    assert latest_status(run).status == "stopped"
