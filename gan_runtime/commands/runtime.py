"""The runtime of a home: its database, ingestor and supervisor, in the process that owns the home.

The dashboard has one as long as it runs; the command line opens one to train, unless another
process owns the home.
"""

from __future__ import annotations

import copy
import time

from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.commands import Commands
from gan_runtime.hardware.hosts import Host, HostProbe
from gan_runtime.records.home import Home
from gan_runtime.records.record import DASHBOARD, Actor, operator
from gan_runtime.records.states import StateTimer
from gan_runtime.store import queries
from gan_runtime.supervision.maintenance import Maintenance
from gan_runtime.supervision.owner_thread import OpenHome, OwnedHome, ViewedHome
from gan_runtime.supervision.standby import Standby
from gan_runtime.supervision.starter_router import StarterRouter
from gan_runtime.supervision.starters import LocalStarter, Starter
from gan_runtime.supervision.store_recovery import RecoveredStore
from gan_runtime.supervision.supervisor import GRACE_SECONDS
from gan_runtime.supervision.target_starter import TargetStarter


class Runtime:
    """Created by `Runtime.open` or `Runtime.view`. All methods are thread-safe."""

    ownership_error: GanRuntimeError | None = None  # None for an owner

    def __init__(
        self,
        open_home: OpenHome,
        host_probe: HostProbe,
        standby: Standby | None = None,
        targets: TargetStarter | None = None,
    ) -> None:
        self.home, self.store, self.host_probe = open_home.home, open_home.store, host_probe
        self._open_home, self._standby, self.targets = open_home, standby, targets
        self.commands = self._commands(operator(DASHBOARD))

    @classmethod
    def open(
        cls,
        home: Home,
        grace_seconds: float = GRACE_SECONDS,
        host_probe: HostProbe | None = None,
        starter: Starter | None = None,
        standby: Standby | None = None,
        url: str = "",
    ) -> Runtime:
        """Becomes the owner of the home and continues with its runs.

        `host_probe`: a host probe that has already started; `starter`: starts the trainers, by
        default as processes on this host; `standby`: a trainer that waits for the next run; `url`:
        URL of the pages, for the message to other processes.

        Raises:
            HomeInUseError: another process is the owner; the message names it.
            StoreError, HomeError: the database or the folder cannot be used.
        """
        targets = TargetStarter(home, StateTimer(time.monotonic))
        local = starter or LocalStarter(StateTimer(time.monotonic), standby=standby)
        owned = OwnedHome.begin(home, grace_seconds, StarterRouter(local, targets), url)
        return cls(owned, host_probe or HostProbe(), standby, targets)

    @classmethod
    def view(
        cls, home: Home, refusal: GanRuntimeError, host_probe: HostProbe | None = None
    ) -> Runtime:
        """Reads a home without owning it, and changes nothing. `refusal`: why it is not owned."""
        runtime = cls(ViewedHome.begin(home), host_probe or HostProbe())
        runtime.ownership_error = refusal
        runtime.commands = runtime._commands(Actor(DASHBOARD, refusal=str(refusal)))
        return runtime

    def for_actor(self, actor: Actor) -> Runtime:
        """The same runtime with the commands of another actor."""
        runtime = copy.copy(self)
        runtime.commands = self._commands(actor)
        return runtime

    def _commands(self, actor: Actor) -> Commands:
        return Commands(
            self.home, actor, self.host, self.refresh, self._open_home.maintenance.run_round
        )

    @property
    def trouble(self) -> str:
        """Why the last tick failed, for the pages; empty when it succeeded."""
        return self._open_home.thread.trouble

    @property
    def is_reading(self) -> bool:
        """Whether journals are being read into a new database, so that some runs are missing."""
        open_home = self._open_home
        return (
            not open_home.thread.has_begun
            or open_home.is_reading
            or any(database.runs is None for database in self.recovered)
        )

    @property
    def recovered(self) -> list[RecoveredStore]:
        """The damaged databases that were quarantined since the home was opened."""
        return self._open_home.recovered

    def close(self) -> None:
        """Releases the home. Trainers continue; the next owner finds them."""
        if self.targets:
            self.targets.close()
        self._open_home.end()
        if self._standby:
            self._standby.end()

    def expect_a_run(self) -> None:
        """Loads TensorFlow in a process that can take the next run. Does nothing for a viewer, or
        while a run waits or trains.
        """
        if self._standby and not self.commands.actor.refusal and not queries.queue(self.store):
            self._standby.begin()

    def host(self) -> Host:
        """The devices of this host; the first call takes some seconds.

        Raises AcceleratorError.
        """
        return self.host_probe.answer()

    @property
    def maintenance(self) -> Maintenance:
        """Measures the space of runs, and deletes old runs from the trash."""
        return self._open_home.maintenance

    def refresh(self) -> None:
        """Runs a tick now, so that a page shows the effect of its button."""
        self._open_home.thread.refresh()
