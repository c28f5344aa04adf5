"""Answers that several readers want at the same time: each is made once, and forgotten as soon as a
table that it was read from changes.

Thirty browsers that look at one run ask the same questions within one second, and most of what they
ask changes once an epoch. Nothing is older here than what they would be told, but where whoever
asks says that it may be.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

MOST_KEPT = 128
_NAME = re.compile(r"\w+")
Made = TypeVar("Made")


class _Slot:
    """The place of one answer.

    `lock`: whoever comes while it is made waits for it instead of making it again.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tables: frozenset[str] = frozenset()
        self.version = -1  # of these tables when it was made; -1: not made
        self.made_s = 0.0
        self.answer: Any = None


class Memo:
    """Of one store.

    `views`: name → definition; they are read as what they are made of. Every method may be called
    from any thread.
    """

    def __init__(
        self,
        tables: Iterable[str],
        views: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._slots: dict[Hashable, _Slot] = {}
        self._versions = dict.fromkeys(tables, 0)
        self._reads = {name: frozenset([name]) for name in self._versions}
        self._follow(views)
        self._asking = (
            threading.local()
        )  # of this thread: the tables read by each answer that is being made

    def changed(self, tables: Iterable[str] | None = None) -> None:
        """These tables hold something else, or any of them."""
        with self._lock:
            for table in self._versions if tables is None else tables:
                self._versions[table] += 1

    def once(
        self,
        key: Hashable,
        make: Callable[[], Made],
        sql: str = "",
        is_kept: Callable[[Any], bool] = lambda _: True,
        age_s: float = 0.0,
    ) -> Made:
        """What `make` gives, made by the first who asks.

        The answer is shared: whoever gets it leaves it as it is.

        It depends on the tables that `sql` names, and on those of all answers asked for while it is
        made. `is_kept`: False for an answer that is too large to stay in memory. `age_s`: how old
        the answer may be though a table has changed.
        """
        slot = self._slot(key)
        with slot.lock:
            is_of_now = slot.version == self._version(slot.tables)
            if slot.version < 0 or not (is_of_now or self._clock() - slot.made_s < age_s):
                slot.version = -1
                return self._made(slot, make, sql, is_kept)
            self._note(slot.tables)
            kept: Made = slot.answer
            return kept

    def _made(
        self, slot: _Slot, make: Callable[[], Made], sql: str, is_kept: Callable[[Any], bool]
    ) -> Made:
        asking: list[set[str]] = self._asking.__dict__.setdefault("stack", [])
        asked_s = self._clock()
        before = dict(self._versions)  # what changes meanwhile may be in the answer, or not
        asking.append(set(self._tables(sql)))
        try:
            made = make()
        finally:
            tables = asking.pop()
        self._note(tables)
        names_none = bool(sql) and not tables  # of what it is read nobody would tell a change
        if is_kept(made) and not names_none:
            slot.tables, slot.answer, slot.made_s = frozenset(tables), made, asked_s
            slot.version = sum(before[table] for table in tables)
        return made

    def _note(self, tables: Iterable[str]) -> None:
        """The answer that this thread is making has read these."""
        if stack := self._asking.__dict__.get("stack"):
            stack[-1].update(tables)

    def _version(self, tables: frozenset[str]) -> int:
        return sum(self._versions[table] for table in tables)

    def _tables(self, sql: str) -> frozenset[str]:
        """All that the names in it can mean: too many rather than too few."""
        return frozenset().union(
            *(self._reads.get(name, frozenset()) for name in _NAME.findall(sql))
        )

    def _follow(self, views: Mapping[str, str]) -> None:
        before: dict[str, frozenset[str]] = {}
        while before != self._reads:  # a view of views of views
            before = dict(self._reads)
            for name, definition in views.items():
                self._reads[name] = self._reads.get(name, frozenset()) | self._tables(definition)

    def _slot(self, key: Hashable) -> _Slot:
        with self._lock:
            if key not in self._slots:
                while len(self._slots) >= MOST_KEPT:
                    del self._slots[next(iter(self._slots))]
                self._slots[key] = _Slot()
            return self._slots[key]
