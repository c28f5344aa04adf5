"""How a trainer starts: `local`, as a process of its own on this host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gan_runtime.device_locks import Claim
from gan_runtime.records.run_folder import RunDir


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run on an accelerator (cpu, gpu or tpu)."""

    run: RunDir
    number: int
    accelerator: str


class Starter(Protocol):
    """What the supervisor needs.

    Everything a starter knows is in files, except its own child processes.
    """

    def claim(self, attempt: Attempt) -> Claim:
        """Takes the devices of an attempt; to be left once its trainer runs, which then holds them
        until it is gone.

        The journal does not yet say that it starts: the next owner must be able to tell whether it
        came to that.

        Raises:
            DeviceLockError: locks cannot be kept on this host.
        """

    def start(self, attempt: Attempt, claim: Claim) -> None:
        """Starts a trainer on the devices of the claim.

        It goes on without its starter. Raises OSError.
        """

    def is_alone(self, attempt: Attempt) -> bool:
        """Whether no other run of its home may train on that kind of accelerator at the same
        time.
        """

    def alive(self, attempt: Attempt) -> bool:
        """Whether it trains, or may still do so."""

    def never_began(self, attempt: Attempt) -> bool:
        """Whether no trainer was ever spawned for it, and none will be.

        False where that is uncertain.

        So it is where an owner was killed after the journal line of the start and before the start.
        """

    def stop(self, attempt: Attempt, grace_seconds: float) -> bool:
        """Requests that it saves and ends; kills it after that many seconds, and returns whether it
        came to that.

        May be called at each tick.
        """

    def end(self, attempt: Attempt) -> None:
        """Kills it at once."""

    def clean_up(self, attempt: Attempt) -> str:
        """Ends what a trainer that is gone has left running; returns how it ended, such as "killed
        by signal 9", or "".
        """

    def present(self, runs: Path) -> list[Attempt]:
        """Attempts of runs right below this folder that have processes, whoever started them."""

    def held(self, live: Iterable[str]) -> set[str]:
        """Accelerators of trainers that have not quite ended; `live`: ids of the runs that wait or
        train.
        """
