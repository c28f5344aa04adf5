"""Trainers of the tests: such as load no framework, and the end of those that a test has left
behind: they train on without dashboard and test, and slow down all tests after it.
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
    """Starts trainers that are real but for their engine: no framework is loaded, which takes
    5 s of the processor in each.
    """
    return LocalStarter(timer or StateTimer(), toy_trainer.MODULE)


def idle(timer: StateTimer | None = None) -> LocalStarter:
    """Starts processes that do nothing."""
    return LocalStarter(timer or StateTimer(), idle_trainer.MODULE)


def end_trainers(home: Home) -> None:
    """Kills every trainer of the home, also one that has not introduced itself yet."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(kind in words for kind in KINDS) and any(
            word.startswith(str(home.runs)) for word in words
        ):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def processes_of(run: RunDir) -> list[psutil.Process]:
    """Every living process of a run, as the table of processes has it; the launcher of
    several workers comes first.
    """
    processes = [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if str(run.path) in (process.info["cmdline"] or [])
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]
    return sorted(processes, key=lambda process: len(process.info["cmdline"]))
