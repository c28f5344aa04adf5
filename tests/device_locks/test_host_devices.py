"""GPU locks: one for each device that the driver distinguishes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gan_runtime import device_locks
from gan_runtime.device_locks import host_devices, locks
from gan_runtime.device_locks.host_devices import Driver
from gan_runtime.device_locks.locks import Holder
from gan_runtime.records.home import Home
from tests.device_locks.waiting_runs import TOY, queued, ticked
from tests.support.toy_owner import Clock, Owner
from tests.support.trainers import idle, processes_of

Wait = Callable[..., Any]
PATIENCE_SECONDS = 60.0
SMI = """#!/bin/sh
echo "0, GPU-aaaa, NVIDIA T1"
echo "1, GPU-bbbb, NVIDIA T1"
"""


def test_each_gpu_run_has_its_own_gpus(
    homes: tuple[Home, Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: Wait
) -> None:
    (tmp_path / "nvidia-smi").write_text(SMI, encoding="utf-8")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(host_devices, "DRIVER", Driver())
    owners = [Owner(home, idle) for home in homes]
    runs = [
        queued(homes[0], "quick-0001", "gpu", **TOY),
        queued(homes[0], "quick-0002", "gpu", replicas=2, **TOY),
        queued(homes[0], "quick-0003", "gpu", **TOY),
        queued(homes[1], "quick-0001", "gpu", **TOY),
    ]
    for owner, run in ((owners[0], runs[0]), (owners[1], runs[3])):
        wait_until(
            ticked(owner, lambda owner=owner, run=run: owner.status(run) == "starting"), "it trains"
        )
    gpus = {processes_of(runs[place])[0].environ()["CUDA_VISIBLE_DEVICES"] for place in (0, 3)}
    assert gpus == {"GPU-aaaa", "GPU-bbbb"}
    processes_of(runs[0])[0].kill()
    wait_until(ticked(owners[0], lambda: owners[0].status(runs[0]) == "lost"), "one GPU is free")
    owners[0].after(1.0)
    assert [owners[0].status(run) for run in runs[1:3]] == ["queued", "queued"], "nobody overtakes"
    processes_of(runs[3])[0].kill()
    wait_until(
        ticked(owners[0], lambda: owners[0].status(runs[1]) == "starting"), "two GPUs are free"
    )
    both = processes_of(runs[1])[0].environ()["CUDA_VISIBLE_DEVICES"]
    assert (both, owners[0].status(runs[2])) == ("GPU-aaaa,GPU-bbbb", "queued")


def test_a_failing_driver_is_queried_again_after_a_delay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, clock = tmp_path / "nvidia-smi", Clock()
    program.write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    driver = Driver(clock)
    monkeypatch.setattr(host_devices, "DRIVER", driver)
    assert driver.answer(PATIENCE_SECONDS) == host_devices.NO_ANSWER
    assert host_devices.visible_gpus(None) == (host_devices.ANY_GPU,)
    program.write_text(SMI, encoding="utf-8")
    assert driver.answer(PATIENCE_SECONDS) == host_devices.NO_ANSWER, "it is not asked at each tick"
    clock.now = host_devices.RETRY_SECONDS
    driver.answer(PATIENCE_SECONDS)
    assert [gpu.visible for gpu in host_devices.visible_gpus(None)] == ["GPU-aaaa", "GPU-bbbb"]


def test_a_hanging_driver_blocks_no_tick_and_is_reported_by_the_run(
    homes: tuple[Home, Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: Wait
) -> None:
    program, wakes = tmp_path / "nvidia-smi", tmp_path / "wakes"
    program.write_text(
        f"#!/bin/sh\nwhile [ ! -e {wakes} ]; do sleep 0.1; done\n{SMI.partition(chr(10))[2]}",
        encoding="utf-8",
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(host_devices, "ANSWER_SECONDS", 600.0)
    monkeypatch.setattr(host_devices, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(host_devices, "DRIVER", Driver())
    owner, run = Owner(homes[0], idle), queued(homes[0], "quick-0001", "gpu", **TOY)
    try:
        begin = time.monotonic()
        owner.after(0.0)
        owner.after(1.0)
        assert time.monotonic() - begin < 60.0
        assert (owner.status(run), owner.note(run)) == ("queued", host_devices.GPUS_UNKNOWN)
        assert device_locks.occupancies() == [device_locks.Occupancy(host_devices.CPU, None)]
    finally:
        wakes.touch()
    wait_until(ticked(owner, lambda: owner.status(run) == "starting"), "it trains")
    assert processes_of(run)[0].environ()["CUDA_VISIBLE_DEVICES"] == "GPU-aaaa"


def test_cuda_visible_devices_limits_the_visible_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    four = host_devices.DriverAnswer(
        "\n".join(f"{index}, GPU-{index}00, NVIDIA T1" for index in range(4)), ""
    )
    monkeypatch.setattr(Driver, "answer", lambda *_: four)

    def visible(devices: str | None) -> list[str]:
        return [gpu.visible for gpu in host_devices.visible_gpus(devices)]

    assert visible(None) == ["GPU-000", "GPU-100", "GPU-200", "GPU-300"]
    assert visible("3,1") == ["GPU-300", "GPU-100"]
    assert visible("GPU-2,7,0") == ["GPU-200"], "as CUDA does, nothing beyond one that is not there"
    assert visible("MIG-1a2b") == ["MIG-1a2b"]
    assert visible("0,0,GPU-0,1") == ["GPU-000", "GPU-100"], "one that is named twice is one"
    assert visible("") == [""]


LISTING = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa)
  MIG 3g.20gb     Device  0: (UUID: MIG-1111)
  MIG 3g.20gb     Device  1: (UUID: MIG-2222)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bbbb)
"""


