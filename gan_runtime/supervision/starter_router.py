"""The starter of a home with targets: each attempt goes to the starter of its place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gan_runtime.device_locks import Claim
from gan_runtime.records.journal import Status
from gan_runtime.records.states import Cause
from gan_runtime.spec.run_options import HERE
from gan_runtime.supervision.starters import Attempt, Starter
from gan_runtime.supervision.target_starter import TargetStarter


class StarterRouter:
    """Starts attempts on this host or on their target."""

    def __init__(self, local: Starter, targets: TargetStarter) -> None:
        self.local, self.targets = local, targets

    def _of(self, attempt: Attempt) -> Starter:
        return self.local if attempt.target == HERE else self.targets

    def claim(self, attempt: Attempt) -> Claim:
        """As the starter of the attempt's place."""
        return self._of(attempt).claim(attempt)

    def start(self, attempt: Attempt, claim: Claim) -> None:
        """As the starter of the attempt's place."""
        self._of(attempt).start(attempt, claim)

    def is_alone(self, attempt: Attempt) -> bool:
        """As the starter of the attempt's place."""
        return self._of(attempt).is_alone(attempt)

    def alive(self, attempt: Attempt) -> bool:
        """As the starter of the attempt's place."""
        return self._of(attempt).alive(attempt)

    def never_began(self, attempt: Attempt) -> bool:
        """As the starter of the attempt's place."""
        return self._of(attempt).never_began(attempt)

    def ending(self, attempt: Attempt) -> tuple[Status, Cause] | None:
        """As the starter of the attempt's place."""
        return self._of(attempt).ending(attempt)

    def renewed(self) -> list[Attempt]:
        """Those of all targets."""
        return [*self.local.renewed(), *self.targets.renewed()]

    def stop(self, attempt: Attempt, grace_seconds: float) -> bool:
        """As the starter of the attempt's place."""
        return self._of(attempt).stop(attempt, grace_seconds)

    def end(self, attempt: Attempt) -> None:
        """As the starter of the attempt's place."""
        self._of(attempt).end(attempt)

    def clean_up(self, attempt: Attempt) -> str:
        """As the starter of the attempt's place."""
        return self._of(attempt).clean_up(attempt)

    def present(self, runs: Path) -> list[Attempt]:
        """Those with processes on this host."""
        return self.local.present(runs)

    def busy_accelerators(self, live: Iterable[str]) -> set[str]:
        """Those of this host."""
        return self.local.busy_accelerators(live)
