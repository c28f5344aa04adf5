"""TensorFlow's engines of the tests, each built and traced once a process: a test borrows one
and gets it as it was when new.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from gan_runtime.engines.contract import Arrays
from tests.support.engines.small_engines import tf_engine

if TYPE_CHECKING:
    from gan_runtime.engines.tf.engine import TfEngine

_free: dict[tuple[object, ...], list[tuple[TfEngine, Arrays]]] = defaultdict(
    list
)  # with their first states


class Borrower:
    """Takes engines for one test; the same options asked for twice are two engines."""

    def __init__(self) -> None:
        self._borrowed: list[tuple[tuple[object, ...], TfEngine, Arrays]] = []

    def take(self, *arguments: Any, **options: Any) -> TfEngine:
        """As `small_engines.tf_engine`."""
        key = _key(arguments, options)
        if _free[key]:
            engine, begin = _free[key].pop()
            engine.load(begin)
        else:
            engine = tf_engine(*arguments, **options)
            begin = engine.state()
        self._borrowed.append((key, engine, begin))
        return engine

    def give_back(self) -> None:
        """All of them; whatever has become of their state."""
        for key, engine, begin in self._borrowed:
            _free[key].append((engine, begin))


def _key(arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[object, ...]:
    """Equal where two engines would be: options by their values, workloads and data as
    objects, which engines keep alive.
    """
    from gan_runtime.engines.tf import strategy

    values = [*enumerate(arguments), *sorted(options.items())]
    named = (
        (name, value.tobytes() if hasattr(value, "tobytes") else _plain(value))
        for name, value in values
    )
    return strategy.SharedMemoryMirroredStrategy, *named


def _plain(value: Any) -> object:
    return value if isinstance(value, (str, int, float, bool, type(None))) else id(value)
