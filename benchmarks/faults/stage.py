"""The stage of one scenario: a home in a temporary folder, its owner, the trainers of its
run, and their state.
"""

from __future__ import annotations

import contextlib
import ctypes
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

ASKER = operator("a scenario")
REPORT_SECONDS = 15.0  # from the end of the last process to the matching state
PATIENCE_SECONDS = 180.0  # for all other waits, on a busy machine
POLL_SECONDS = 0.01
CHECK_SECONDS = 0.5  # between two readings of the table of processes, which cost more
MOST_ATTEMPTS = 6
DISK_MB = 80  # submitting wants 20 MB free, and the database grows by some
_DROP_FROM_BOUNDING_SET, _DAC_OVERRIDE = 24, 1  # prctl(2), capabilities(7)


class UntrueError(Exception):
    """A guarantee does not hold; the message is the sentence of the failure."""


@dataclass
class Stage:
    """`grace_seconds`: of a stop, short for short scenarios.

    `module`: what trainers are started as.

    `calls`, `operations` (on files), `syncs`: of an undisturbed trainer; `least_calls`: before any
    harm. `environment`: of owners.
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
    least_calls: int = 0
    disk_mb: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)  # for the scenario's line of output
    finished_before_harm: bool = False
    _owner: subprocess.Popen[bytes] | None = None
    _mounted: bool = False

    def submit(self) -> RunDir:
        """Queues the run of the scenario."""
        return ask(self.home, stated_host(), actor=ASKER).submit(RunSpec.parse(self.options))

    # ---- the owner -------------------------------------------------------------------------------

    def start_owner(self, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """One more process that opens the home; as root it loses the right to write everywhere."""
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
            preexec_fn=_without_override,
        )

    def open(self, environment: Mapping[str, str] | None = None) -> None:
        """The home has an owner when this returns."""
        self._owner = self.start_owner(environment)
        assert self._owner.stdout is not None
        line = self._owner.stdout.readline().decode().strip()
        if line != "open":
            raise UntrueError(f"the home could not be opened: {line or 'the owner ended'}")

    def open_or_end(self, environment: Mapping[str, str]) -> None:
        """As `open`, for an owner that is harmed in its first moments. An owner that did not open
        has ended when this returns.
        """
        self._owner = self.start_owner(environment)
        assert self._owner.stdout is not None
        is_open = self._owner.stdout.readline() == b"open\n"
        self.actions.append("opened" if is_open else "not opened")
        if not is_open:
            self._owner.wait(PATIENCE_SECONDS)

    def environment_of(self, more: Mapping[str, str]) -> dict[str, str]:
        """Of a process of this stage: it has separate temporary files and device locks, since
        scenarios run at the same time.
        """
        apart = {"TMPDIR": str(self.scratch), FOLDER_VARIABLE: str(self.scratch.parent / "locks")}
        return processes.environment({**os.environ, **apart, **more})

    def adopt(self, owner: subprocess.Popen[bytes]) -> None:
        """Waits until one of several processes is the owner."""
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
        """The owner closes the home regularly."""
        if self._owner is not None and self._owner.poll() is None:
            self._owner.terminate()
            if self._owner.wait(PATIENCE_SECONDS) != 0:
                raise UntrueError("the owner did not end cleanly on request")

    # ---- its trainers ----------------------------------------------------------------------------

    def trainers(self, run: RunDir) -> list[psutil.Process]:
        """Every process of the run: the trainer, or the launcher (the first) and its workers."""
        trainers = [
            process
            for process in psutil.process_iter(["cmdline", "status"])
            if str(run.path) in (process.info["cmdline"] or [])
            and process.info["status"] != psutil.STATUS_ZOMBIE
        ]
        return sorted(trainers, key=lambda process: len(process.info["cmdline"]))

    def steps(self, run: RunDir) -> int:
        """The number of journalled calls."""
        path = run.trainer_journal()
        return path.read_bytes().count(b'"kind":"scalars"') if path.exists() else 0

    def wait_for_calls(self, run: RunDir, calls: int) -> None:
        """Waits until `calls` calls are journalled; a run that ends before is undisturbed."""
        count = max(calls, self.least_calls)
        self.wait(
            lambda: self.steps(run) >= count or self.state(run) in ENDED,
            f"{count} calls are journalled",
        )
        self.finished_before_harm = self.state(run) in ENDED

    def end_trainers(self, run: RunDir) -> None:
        """Waits until no process remains."""
        self.wait(lambda: not kill(self.trainers(run)), "the trainers are gone")

    def wait_while_it_trains(self, run: RunDir, seconds: float) -> None:
        """Waits until the run has no process, up to a number of seconds."""
        deadline = time.monotonic() + seconds
        while self.trainers(run) and time.monotonic() < deadline:
            time.sleep(10 * POLL_SECONDS)

    def state(self, run: RunDir) -> str:
        """The state of the run by its journals."""
        return latest_status(run).status

    def wait(
        self, condition: Callable[[], Any], awaited: str, seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Raises UntrueError when it does not become true in time."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise UntrueError(f"not within {seconds:.0f} s: {awaited}")
            time.sleep(POLL_SECONDS)

    # ---- recovery --------------------------------------------------------------------------------

    def wait_for_end(self, run: RunDir) -> str:
        """The state in which an attempt ended, which must be recorded soon after its last process
        has ended.
        """
        silent_since: float | None = None
        look_at = 0.0
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (state := self.state(run)) not in ENDED:
            now = time.monotonic()
            if now >= look_at:
                silent_since = (
                    None if self.trainers(run) or state == "queued" else (silent_since or now)
                )
                look_at = now + CHECK_SECONDS
            if silent_since is not None and now - silent_since > REPORT_SECONDS:
                raise UntrueError(
                    f"{REPORT_SECONDS:.0f} s after its last process the run is still {state}"
                )
            if now > deadline:
                raise UntrueError(f"after {PATIENCE_SECONDS:.0f} s the run is still {state}")
            time.sleep(5 * POLL_SECONDS)
        return state

    def recover(self, run: RunDir) -> list[str]:
        """Gives the home an owner and resumes the run until it is finished; returns the ends
        of its attempts.
        """
        if not self.has_owner():
            self.open()
        ends = [self.wait_for_end(run)]
        while ends[-1] != "finished" and len(ends) < MOST_ATTEMPTS:
            self.wait(lambda: not self.trainers(run), "the run's processes are gone")
            ask_of(run, actor=ASKER).resume(run.run_id)
            ends.append(self.wait_for_end(run))
        self.wait(lambda: not self.trainers(run), "the run's processes are gone")
        return ends

    # ---- its disk --------------------------------------------------------------------------------

    def on_small_disk(self) -> bool:
        """Moves the empty home to a separate disk in memory; False without root's rights."""
        self.disk_mb = DISK_MB
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(self.home.path)]
        self._mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
        if self._mounted:
            self.home.prepare()
        return self._mounted

    def age(self, path: Path, seconds: float) -> None:
        """Dates a folder and its contents back by some seconds."""
        for each in (*path.rglob("*"), path):
            then = each.stat().st_mtime - seconds
            os.utime(each, (then, then))

    def clear(self) -> None:
        """Ends all remains of the scenario, so that they do not disturb the next."""
        for process in psutil.process_iter(["cmdline"]):
            if any(word.startswith(str(self.home.path)) for word in process.info["cmdline"] or []):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        if self._owner is not None:
            self._owner.wait()
            if self._owner.stdout is not None:
                self._owner.stdout.close()
        if self._mounted:
            subprocess.run(["umount", "-l", str(self.home.path)], check=False)

    def stop(self, run: RunDir) -> None:
        """A user requests the end of the run."""
        with contextlib.suppress(RunStateError):  # the run has ended in the meantime
            ask_of(run, actor=ASKER).stop(run.run_id)

    def is_active(self, run: RunDir) -> bool:
        """Whether it starts or trains."""
        return self.state(run) in ACTIVE


def kill(doomed: list[psutil.Process], number: signal.Signals = signal.SIGKILL) -> int:
    """Sends a signal to the processes that still exist; returns their number.

    Those that are killed are suspended first, so that no worker can record that another one
    disappeared: a reset of the machine leaves no time to do so.
    """
    for sent in (signal.SIGSTOP, number) if number is signal.SIGKILL else (number,):
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(sent)
    return len(doomed)


def _without_override() -> None:
    """Drops root's right to write into any folder, in a child process."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(_DROP_FROM_BOUNDING_SET, _DAC_OVERRIDE, 0, 0, 0)
