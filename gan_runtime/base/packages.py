"""Calls of functions that an installed package may have brought."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

log = logging.getLogger("gan_runtime")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_reported: set[str] = set()


def guarded(
    what: str, function: Callable[Arguments, Result], otherwise: Result
) -> Callable[Arguments, Result]:
    """The function; where it raises, it returns `otherwise`. The log says once that `what` is left
    out, and why.
    """
    return replaced(what, function, lambda *_arguments, **_named: otherwise)


def replaced(
    what: str,
    function: Callable[Arguments, Result],
    substitute: Callable[Arguments, Result],
    through: tuple[type[BaseException], ...] = (),
) -> Callable[Arguments, Result]:
    """The function; where it raises, the substitute is called. `through`: exceptions by which the
    function ends as it should.
    """

    passing: tuple[type[BaseException], ...] = (KeyboardInterrupt, *through)

    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except passing:
            raise
        except BaseException:  # a package can raise anything, and can exit
            if what not in _reported:
                _reported.add(what)
                log.exception("%s is left out", what)
            return substitute(*arguments, **named)

    return call
