"""A home's owner in the test process, with a clock that the test controls; its trainers are toys or
fakes.
"""

from __future__ import annotations

from collections.abc import Callable

from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import StateTimer
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision.starters import Starter
from gan_runtime.supervision.supervisor import Supervisor
from tests.support.trainers import toys

GRACE_SECONDS = 60.0


class Clock:
    """A clock in seconds that only the test advances."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class EagerIngestor(Ingestor):
    """Reads every live run in each tick, since those of a test can be a moment apart."""

    def catch_up_news(self, at_once: bool = True) -> int:  # noqa: ARG002
        return super().catch_up_news(at_once=True)


class Owner:
    """Acts on request, one supervisor tick at a time."""

    def __init__(self, home: Home, starter: Callable[[StateTimer], Starter] = toys) -> None:
        """`starter`: `toys` or `idle` of trainers.py, or the starter of FakeTrainers."""
        self.clock, self.store = Clock(), Store()
        ingestor = EagerIngestor(home, self.store)
        ingestor.catch_up()
        begun = starter(StateTimer(self.clock))
        self._supervisor = Supervisor(home, self.store, ingestor, GRACE_SECONDS, self.clock, begun)

    def tick(self) -> None:
        """Runs one tick at the current time of the clock."""
        self._supervisor.tick()

    def at(self, seconds: float) -> None:
        """Runs a tick at this time after the start, and one more for its effects."""
        self.clock.now = seconds
        self.tick()
        self.tick()

    def after(self, seconds: float) -> None:
        """Like `at`, but relative to the last tick."""
        self.at(self.clock.now + seconds)

    def status(self, run: RunDir) -> str:
        """The status of a run, as pages show it."""
        return queries.run(self.store, run.run_id).status

    def note(self, run: RunDir) -> str:
        """The reason for its status."""
        return queries.run(self.store, run.run_id).note

    def messages(self, run: RunDir, kind: str) -> list[str]:
        """The messages of one kind."""
        events = queries.events(self.store, run.run_id)
        return list(events[events["kind"] == kind]["message"])
