"""Who asks for a change, and whether they may.

`Commands` is bound to an actor, and its changes are for operators only.

An operator starts, stops and deletes; a viewer looks. Nobody is an operator by default. Records
keep the name, which says where a change came from ("dashboard"); the person behind it, where one
has signed in, is in the log of the process and nowhere else, so that no bundle carries it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DASHBOARD = "dashboard"  # where a page's changes come from, as records say it


class Role(StrEnum):
    """What somebody may do."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Actor:
    """`name`: as records keep it.

    `person`: who has signed in, if anybody. `why_not`: why a viewer may only look, and what to do.
    """

    name: str
    role: Role = Role.VIEWER
    person: str = ""
    why_not: str = "You can look at everything here; only operators start, stop, change or delete."

    @property
    def may_change(self) -> bool:
        """Whether they are an operator."""
        return self.role is Role.OPERATOR


def operator(name: str, person: str = "") -> Actor:
    """Somebody who may change everything."""
    return Actor(name, Role.OPERATOR, person, why_not="")
