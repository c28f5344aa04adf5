"""What may be asked of the bin: delete a run into it, restore it, remove it for good. Part of `commands`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from gan_runtime.base.errors import RunStateError
from gan_runtime.records import tags_and_notes
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.home import Home
from gan_runtime.records.journal import ACTIVE
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import latest_status
from gan_runtime.supervision import bin

log = logging.getLogger("gan_runtime")


@for_operators
def delete(run: RunDir, *, asker: Asker) -> str:
    """Moves a run into the bin, from which it can be restored for 30 days; returns its key there.

    Raises:
        RunStateError: it is training, or pinned.
        HomeError: the home cannot be written.
    """
    status = latest_status(run).status
    if status in ACTIVE:
        raise RunStateError(f"run {run.run_id} is {status}: stop it first, then delete it.")
    if tags_and_notes.of_run(run).pinned:
        raise RunStateError(f"run {run.run_id} is pinned: unpin it first, then delete it.")
    key = bin.put(run, asker.name)
    log.info("run %s is in the bin, as the %s asked", run.run_id, asker.name)
    return key


@for_operators
def restore(home: Home, key: str, *, asker: Asker) -> RunDir:
    """Brings a run back from the bin, with all that it had. `key`: of `bin.listed`.

    Raises:
        UnknownRunError: it is not in the bin.
        RunStateError: another run has its id by now.
        HomeError: the home cannot be written.
    """
    run = bin.take_out(home, key)
    log.info("run %s is restored from the bin, as the %s asked", run.run_id, asker.name)
    return run


@for_operators
def remove_for_good(home: Home, keys: Sequence[str], *, asker: Asker) -> None:
    """Removes runs in the bin before their time, and frees their space. This cannot be undone.

    Raises:
        UnknownRunError: one of them is not in the bin; those before it are removed.
        HomeError: the home cannot be written.
    """
    for key in keys:
        bin.remove(home, key)
        log.info("run %s is removed from the bin for good, as the %s asked", key, asker.name)
