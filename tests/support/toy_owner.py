"""The owner of a home in the test's own process, on a clock of the test's; its trainers are
toys or fakes.
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
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Owner:
    """Acts on request, one tick at a time."""

    def __init__(self, home: Home, starter: Callable[[StateTimer], Starter] = toys) -> None:
        """`starter`: `toys` or `idle` of trainers.py, or that of FakeTrainers."""
        self.clock, self.store = Clock(), Store()
        ingestor = Ingestor(home, self.store)
        ingestor.catch_up()
        begun = starter(StateTimer(self.clock))
        self._supervisor = Supervisor(home, self.store, ingestor, GRACE_SECONDS, self.clock, begun)

    def tick(self) -> None:
        """One, at the moment that the clock shows."""
        self._supervisor.tick()

    def at(self, seconds: float) -> None:
        """A tick so long after the first; one more for what it has brought."""
        self.clock.now = seconds
        self.tick()
        self.tick()

    def after(self, seconds: float) -> None:
        """A tick so long after the last one."""
        self.at(self.clock.now + seconds)

    def status(self, run: RunDir) -> str:
        """As its pages show it."""
        return queries.run(self.store, run.run_id).status

    def note(self, run: RunDir) -> str:
        """The reason of its state."""
        return queries.run(self.store, run.run_id).note

    def messages(self, run: RunDir, kind: str) -> list[str]:
        """Messages of one kind."""
        events = queries.events(self.store, run.run_id)
        return list(events[events["kind"] == kind]["message"])
