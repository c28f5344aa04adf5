"""Removing a prepared data set, unless a run that waits or trains needs it. Part of `commands`."""

from __future__ import annotations

import contextlib
import logging

from gan_runtime.base.errors import GanRuntimeError, RunStateError
from gan_runtime.data import prepared
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.home import Home
from gan_runtime.records.journal import ENDED
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import latest_status

log = logging.getLogger("gan_runtime")


@for_operators
def remove_data(home: Home, name: str, *, asker: Asker) -> None:
    """Removes a prepared data set for good.

    Ended runs that were trained on it stay; to resume one, prepare it again.

    Raises:
        DatasetError: there is no such prepared set.
        RunStateError: a run uses it; the message names the run.
        HomeError: the home cannot be written.
    """
    for run in home.run_dirs():
        status = _live_on(run, name)
        if status:
            raise RunStateError(
                f"data set {name} is used by run {run.run_id}, which is {status}: stop it first."
            )
    prepared.remove(home, name)
    log.info("data set %s is removed, as the %s asked", name, asker.name)


def _live_on(run: RunDir, name: str) -> str:
    """The state of a run that waits or trains on this data set; empty for all others."""
    with contextlib.suppress(GanRuntimeError):
        status = latest_status(run).status
        if status not in ENDED and run.spec().dataset == name:
            return status
    return ""
