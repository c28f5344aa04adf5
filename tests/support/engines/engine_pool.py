"""TensorFlow engines for tests, each built and traced once per process: a test borrows one in its
initial state.
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
)  # with their initial states


class Borrower:
    """Borrows engines for one test; requesting the same options twice gives two engines."""

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
        """Returns all engines, whatever their state."""
        for key, engine, begin in self._borrowed:
            _free[key].append((engine, begin))


def _key(arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[object, ...]:
    """Equal for equal engines: compares options by value, and workloads and data, which engines
    keep alive, as objects.
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
