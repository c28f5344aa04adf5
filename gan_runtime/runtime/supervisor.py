"""Starts waiting runs, one per accelerator at a time, stops them, and tells the truth about those that died.

Everything it knows stands in files and in the store, so a new supervisor takes over where a killed one left off:
trainers are processes of their own and go on meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import psutil

from gan_runtime import cluster, processes
from gan_runtime.errors import GanRuntimeError, JournalError
from gan_runtime.home import Home
from gan_runtime.records import journal
from gan_runtime.records.journal import ACTIVE, StatusChange
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime import leftovers
from gan_runtime.runtime.patience import Patience
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.store.watch import Clock

GRACE_SECONDS = 60.0  # a stop ends at the next step boundary; one call of a large model takes seconds
INTRODUCTION_SECONDS = 20.0  # until a started trainer has written process.json
SILENCE_SECONDS = 600.0  # of a run on a cluster, whose processes cannot be looked at from here


@dataclass(frozen=True)
class _Live:
    """A run that waits or trains."""

    run: RunDir
    status: str
    attempt: int
    accelerator: str


@dataclass(frozen=True)
class _Child:
    """A trainer that this process has started."""

    process: subprocess.Popen[bytes]
    accelerator: str


class Supervisor:
    """Acts once per `tick`; called by one thread at a time, in the process that owns the store."""

    def __init__(
        self,
        home: Home,
        store: Store,
        ingestor: Ingestor,
        grace_seconds: float = GRACE_SECONDS,
        clock: Clock = time.monotonic,
    ) -> None:
        self._home, self._store, self._ingestor, self._grace_seconds = home, store, ingestor, grace_seconds
        self._patience = Patience(clock)
        self._children: dict[str, _Child] = {}
        self._known = self._live()  # asked again only after news, so that waiting costs next to nothing
        self._failed = False  # the last tick: its news may have arrived without being acted on

    def tick(self) -> None:
        """Takes in the journals, then acts on what they say."""
        failed_before, self._failed = self._failed, True
        self._act(failed_before)
        self._failed = False

    def _act(self, look_again: bool) -> None:
        # Who is dead is asked before the journals are read: a final event written meanwhile is then never missed.
        gone = {live.run.run_id for live in self._known if live.status in ACTIVE and not self._alive(live)}
        if self._ingestor.catch_up_news() or gone or look_again:
            self._known = self._live()
        busy, acted, failed = self._still_held(), False, None
        for live in self._known:
            try:
                acted |= self._act_on(live, busy, live.run.run_id in gone)
            except (
                GanRuntimeError,
                OSError,
            ) as error:  # such as a folder that cannot be written; the other runs go on
                failed = failed or error
        if acted:
            self._ingestor.catch_up_news()
            self._known = self._live()
        if failed is not None:
            raise failed

    def _act_on(self, live: _Live, busy: set[str], is_gone: bool) -> bool:
        """What has to be done for one run; adds its accelerator to the busy ones. Returns whether its journal has news."""
        if live.status == "queued":
            if live.run.stop_file.exists():
                self._note(live, "stopped", "taken from the queue before it started")
            elif live.accelerator not in busy:
                self._start(live)
                busy.add(live.accelerator)
            else:
                return False
            return True
        if is_gone:
            self._bury(live)
            return True
        busy.add(live.accelerator)
        self._stop_if_asked(live)
        return False

    def _live(self) -> list[_Live]:
        """Training runs first, then the queue in its order."""
        rows = self._store.rows(
            "SELECT run_id, status, attempt, accelerator FROM runs_live ORDER BY status = 'queued', queue_rank, run_id"
        )
        return [
            _Live(RunDir(self._home.runs / run_id), status, attempt, accelerator)
            for run_id, status, attempt, accelerator in rows
        ]

    def _start(self, live: _Live) -> None:
        run = live.run
        self._note(live, "starting", f"starting a trainer on {live.accelerator}")
        environment = processes.environment(cluster.without_cluster(dict(os.environ)))
        if live.accelerator == "cpu":
            environment["CUDA_VISIBLE_DEVICES"] = "-1"
        command = [
            sys.executable,
            "-m",
            "gan_runtime.worker",
            str(run.path),
            str(live.attempt),
            live.accelerator,
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
        self._children[run.run_id] = _Child(process, live.accelerator)

    def _still_held(self) -> set[str]:
        """Accelerators of trainers that have not quite ended, also after their final event. Ended ones are let go."""
        live = {item.run.run_id for item in self._known}
        for run_id, child in list(self._children.items()):
            if run_id not in live and child.process.poll() is not None:
                del self._children[run_id]
        return {child.accelerator for child in self._children.values() if child.process.poll() is None}

    def _alive(self, live: _Live) -> bool:
        child = self._children.get(live.run.run_id)
        if child is not None:
            return child.process.poll() is None
        identity = _introduced(live)
        if identity is None:
            return (
                self._patience.seconds("introduction", live.run.run_id, live.attempt) < INTRODUCTION_SECONDS
            )
        if _is_elsewhere(identity):
            with contextlib.suppress(JournalError):  # the ingestor sets the run aside
                return (
                    self._patience.seconds("silence", live.run.run_id, live.run.journal_stats())
                    < SILENCE_SECONDS
                )
            return True
        return _process(identity) is not None

    def _bury(self, live: _Live) -> None:
        """The process is gone and has left no final event."""
        child = self._children.pop(live.run.run_id, None)
        code = child.process.returncode if child else None
        how = f" (killed by signal {-code})" if code is not None and code < 0 else ""
        for process in _workers(
            live
        ):  # the launcher is gone, so nobody else ends them; they hold the accelerator
            process.kill()
        leftovers.of_run(live.run)
        if live.run.stop_file.exists():
            self._note(
                live,
                "stopped",
                f"the trainer ended without saving{how}; resume goes on from its last checkpoint",
            )
        else:
            self._note(
                live,
                "lost",
                f"the trainer process is gone without a word{how}; resume goes on from its last checkpoint",
            )

    def _stop_if_asked(self, live: _Live) -> None:
        if not live.run.stop_file.exists():
            return
        process = _trainer(live)
        if process is None:
            return  # it reads the file STOP itself once it is up
        waited = self._patience.seconds("stop", live.run.run_id, live.attempt)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL if waited > self._grace_seconds else signal.SIGTERM)

    def _note(self, live: _Live, status: journal.Status, reason: str) -> None:
        journal.append(live.run.supervisor_journal, live.attempt, StatusChange(status=status, reason=reason))


def _trainer(live: _Live) -> psutil.Process | None:
    """The living trainer of this attempt, or the launcher of its workers; None when it is gone or elsewhere."""
    identity = _introduced(live)
    return None if identity is None or _is_elsewhere(identity) else _process(identity)


def _workers(live: _Live) -> list[psutil.Process]:
    """Those of several workers on this host that still live."""
    found = [_process(worker) for worker in (_introduced(live) or {}).get("workers", [])]
    return [process for process in found if process is not None]


def _introduced(live: _Live) -> dict[str, Any] | None:
    """What the trainer of this attempt has told of itself; None before it has."""
    identity = live.run.process()
    return identity if identity is not None and identity["attempt"] == live.attempt else None


def _is_elsewhere(identity: dict[str, Any]) -> bool:
    """Whether a cluster has started it: its pid means nothing here, and another container may have our name."""
    return "cluster_host" in identity


def _process(identity: dict[str, Any]) -> psutil.Process | None:
    return processes.alive(identity["pid"], identity["started"], identity.get("born", ""))
