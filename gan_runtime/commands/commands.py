"""Everything that a person may change: all changes go through `Commands`, bound once to a home and
an actor.

    Commands(home, operator("command line")).stop("quick-0007")

Pages and command line call nothing else that changes something. Each request is a file or a journal
line, so any process may make it: the owner of the home (dashboard or command line) sees it within a
moment and acts. The actor's name is kept where the change itself is, or else in the log of the
process. Each change refuses a viewer before it does anything (`bound.change`), so what a page shows
or hides decides nothing.
"""

from __future__ import annotations

import logging
from pathlib import Path

from gan_runtime import bundles
from gan_runtime.commands.bound import change
from gan_runtime.commands.jobs import DataCommands, JobCommands
from gan_runtime.commands.kept import KeepCommands
from gan_runtime.commands.queue import QueueCommands
from gan_runtime.commands.runs import RunCommands
from gan_runtime.supervision import store_recovery
from gan_runtime.supervision.store_recovery import Rebuilt

log = logging.getLogger("gan_runtime")


class Commands(RunCommands, QueueCommands, KeepCommands, JobCommands, DataCommands):
    """Every change, by the noun that it is about; those of a whole home are here."""

    @change
    def import_bundle(self, bundle: Path) -> list[str]:
        """Loads the runs of a bundle; returns the new ids. Raises as `bundles.unpack`."""
        new = bundles.unpack(bundle, self.home)
        log.info("%d runs of %s are imported, as the %s asked", len(new), bundle, self.actor.name)
        return new

    @change
    def rebuild(self) -> Rebuilt:
        """Rebuilds results.duckdb from the journals. Raises as `rebuild.rebuild`."""
        made = store_recovery.rebuild(self.home)
        log.info("%s is rebuilt, as the %s asked", self.home.database, self.actor.name)
        return made