def test_a_mig_part_and_its_whole_gpu_are_never_taken_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = host_devices.DriverAnswer(
        "0, GPU-aaaa, NVIDIA A100\n1, GPU-bbbb, NVIDIA A100\n", LISTING
    )
    monkeypatch.setattr(Driver, "answer", lambda *_: said)
    [first] = host_devices.visible_gpus("MIG-11")
    [second] = host_devices.visible_gpus("MIG-2222")
    whole, other = host_devices.visible_gpus(None)
    assert (first.visible, first.within) == ("MIG-1111", (whole.key, "gpu"))
    part = Holder(home="/data/gan", run_id="quick-0001")
    with device_locks.claim([first], 1, part), device_locks.claim([second], 1, part) as beside:
        assert beside.is_taken, "two parts are two devices"
        with device_locks.claim([whole], 1, Holder(run_id="quick-0003")) as refused:
            assert not refused.is_taken
            why = device_locks.wait_cause(refused, Path("/home"))
            assert why is not None
            assert (
                why.sentence == "waiting for GPU 0 (NVIDIA A100) (run quick-0001 of another home)"
            )
        with device_locks.claim([other], 1, Holder()) as elsewhere:
            assert elsewhere.is_taken
    with (
        device_locks.claim([whole], 1, Holder()),
        device_locks.claim([first], 1, Holder()) as refused,
    ):
        assert not refused.is_taken
        assert not device_locks.is_free(first)
    assert not any(locks.is_taken(key) for key in first.locks)


def test_claims_of_a_named_gpu_and_any_gpu_exclude_each_other() -> None:
    [named] = host_devices.read_gpus("0, GPU-aaaa, NVIDIA A100")
    with (
        device_locks.claim([named], 1, Holder()),
        device_locks.claim([host_devices.ANY_GPU], 1, Holder()) as refused,
    ):
        assert not refused.is_taken
    with (
        device_locks.claim([host_devices.ANY_GPU], 1, Holder()),
        device_locks.claim([named], 1, Holder()) as refused,
    ):
        assert not refused.is_taken
