"""All changes of a home go through `Commands`, bound once to a home and an actor.

    Commands(home, operator("command line")).stop("quick-0007")

Pages and command line call nothing else that changes something. Each request is a file or a journal
line, so any process may make it: the owner of the home (dashboard or command line) soon reads it
and acts. The actor's name is stored with the change, or else in the log of the process.

base      the home, the actor, and the refusal of viewers
queue     submit runs and studies; their order and dependencies
runs      stop, resume, rename, mark, choose the best checkpoint, delete, restore
jobs      background jobs, data sets, files from a browser
runtime   the commands together with the database and the supervisor of a home
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gan_runtime import bundles
from gan_runtime.bundles import tensorboard
from gan_runtime.commands.base import change
from gan_runtime.commands.jobs import DataCommands, JobCommands
from gan_runtime.commands.queue import QueueCommands
from gan_runtime.commands.runs import RunCommands
from gan_runtime.supervision import store_recovery
from gan_runtime.supervision.store_recovery import Rebuilt
from gan_runtime.targets import configuration

log = logging.getLogger("gan_runtime")


class Commands(QueueCommands, RunCommands, JobCommands, DataCommands):
    """All commands, grouped by what they change; commands for a whole home are here."""

    @change
    def import_bundle(self, bundle: Path) -> list[str]:
        """Loads the runs of a bundle; returns the new ids. Raises as `bundles.unpack`."""
        run_ids = bundles.unpack(bundle, self.home)
        log.info("%s imports %d runs of %s", self.actor.name, len(run_ids), bundle)
        return run_ids

    @change
    def import_event_files(self, folder: Path) -> list[str]:
        """Loads TensorBoard's event files as runs; returns the new ids.

        Raises as `tensorboard.import_folder`.
        """
        run_ids = tensorboard.import_folder(folder, self.home)
        log.info("%s imports %d runs of %s", self.actor.name, len(run_ids), folder)
        return run_ids

    @change
    def add_target(self, name: str, values: Mapping[str, Any], *, is_apart: bool = False) -> None:
        """Adds another place where runs train, or replaces the one of this name. `values`: as in
        targets.toml. `is_apart`: it does not see this home, as no ssh target does, and gets a
        folder for runs there.

        Raises TargetSettingError, HomeError.
        """
        if is_apart or values.get("kind") == "ssh":
            values = {"home": configuration.home_there(self.home, name), **values}
        configuration.add(self.home, name, configuration.parsed(name, dict(values)))
        log.info("%s adds the target %s", self.actor.name, name)

    @change
    def rebuild(self) -> Rebuilt:
        """Rebuilds results.duckdb from the journals. Raises as `store_recovery.rebuild`."""
        rebuilt = store_recovery.rebuild(self.home)
        log.info("%s rebuilds %s", self.actor.name, self.home.database)
        return rebuilt
