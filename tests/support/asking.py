"""Commands issued by a test on a home, and on the home of a run."""

from __future__ import annotations

from collections.abc import Sequence

from gan_runtime.commands import Commands
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import Home
from gan_runtime.records.record import Actor, operator
from gan_runtime.records.run_folder import RunDir

SOMEBODY = operator("a test")


def ask(home: Home, host: Host | None = None, actor: Actor = SOMEBODY) -> Commands:
    """Commands on a home; `host` is the simulated hardware of this machine."""
    return Commands(home, actor) if host is None else Commands(home, actor, lambda: host)


def ask_of(run: RunDir, actor: Actor = SOMEBODY) -> Commands:
    """Commands on the home of a run."""
    return Commands(Home(run.path.parent.parent), actor)


def ids(items: Sequence[Sequence[RunDir]]) -> list[list[str]]:
    """Ids of queue items, as `move_in_queue` expects them."""
    return [[run.run_id for run in runs] for runs in items]
