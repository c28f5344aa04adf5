"""The runtime of one home: store, ingestor and supervisor in the one process that owns
results.duckdb.

The dashboard holds one for as long as it lives; the command line opens one for a training if nobody
else does.
"""

from __future__ import annotations

import copy

from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.commands import Commands
from gan_runtime.hardware.hosts import Host, HostProbe
from gan_runtime.records.actors import DASHBOARD, Actor, operator
from gan_runtime.records.home import Home
from gan_runtime.supervision.maintenance import Maintenance
from gan_runtime.supervision.owner_thread import OpenHome, OwnedHome, ViewedHome
from gan_runtime.supervision.starters import Starter
from gan_runtime.supervision.store_recovery import RecoveredStore
from gan_runtime.supervision.supervisor import GRACE_SECONDS


class Runtime:
    """Use `Runtime.open` or `Runtime.view`. Every method may be called from any thread."""

    why_not_owned: GanRuntimeError | None = None  # None for an owner

    def __init__(self, open_home: OpenHome, host_look: HostProbe) -> None:
        self.home, self.store, self.host_look = open_home.home, open_home.store, host_look
        self._open_home = open_home
        self.commands = self._commands(operator(DASHBOARD))

    @classmethod
    def open(
        cls,
        home: Home,
        grace_seconds: float = GRACE_SECONDS,
        host_look: HostProbe | None = None,
        starter: Starter | None = None,
        url: str = "",
    ) -> Runtime:
        """Becomes the owner of the home and goes on with its runs.

        `host_look`: one that has begun already; `starter`: of trainers, by default processes on
        this host; `url`: where its pages are, for whoever wants the home as well.

        Raises:
            HomeInUseError: another process is the owner; the message names it.
            StoreError, HomeError: the store or the folder cannot be used.
        """
        return cls(OwnedHome.begin(home, grace_seconds, starter, url), host_look or HostProbe())

    @classmethod
    def view(
        cls, home: Home, why_not: GanRuntimeError, host_look: HostProbe | None = None
    ) -> Runtime:
        """Looks at a home without owning it: all that its journals say, and no change.

        `why_not`: why it is not owned.
        """
        runtime = cls(ViewedHome.begin(home), host_look or HostProbe())
        runtime.why_not_owned = why_not
        runtime.commands = runtime._commands(Actor(DASHBOARD, why_not=str(why_not)))
        return runtime

    def asked_by(self, actor: Actor) -> Runtime:
        """The same runtime for somebody else: home, store and thread are shared, only
        `commands` are theirs.
        """
        other = copy.copy(self)
        other.commands = self._commands(actor)
        return other

    def _commands(self, actor: Actor) -> Commands:
        return Commands(
            self.home, actor, self.host, self.refresh, self._open_home.maintenance.run_round
        )

    @property
    def trouble(self) -> str:
        """Why the runtime could not act the last time, for the pages to show; empty when all
        is well.
        """
        return self._open_home.thread.trouble

    @property
    def is_reading(self) -> bool:
        """Whether the journals are being read into a new store, so that runs are missing yet."""
        open_home = self._open_home
        return (
            not open_home.thread.has_begun
            or open_home.is_reading
            or any(one.runs is None for one in self.recovered)
        )

    @property
    def recovered(self) -> list[RecoveredStore]:
        """What was found of results.duckdb and set aside since the home was opened."""
        return self._open_home.recovered

    def close(self) -> None:
        """Gives up the home. Trainers go on by themselves; the next owner finds them."""
        self._open_home.end()

    def host(self) -> Host:
        """What this host offers; waits some seconds for the first answer.

        Raises AcceleratorError.
        """
        return self.host_look.answer()

    @property
    def maintenance(self) -> Maintenance:
        """Measures the space that runs take, and removes what is old in the bin."""
        return self._open_home.maintenance

    def refresh(self) -> None:
        """Acts now instead of at the next tick, so that a page shows the effect of its own
        button.
        """
        self._open_home.thread.refresh()
