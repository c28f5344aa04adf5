"""Processes that outlive their run: the owner that saw it train ends them, and if it was killed as well, the next one does."""

from __future__ import annotations

from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.records.home import Home
from gan_runtime.records.journal import ENDED
from gan_runtime.records.run_state import latest_status
from gan_runtime.supervision.live_runs import LiveRun
from gan_runtime.supervision.starters import Attempt, Starter


def attempts(home: Home, starter: Starter) -> list[LiveRun]:
    """Those of this home that are over and still have processes."""
    return [
        LiveRun(attempt.run, "ended", attempt.number, attempt.accelerator)
        for attempt in starter.present(home.runs)
        if is_over(attempt)
    ]


def is_over(attempt: Attempt) -> bool:
    """Whether it has ended, or a later one has begun. False where nobody can tell."""
    try:
        attempt.run.path.lstat()
        newest = latest_status(attempt.run)
    except FileNotFoundError:  # deleted
        return True
    except (OSError, GanRuntimeError):
        return False
    return newest.attempt > attempt.number or (newest.attempt == attempt.number and newest.status in ENDED)
