"""The expected result of a kind of fault, and the start of its run up to the moment of harm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.faults.stage import Stage, kill
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir

LOST, FINISHED, FAILED, STOPPED = "lost", "finished", "failed", "stopped"
MOST_CALLS = 20  # of the 24 calls of a toy run


@dataclass(frozen=True)
class Harm:
    """`ends`: true states of the first attempt.

    `more`: further checks after the recovery, which return sentences of violations.
    """

    run: RunDir
    ends: tuple[str, ...]
    more: list[Callable[[Home], list[str]]] = field(default_factory=list)


Kind = Callable[[Stage], Harm]


def running_run(stage: Stage, environment: dict[str, str] | None = None) -> RunDir:
    """A training run of an owner, after a number of calls drawn by the seed, or a run that has
    ended already.
    """
    run = stage.submit()
    stage.open(environment)
    calls = stage.random.randint(0, min(MOST_CALLS, stage.calls))
    stage.actions.append(f"after call {calls}")
    stage.wait_for_calls(run, calls)
    return run


def reset_machine(stage: Stage, environment: dict[str, str] | None = None) -> RunDir:
    """As `running_run`, and then owner and trainers were killed, as when the machine is reset."""
    run = running_run(stage, environment)
    kill(stage.trainers(run))
    stage.kill_owner()
    stage.end_trainers(run)  # those that the owner has started meanwhile
    return run
