"""Objects that a declaration names by their place, so that reading it imports no module, and
calls of functions of packages.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

log = logging.getLogger("gan_runtime")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def loaded(place: str) -> Any:
    """The object at "module:name"."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def guarded(
    what: str, function: Callable[Arguments, Result], otherwise: Result
) -> Callable[Arguments, Result]:
    """The function, which may be of a package: where it raises, it returns `otherwise`, and the log
    says that `what` is left out, and why.
    """

    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except Exception:  # a package can raise anything, and no page must end with it
            log.exception("%s is left out", what)
            return otherwise

    return call
