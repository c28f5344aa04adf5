"""Modules that a library imports by itself where they are installed, and does without where
they are not.
"""

from __future__ import annotations

import sys
from typing import ClassVar


class _KeptOut:
    """Asked first by Python where a module is.

    `None` in sys.modules would do as well, but SciPy takes it for the module.
    """

    names: ClassVar[set[str]] = set()

    @classmethod
    def find_spec(cls, name: str, *_: object) -> None:
        if name in cls.names:
            raise ImportError(f"{name} is kept out of this process")


def keep_out(*names: str) -> None:
    """From now on an import of these modules fails in this process, as if they were not
    installed.
    """
    _KeptOut.names.update(names)
    if _KeptOut not in sys.meta_path:
        sys.meta_path.insert(0, _KeptOut)


def keep_scikit_learn_out() -> None:
    """Keras imports it for wrappers that nobody here uses: about a fifth of the time that a
    trainer needs to load.
    """
    keep_out("sklearn")
