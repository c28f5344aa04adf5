"""Trainers for tests: starters without a framework, and the cleanup of trainers that a test leaves
behind. Those would continue without dashboard and test, and slow down all later tests.
"""

from __future__ import annotations

import contextlib

import psutil

from gan_runtime.records.home import Home
from gan_runtime.records.processes import TRAINER
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import StateTimer
from gan_runtime.supervision.starters import LocalStarter
from tests.support import idle_trainer, toy_trainer

KINDS = (TRAINER, toy_trainer.MODULE, idle_trainer.MODULE)


def toys(timer: StateTimer | None = None) -> LocalStarter:
    """Starts real trainers with a toy engine: a framework takes 5 s of CPU time in each."""
    return LocalStarter(timer or StateTimer(), toy_trainer.MODULE)


def idle(timer: StateTimer | None = None) -> LocalStarter:
    """Starts processes that do nothing."""
    return LocalStarter(timer or StateTimer(), idle_trainer.MODULE)


def end_trainers(home: Home) -> None:
    """Kills every trainer of the home, including those that have not introduced themselves yet."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(kind in words for kind in KINDS) and any(
            word.startswith(str(home.runs)) for word in words
        ):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def processes_of(run: RunDir) -> list[psutil.Process]:
    """Every living process of a run in the process table; with several workers, the launcher comes
    first.
    """
    processes = [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if str(run.path) in (process.info["cmdline"] or [])
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]
    return sorted(processes, key=lambda process: len(process.info["cmdline"]))
