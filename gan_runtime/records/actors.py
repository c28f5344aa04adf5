"""Actors: an operator starts, stops and deletes; a viewer only reads. The default is a viewer.

Records store the actor's name, which says where a change came from ("dashboard"). The signed-in
user appears in the process log only, so that no bundle carries it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DASHBOARD = "dashboard"  # the actor of a page, as in records


class Role(StrEnum):
    """What an actor may do."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Actor:
    """`name`: as in records. `person`: the signed-in user, if any. `why_not`: why a viewer cannot
    change anything, and what to do.
    """

    name: str
    role: Role = Role.VIEWER
    person: str = ""
    why_not: str = "You can view everything here; only operators can start, stop, change or delete."

    @property
    def may_change(self) -> bool:
        """Whether the actor is an operator."""
        return self.role is Role.OPERATOR


def operator(name: str, person: str = "") -> Actor:
    """An actor who may change everything."""
    return Actor(name, Role.OPERATOR, person, why_not="")
