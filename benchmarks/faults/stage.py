"""The stage of one scenario: a home in a temporary folder, its owner, its run and its trainers."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psutil

from gan_runtime.base.errors import RunStateError
from gan_runtime.device_locks.locks import FOLDER_VARIABLE
from gan_runtime.records import processes
from gan_runtime.records.home import Home
from gan_runtime.records.journal import ACTIVE, ENDED
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.spec import RunSpec
from tests.support import toy_trainer
from tests.support.asking import ask, ask_of
from tests.support.hosts import stated_host

ACTOR = operator("a scenario")
REPORT_SECONDS = 15.0
MAX_WAIT_SECONDS = 180.0  # all other waits, on a busy machine
POLL_SECONDS = 0.01
PROCESS_CHECK_SECONDS = 0.5  # listing all processes costs more than reading a journal
MAX_ATTEMPTS = 6
DISK_MB = 80  # submitting needs 20 MB, and the database grows
_DROP_FROM_BOUNDING_SET, _DAC_OVERRIDE = 24, 1  # prctl(2), capabilities(7)


class BrokenGuaranteeError(Exception):
    """A guarantee does not hold; the message says which."""


@dataclass
class Stage:
    """`calls`, `operations` (on files), `syncs`: counts of an undisturbed trainer.

    `min_calls`: before any fault. `module`: of the trainers. `grace_seconds`: of a stop.
    `environment`: of owners. `report_seconds`: from the exit of the last process to a final state
    in the journal. `at_end`: called before the processes are killed.
    """

    home: Home
    scratch: Path
    random: Random
    options: dict[str, Any]
    calls: int
    operations: int
    syncs: int
    module: str = toy_trainer.MODULE
    grace_seconds: float = 2.0
    min_calls: int = 0
    disk_mb: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    far: Path | None = None  # the home on another host, where the run trains
    report_seconds: float = REPORT_SECONDS
    at_end: list[Callable[[], None]] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)  # for the scenario's line of output
    finished_before_fault: bool = False
    _owner: subprocess.Popen[bytes] | None = None
    _mounted: bool = False

    def submit(self) -> RunDir:
        """Queues the run of the scenario."""
        return ask(self.home, stated_host(), actor=ACTOR).submit(RunSpec.parse(self.options))

    # ---- the owner -------------------------------------------------------------------------------

    def start_owner(self, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Starts a process that opens the home, without root's right to write everywhere."""
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.owner",
                str(self.home.path),
                str(self.grace_seconds),
                self.module,
            ],
            stdout=subprocess.PIPE,
            stderr=(self.scratch.parent / "owner.log").open("ab"),
            env=self.environment_of({**self.environment, **(environment or {})}),
            preexec_fn=_drop_root_override,
        )

    def open(self, environment: Mapping[str, str] | None = None) -> None:
        """Starts an owner and waits until it has opened the home."""
        self._owner = self.start_owner(environment)
        assert self._owner.stdout is not None
        line = self._owner.stdout.readline().decode().strip()
        if line != "open":
            raise BrokenGuaranteeError(
                f"the home could not be opened: {line or 'the owner exited'}"
            )

    def open_or_end(self, environment: Mapping[str, str]) -> None:
        """As `open`, for an owner that a fault can hit at its start. Waits until it has opened the
        home or exited.
        """
        self._owner = self.start_owner(environment)
        assert self._owner.stdout is not None
        is_open = self._owner.stdout.readline() == b"open\n"
        self.actions.append("opened" if is_open else "not opened")
        if not is_open:
            self._owner.wait(MAX_WAIT_SECONDS)

    def environment_of(self, more: Mapping[str, str]) -> dict[str, str]:
        """The environment of a process of this stage. Temporary files and device locks are
        separate, since scenarios run at the same time.
        """
        isolated = {
            "TMPDIR": str(self.scratch),
            FOLDER_VARIABLE: str(self.scratch.parent / "locks"),
        }
        return processes.environment({**os.environ, **isolated, **more})

    def adopt(self, owner: subprocess.Popen[bytes]) -> None:
        """Makes one of several started processes the owner of the stage."""
        self._owner = owner

    def kill_owner(self) -> None:
        """Kills the owner with SIGKILL."""
        assert self._owner is not None
        self._owner.kill()
        self._owner.wait()

    def has_owner(self) -> bool:
        """Whether the owner's process runs."""
        return self._owner is not None and self._owner.poll() is None

    def close(self) -> None:
        """Asks the owner to close the home, and waits."""
        if self._owner is not None and self._owner.poll() is None:
            self._owner.terminate()
            if self._owner.wait(MAX_WAIT_SECONDS) != 0:
                raise BrokenGuaranteeError("the owner did not exit cleanly on request")

    # ---- its trainers ----------------------------------------------------------------------------

    def trainers(self, run: RunDir) -> list[psutil.Process]:
        """Every process of the run: the trainer, or the launcher (the first) and its workers."""
        folder = str(self.far_folder(run))
        trainers = [
            process
            for process in psutil.process_iter(["cmdline", "status"])
            if folder in (process.info["cmdline"] or [])
            and process.info["status"] != psutil.STATUS_ZOMBIE
        ]
        return sorted(trainers, key=lambda process: len(process.info["cmdline"]))

    def far_folder(self, run: RunDir) -> Path:
        """The folder that the trainer of a run writes to."""
        return run.path if self.far is None else self.far / "runs" / run.run_id

    def journaled_calls(self, run: RunDir) -> int:
        """The number of calls in the trainer's journal."""
        path = RunDir(self.far_folder(run)).trainer_journal()
        return path.read_bytes().count(b'"kind":"scalars"') if path.exists() else 0

    def wait_for_calls(self, run: RunDir, calls: int) -> None:
        """Waits until `calls` calls are journaled, or the run has ended."""
        count = max(calls, self.min_calls)
        self.wait(
            lambda: self.journaled_calls(run) >= count or self.state(run) in ENDED,
            f"{count} calls are journaled",
        )
        self.finished_before_fault = self.state(run) in ENDED

    def end_trainers(self, run: RunDir) -> None:
        """Kills the trainers until none remains."""
        self.wait(lambda: not kill(self.trainers(run)), "the trainers have exited")

    def wait_while_it_trains(self, run: RunDir, seconds: float) -> None:
        """Waits until the run has no process, for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while self.trainers(run) and time.monotonic() < deadline:
            time.sleep(10 * POLL_SECONDS)

    def state(self, run: RunDir) -> str:
        """The state of the run in its journals."""
        return latest_status(run).status

    def wait(
        self, condition: Callable[[], Any], description: str, seconds: float = MAX_WAIT_SECONDS
    ) -> None:
        """Waits for a condition. Raises BrokenGuaranteeError after `seconds`."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise BrokenGuaranteeError(f"not within {seconds:.0f} s: {description}")
            time.sleep(POLL_SECONDS)

    # ---- recovery --------------------------------------------------------------------------------

    def wait_for_end(self, run: RunDir) -> str:
        """Waits for the end of an attempt and returns its state.

        Raises BrokenGuaranteeError if the journal lacks a final state `report_seconds` after the
        last process has exited.
        """
        exited_since: float | None = None
        next_check = 0.0
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while (state := self.state(run)) not in ENDED:
            now = time.monotonic()
            if now >= next_check:
                exited_since = (
                    None if self.trainers(run) or state == "queued" else (exited_since or now)
                )
                next_check = now + PROCESS_CHECK_SECONDS
            if exited_since is not None and now - exited_since > self.report_seconds:
                raise BrokenGuaranteeError(
                    f"{self.report_seconds:.0f} s after its last process the run is still {state}"
                )
            if now > deadline:
                raise BrokenGuaranteeError(
                    f"after {MAX_WAIT_SECONDS:.0f} s the run is still {state}"
                )
            time.sleep(5 * POLL_SECONDS)
        return state

    def recover(self, run: RunDir) -> list[str]:
        """Resumes the run, under an owner, until it is finished. Returns the final states of its
        attempts.
        """
        if not self.has_owner():
            self.open()
        ends = [self.wait_for_end(run)]
        while ends[-1] != "finished" and len(ends) < MAX_ATTEMPTS:
            self.wait(lambda: not self.trainers(run), "the run's processes have exited")
            ask_of(run, actor=ACTOR).resume(run.run_id)
            ends.append(self.wait_for_end(run))
        self.wait(lambda: not self.trainers(run), "the run's processes have exited")
        if self.far is not None:
            self.wait(lambda: self._is_over(run), "its job has ended here too")
        return ends

    def _is_over(self, run: RunDir) -> bool:
        return bool(json.loads((run.path / "target.json").read_text(encoding="utf-8"))["is_over"])

    # ---- its disk --------------------------------------------------------------------------------

    def mount_small_disk(self) -> bool:
        """Mounts a small disk in memory as the empty home; False without the right to mount."""
        self.disk_mb = DISK_MB
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(self.home.path)]
        self._mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
        if self._mounted:
            self.home.prepare()
        return self._mounted

    def backdate(self, path: Path, seconds: float) -> None:
        """Backdates a folder and its contents by `seconds`."""
        for file in (*path.rglob("*"), path):
            modified = file.stat().st_mtime - seconds
            os.utime(file, (modified, modified))

    def clean_up(self) -> None:
        """Kills all processes of the scenario and unmounts its disk."""
        for end in self.at_end:
            end()
        for process in psutil.process_iter(["cmdline"]):
            if any(
                argument.startswith((str(self.home.path), str(self.far or self.home.path)))
                for argument in process.info["cmdline"] or []
            ):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        if self._owner is not None:
            self._owner.wait()
            if self._owner.stdout is not None:
                self._owner.stdout.close()
        if self._mounted:
            subprocess.run(["umount", "-l", str(self.home.path)], check=False)

    def stop(self, run: RunDir) -> None:
        """Stops the run as a user."""
        with contextlib.suppress(RunStateError):  # the run has ended in the meantime
            ask_of(run, actor=ACTOR).stop(run.run_id)

    def is_active(self, run: RunDir) -> bool:
        """Whether the run is starting or training."""
        return self.state(run) in ACTIVE


def kill(targets: list[psutil.Process], number: signal.Signals = signal.SIGKILL) -> int:
    """Sends a signal to the processes; returns their number.

    SIGKILL follows a SIGSTOP to all, so that no worker can record the loss of another one: a reset
    of the machine leaves no time for that.
    """
    for signal_number in (signal.SIGSTOP, number) if number is signal.SIGKILL else (number,):
        for process in targets:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal_number)
    return len(targets)


def _drop_root_override() -> None:
    """Drops root's right to write into any folder, in a child process."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(_DROP_FROM_BOUNDING_SET, _DAC_OVERRIDE, 0, 0, 0)
