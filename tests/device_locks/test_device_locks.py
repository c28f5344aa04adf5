"""One lock per device of this host, for all users and homes, held while a training runs."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from gan_runtime import device_locks
from gan_runtime.base.errors import DeviceLockError
from gan_runtime.device_locks import host_devices, locks
from gan_runtime.device_locks.host_devices import HostDevice
from gan_runtime.device_locks.locks import FOLDER_VARIABLE, Holder
from gan_runtime.records import journal, processes
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from tests.device_locks.waiting_runs import SHORT, TOY, queued, ticked
from tests.support.toy_owner import Owner
from tests.support.trainers import idle, processes_of

Wait = Callable[..., Any]
GPUS = [HostDevice(f"gpu-{name}", "gpu", f"GPU {name}", f"GPU-{name}") for name in "abc"]


def test_a_second_home_waits_for_a_device_and_names_the_holder(
    homes: tuple[Home, Home], wait_until: Wait
) -> None:
    first, second = (Owner(home, idle) for home in homes)
    long, waits = queued(homes[0], "quick-0001", **TOY), queued(homes[1], "quick-0001", **SHORT)
    first.after(0.0)
    assert first.status(long) == "starting"
    second.after(0.0)
    second.after(1.0)
    assert second.status(waits) == "queued"
    assert second.note(waits).startswith(
        "waiting for CPU (run quick-0001 of another home, since 20"
    )
    messages = [
        record
        for record in journal.read_all(waits.supervisor_journal)
        if isinstance(record, StatusChange)
    ]
    assert len(messages) == 2, "it is told once"
    [look] = device_locks.occupancies()
    assert look.is_of(homes[0].path)
    assert look.holder is not None
    assert (look.holder.run_id, look.holder.pid) == ("quick-0001", processes_of(long)[0].pid)
    processes_of(long)[0].kill()
    wait_until(
        ticked(second, lambda: second.status(waits) == "starting"), "the other one trains then"
    )


def test_a_trainer_subprocess_does_not_keep_its_device_lock(
    tmp_path: Path, wait_until: Wait
) -> None:
    with device_locks.claim([host_devices.CPU], 1, Holder()) as claim:
        environment: dict[str, str] = {}
        numbers = claim.hand_over(environment)
        trainer = (
            "import os; from gan_runtime import device_locks;"
            " device_locks.inherited_locks(os.environ); print(os.posix_spawn('/bin/sleep',"
            " ['sleep', '60'], os.environ), flush=True); os._exit(0)"
        )
        with (tmp_path / "told").open("wb") as output:
            subprocess.run(
                [sys.executable, "-c", trainer],
                env=processes.environment({**os.environ, **environment}),
                pass_fds=numbers,
                check=True,
                stdout=output,
            )
    program = psutil.Process(int((tmp_path / "told").read_text()))
    try:
        wait_until(lambda: program.cmdline() == ["sleep", "60"], "the program has begun")
        assert not locks.is_taken("cpu")
    finally:
        program.kill()


def test_a_claim_takes_all_required_devices_or_none() -> None:
    with device_locks.claim(GPUS, 2, Holder(run_id="quick-0001")) as first:
        assert [device.key for device in first.devices] == ["gpu-a", "gpu-b"]
        with device_locks.claim(GPUS, 2, Holder(run_id="quick-0002")) as second:
            assert not second.is_taken
            assert [(device.key, who.run_id) for device, who in second.blockers if who] == [
                ("gpu-a", "quick-0001"),
                ("gpu-b", "quick-0001"),
            ]
        with device_locks.claim(GPUS, 1, Holder(run_id="quick-0003")) as third:
            assert [device.key for device in third.devices] == ["gpu-c"]
    assert not any(locks.is_taken(device.key) for device in GPUS)


def test_other_users_see_only_who_has_a_device_and_since_when(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    holder = Holder(home="/home/ada/gan", run_id="quick-0001", name="secret plans")
    with device_locks.claim([host_devices.CPU], 1, holder):
        [file] = locks.folder().glob("cpu.*.json")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        lock_file = locks.folder() / "cpu.lock"
        assert stat.S_IMODE(lock_file.stat().st_mode) == 0o444, (
            "anybody may take it once it is free"
        )
        assert (
            device_locks.holder_text(device_locks.occupant("cpu"), tmp_path)
            == "run quick-0001 (secret plans) of /home/ada/gan"
        )
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        occupant = device_locks.occupant("cpu")
        assert occupant is not None
        assert (occupant.home, occupant.run_id, occupant.name) == ("", "", "")
        assert device_locks.holder_text(occupant, tmp_path).startswith("a training of ")
        assert abs((occupant.since - journal.now()).total_seconds()) < 60


def test_the_lock_file_of_a_killed_training_blocks_no_run() -> None:
    locks.write_holder("cpu", Holder(run_id="quick-0001", pid=1, since=datetime(2026, 1, 1)))
    assert device_locks.occupant("cpu") is None
    (locks.folder() / f"cpu.{os.geteuid()}.json").write_text("no JSON", encoding="utf-8")
    with device_locks.claim([host_devices.CPU], 1, Holder(run_id="quick-0002")) as claim:
        assert claim.is_taken
        occupant = device_locks.occupant("cpu")
        assert occupant is not None
        assert occupant.run_id == "quick-0002"


def test_a_lock_with_a_removed_file_can_be_taken_again() -> None:
    with device_locks.claim([host_devices.CPU], 1, Holder()):
        (locks.folder() / "cpu.lock").unlink()
        number = locks.take("cpu")
        assert number is not None, "its file is another one"
        os.close(number)


def test_a_trainer_refreshes_its_lock_and_retakes_it_if_removed(
    homes: tuple[Home, Home], wait_until: Wait
) -> None:
    run, place = queued(homes[0], "quick-0001", **TOY), locks.folder() / "cpu.lock"
    script = (
        "import sys, time; from gan_runtime import device_locks, worker;"
        " device_locks.REFRESH_SECONDS = 0.05; worker.enter(sys.argv[1:], train=lambda *_:"
        " time.sleep(600))"
    )
    with device_locks.claim([host_devices.CPU], 1, Holder()) as claim:
        environment: dict[str, str] = {}
        numbers = claim.hand_over(environment)
        trainer = subprocess.Popen(
            [sys.executable, "-c", script, str(run.path), "1", "cpu"],
            env=processes.environment({**os.environ, **environment}),
            pass_fds=numbers,
        )
    try:
        os.utime(place, (0, 0))
        wait_until(lambda: place.stat().st_mtime > 0, "its file looks new")
        place.unlink()
        wait_until(lambda: locks.is_taken("cpu"), "it is taken again")
        assert locks.take("cpu") is None
    finally:
        trainer.kill()
        trainer.wait()
    assert not locks.is_taken("cpu")


def test_a_shared_lock_is_retaken_as_shared() -> None:
    [named] = host_devices.read_gpus("0, GPU-aaaa, NVIDIA A100")
    with device_locks.claim([named], 1, Holder()) as claim:
        environment: dict[str, str] = {}
        claim.hand_over(environment)
        handed = device_locks.inherited_locks(environment)
        for path in locks.folder().glob("*.lock"):
            path.unlink()
        refreshed = device_locks.refresh(handed)
        try:
            assert [(lock.key, lock.is_shared) for lock in refreshed] == [
                (named.key, False),
                ("gpu", True),
            ]
            with device_locks.claim([host_devices.ANY_GPU], 1, Holder()) as refused:
                assert not refused.is_taken
            another = locks.take("gpu", shared=True)
            assert another is not None
            os.close(another)
        finally:
            for lock in refreshed:
                os.close(lock.number)


def test_the_shared_lock_folder_is_open_to_all_and_a_symlink_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE)
    monkeypatch.setattr(locks, "SHARED", tmp_path / "missing")
    monkeypatch.setattr(locks, "ELSEWHERE", tmp_path)
    before = os.umask(0o077)
    try:
        folder = locks.folder()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
        number = locks.take("cpu")
        assert number is not None
        os.close(number)
        assert stat.S_IMODE((folder / "cpu.lock").stat().st_mode) == 0o444
    finally:
        os.umask(before)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.symlink_to(elsewhere)
    with pytest.raises(DeviceLockError, match=r"not open to all users.*GAN_RUNTIME_LOCKS"):
        locks.folder()


def test_a_run_that_cannot_lock_its_device_waits_and_the_owner_raises(
    homes: tuple[Home, Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file" / "locks"))
    owner, run = Owner(homes[0]), queued(homes[0], "quick-0001", **SHORT)
    with pytest.raises(
        DeviceLockError, match="the locks of this host's devices cannot be stored in"
    ):
        owner.after(0.0)
    assert owner.status(run) == "queued"
