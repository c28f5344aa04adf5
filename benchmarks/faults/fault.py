"""What a fault returns, and the run that it hits, up to the moment of the fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.stage import Stage, kill
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir

LOST, FINISHED, FAILED, STOPPED = "lost", "finished", "failed", "stopped"
MAX_CALLS = 20  # of the 24 calls of a toy run


@dataclass(frozen=True)
class Expectation:
    """What must hold after a fault. `ends`: allowed final states of the first attempt.

    `checks`: further checks after the recovery, which return a sentence for each violation.
    """

    run: RunDir
    ends: tuple[str, ...]
    checks: list[Callable[[Home], list[str]]] = field(default_factory=list)


Fault = Callable[[Stage], Expectation]


def running_run(
    stage: Stage, environment: dict[str, str] | None = None, run: RunDir | None = None
) -> RunDir:
    """A run that an owner trains, after a random number of calls; it can have ended. `run`: one
    that is submitted already.
    """
    run = run or stage.submit()
    stage.open(environment)
    calls = stage.random.randint(0, min(MAX_CALLS, stage.calls))
    stage.actions.append(f"after call {calls}")
    stage.wait_for_calls(run, calls)
    return run


def started_once(starts: Path) -> Callable[[Home], list[str]]:
    """Whether one trainer was started. `starts`: a file with a line for each start."""

    def check(_: Home) -> list[str]:
        count = starts.read_text(encoding="utf-8").count("started")
        return [] if count == 1 else [f"{count} trainers were started"]

    return check


def reset_machine(stage: Stage, environment: dict[str, str] | None = None) -> RunDir:
    """Kills the owner and the trainers of a running run, as a reset of the machine does."""
    run = running_run(stage, environment)
    kill(stage.trainers(run))
    stage.kill_owner()
    stage.end_trainers(run)  # that the owner has started in the meantime
    return run
