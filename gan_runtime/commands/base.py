"""What every command shares: the home that it changes, and the actor who asks."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from gan_runtime.base.errors import GanRuntimeError, HomeError, RoleError, UnknownRunError
from gan_runtime.hardware import hosts
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import Home
from gan_runtime.records.record import Actor

log = logging.getLogger("gan_runtime")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class CommandGroup:
    """Commands bound to a home and an actor.

    `host`: returns the devices of this host, by default `hosts.probe`; only commands that queue
    runs call it. `refresh`: called after each change, so that the owner acts at once. `measure`:
    called after a change that takes or frees much space.
    """

    def __init__(
        self,
        home: Home,
        actor: Actor,
        host: Callable[[], Host] | None = None,
        refresh: Callable[[], object] = lambda: None,
        measure: Callable[[], object] = lambda: None,
    ) -> None:
        self.home, self.actor = home, actor
        self.host, self.refresh, self.measure = host or hosts.probe, refresh, measure


Group = TypeVar("Group", bound=CommandGroup)


def change(
    method: Callable[Concatenate[Group, Arguments], Result],
) -> Callable[Concatenate[Group, Arguments], Result]:
    """Makes a method a command, which refuses a viewer before it does anything else.

    Raises:
        RoleError: the actor is a viewer.
        UnknownRunError: another user deleted the run (`run_id`, `run_ids`) in the meantime.
        HomeError: the file system refuses the change.
    """
    takes_runs = next(iter(list(inspect.signature(method).parameters)[1:]), "") in (
        "run_id",
        "run_ids",
    )

    @functools.wraps(method)
    def checked(group: Group, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        actor = group.actor
        if not actor.may_change:
            user = actor.person or "not signed in"
            log.warning(
                "%s is refused to a viewer of the %s (%s)", method.__name__, actor.name, user
            )
            raise RoleError(actor.refusal)
        if actor.person:
            log.info("%s asks for %s", actor.person, method.__name__)
        try:
            result = method(group, *arguments, **named)
        except (GanRuntimeError, OSError) as error:
            if takes_runs and arguments:
                _check_exists(group.home, arguments[0], error)
            if isinstance(error, GanRuntimeError):
                raise
            raise HomeError.refused(error) from error
        group.refresh()
        return result

    return checked


def _check_exists(home: Home, run_ids: Any, error: Exception) -> None:
    for run_id in [run_ids] if isinstance(run_ids, str) else run_ids:
        if not isinstance(error, UnknownRunError) and not (home.runs / run_id).exists():
            raise UnknownRunError(
                f"run {run_id} does not exist anymore: another user has deleted it."
            ) from error
