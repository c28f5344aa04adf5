"""The locks that a process was handed, as its environment tells of them: 4=cpu,5=gpu=shared."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

HANDED_VARIABLE = "GAN_RUNTIME_HELD_LOCKS"
_SHARED = "shared"


@dataclass(frozen=True)
class Held:
    """`number`: of the open file; `key`: the name of the lock; `is_shared`: with others."""

    number: int
    key: str
    is_shared: bool = False

    @property
    def word(self) -> str:
        """Such as 4=cpu."""
        return "=".join((str(self.number), self.key, *((_SHARED,) if self.is_shared else ())))


def told(held: list[Held]) -> str:
    """For a child."""
    return ",".join(one.word for one in held)


def handed(environment: Mapping[str, str]) -> list[Held]:
    """What this process was handed, kept from every program that it begins itself unless that is told to inherit them."""
    kept = []
    for word in environment.get(HANDED_VARIABLE, "").split(","):
        number, _, rest = word.partition("=")
        key, _, how = rest.partition("=")
        if number.isdecimal() and key:
            try:
                os.set_inheritable(int(number), False)
            except OSError:  # begun by hand, in the environment of a trainer
                continue
            kept.append(Held(int(number), key, how == _SHARED))
    return kept
