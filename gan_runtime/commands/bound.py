"""What every command shares: the home that it changes, and who asks.

A viewer is refused before anything else.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from gan_runtime.base.errors import GanRuntimeError, HomeError, RoleError, UnknownRunError
from gan_runtime.hardware import hosts
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.actors import Actor
from gan_runtime.records.home import Home

log = logging.getLogger("gan_runtime")
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class Bound:
    """Bound once to a home and an actor.

    `host`: what this host offers, `hosts.probe` by default; only commands that queue runs ask.

    `refresh`: called after each change, so that the owner of the home acts at once and a page shows
    the effect of its button;
    `measure`: after one that takes or frees much space.
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


Changing = TypeVar("Changing", bound=Bound)


def change(
    method: Callable[Concatenate[Changing, Arguments], Answer],
) -> Callable[Concatenate[Changing, Arguments], Answer]:
    """A command, which looks at its actor before it does anything else.

    Raises RoleError for a viewer.

    What the file system refuses is a HomeError, such as in a home that may only be read; of a run
    (`run_id`, `run_ids`) that somebody else has deleted meanwhile it is an UnknownRunError.
    """
    takes_runs = next(iter(list(inspect.signature(method).parameters)[1:]), "") in (
        "run_id",
        "run_ids",
    )

    @functools.wraps(method)
    def checked(
        bound: Changing, /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Answer:
        actor = bound.actor
        if not actor.may_change:
            who = actor.person or "not signed in"
            log.warning(
                "%s is refused: a viewer of the %s asked (%s)", method.__name__, actor.name, who
            )
            raise RoleError(actor.why_not)
        if actor.person:
            log.info("%s asks for %s", actor.person, method.__name__)
        try:
            answer = method(bound, *arguments, **named)
        except (GanRuntimeError, OSError) as error:
            if takes_runs and arguments:
                _check_there(bound.home, arguments[0], error)
            if isinstance(error, GanRuntimeError):
                raise
            raise HomeError.refused(error) from error
        bound.refresh()
        return answer

    return checked


def _check_there(home: Home, run_ids: Any, error: Exception) -> None:
    for run_id in [run_ids] if isinstance(run_ids, str) else run_ids:
        if not isinstance(error, UnknownRunError) and not (home.runs / run_id).exists():
            raise UnknownRunError(
                f"run {run_id} is gone: somebody else has deleted it meanwhile."
            ) from error
