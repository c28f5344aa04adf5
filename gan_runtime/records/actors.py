"""Who asks for a change, and whether they may. Every change of `commands/commands.py` is told, and is for operators only.

An operator starts, stops and deletes; a viewer looks. Nobody is an operator by default. Records keep the name, which says where
a change came from ("dashboard"); the person behind it, where one has signed in, stands in the log of the process and nowhere else, so
that no bundle carries it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import ParamSpec, TypeVar

from gan_runtime.base.errors import GanRuntimeError, HomeError, RoleError, UnknownRunError
from gan_runtime.records.run_folder import RunDir

DASHBOARD = "dashboard"  # where a page's changes come from, as records say it
log = logging.getLogger("gan_runtime")
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class Role(StrEnum):
    """What somebody may do."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Asker:
    """`name`: as records keep it. `person`: who has signed in, if anybody. `why_not`: why a viewer may only look, and what to do."""

    name: str
    role: Role = Role.VIEWER
    person: str = ""
    why_not: str = "You can look at everything here; only operators start, stop, change or delete."

    @property
    def may_change(self) -> bool:
        """Whether they are an operator."""
        return self.role is Role.OPERATOR


def operator(name: str, person: str = "") -> Asker:
    """Somebody who may change everything."""
    return Asker(name, Role.OPERATOR, person, why_not="")


def for_operators(change: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """The change, which looks at who asks before it does anything else. Raises RoleError for a viewer.

    What the file system refuses is a HomeError, such as in a home that may only be read; of a run that somebody else has deleted
    meanwhile an UnknownRunError.
    """

    @functools.wraps(change)
    def checked(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        asker = named.get("asker")
        if not isinstance(asker, Asker):
            raise TypeError(f"{change.__name__} must be told who asks: asker is an Asker, given by name")
        if not asker.may_change:
            log.warning(
                "%s is refused: a viewer of the %s asked (%s)",
                change.__name__,
                asker.name,
                asker.person or "not signed in",
            )
            raise RoleError(asker.why_not)
        if asker.person:
            log.info("%s asks for %s", asker.person, change.__name__)
        try:
            return change(*arguments, **named)
        except (GanRuntimeError, OSError) as error:
            for run in (given for given in arguments if isinstance(given, RunDir)):
                if not run.path.exists():
                    raise UnknownRunError(
                        f"run {run.run_id} is gone: somebody else has deleted it meanwhile."
                    ) from error
            if isinstance(error, GanRuntimeError):
                raise
            raise HomeError.refused(error) from error

    return checked
