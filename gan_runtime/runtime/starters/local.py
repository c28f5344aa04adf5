"""Trainers as processes of this host, each in a session of its own. Runs that a cluster has started are watched by their journals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psutil

from gan_runtime import cluster, processes
from gan_runtime.errors import JournalError
from gan_runtime.patience import Patience
from gan_runtime.runtime.starters import Attempt

INTRODUCTION_SECONDS = 20.0  # until a started trainer has written process.json
SILENCE_SECONDS = 600.0  # of a run on a cluster, whose processes cannot be looked at from here


@dataclass(frozen=True)
class _Child:
    """A trainer that this process has started."""

    process: subprocess.Popen[bytes]
    accelerator: str


class LocalStarter:
    """See Starter."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._children: dict[str, _Child] = {}

    def start(self, attempt: Attempt) -> None:
        """See Starter."""
        run = attempt.run
        environment = processes.environment(cluster.without_cluster(dict(os.environ)))
        if attempt.accelerator == "cpu":
            environment["CUDA_VISIBLE_DEVICES"] = "-1"
        command = [
            sys.executable,
            "-m",
            "gan_runtime.worker",
            str(run.path),
            str(attempt.number),
            attempt.accelerator,
        ]
        with run.log.open("ab") as log:
            # A session of its own: closing the terminal or the dashboard does not reach the trainer.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        self._children[run.run_id] = _Child(process, attempt.accelerator)

    def alive(self, attempt: Attempt) -> bool:
        """See Starter."""
        run = attempt.run
        child = self._children.get(run.run_id)
        if child is not None:
            return child.process.poll() is None
        identity = _introduced(attempt)
        if identity is None:
            return self._patience.seconds("introduction", run.run_id, attempt.number) < INTRODUCTION_SECONDS
        if _is_elsewhere(identity):
            with contextlib.suppress(JournalError):  # the ingestor sets the run aside
                return self._patience.seconds("silence", run.run_id, run.journal_stats()) < SILENCE_SECONDS
            return True
        return _process(identity) is not None

    def stop(self, attempt: Attempt, grace_seconds: float) -> None:
        """See Starter."""
        process = _trainer(attempt)
        if process is None:
            return  # it reads the file STOP itself once it is up
        waited = self._patience.seconds("stop", attempt.run.run_id, attempt.number)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL if waited > grace_seconds else signal.SIGTERM)

    def bury(self, attempt: Attempt) -> str:
        """See Starter."""
        child = self._children.pop(attempt.run.run_id, None)
        # The launcher is gone, so nobody else ends its workers; they hold the accelerator.
        for process in _workers(attempt):
            process.kill()
        code = child.process.returncode if child else None
        return f"killed by signal {-code}" if code is not None and code < 0 else ""

    def held(self, live: Iterable[str]) -> set[str]:
        """See Starter. Ended ones are let go."""
        ids = set(live)
        for run_id, child in list(self._children.items()):
            if run_id not in ids and child.process.poll() is not None:
                del self._children[run_id]
        return {child.accelerator for child in self._children.values() if child.process.poll() is None}


def _trainer(attempt: Attempt) -> psutil.Process | None:
    """The living trainer of this attempt, or the launcher of its workers; None when it is gone or elsewhere."""
    identity = _introduced(attempt)
    return None if identity is None or _is_elsewhere(identity) else _process(identity)


def _workers(attempt: Attempt) -> list[psutil.Process]:
    """Those of several workers on this host that still live."""
    known = [_process(worker) for worker in (_introduced(attempt) or {}).get("workers", [])]
    return [process for process in known if process is not None]


def _introduced(attempt: Attempt) -> dict[str, Any] | None:
    """What the trainer of this attempt has told of itself; None before it has."""
    identity = attempt.run.process()
    return identity if identity is not None and identity["attempt"] == attempt.number else None


def _is_elsewhere(identity: dict[str, Any]) -> bool:
    """Whether a cluster has started it: its pid means nothing here, and another container may have our name."""
    return "cluster_host" in identity


def _process(identity: dict[str, Any]) -> psutil.Process | None:
    return processes.alive(identity["pid"], identity["started"], identity.get("born", ""))
