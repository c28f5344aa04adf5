"""Concurrent statements on one database: a cache of answers, and the barrier behind which the owner
reopens the file.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from gan_runtime.base.errors import StoreError

MAX_ANSWERS = 128
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


class QueryCache:
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
        is_small: Callable[[Any], bool] = lambda _: True,
        age_s: float = 0.0,
    ) -> Made:
        """What `make` gives, made by the first who asks.

        The answer is shared: whoever gets it leaves it as it is.

        It depends on the tables that `sql` names, and on those of all answers asked for while it is
        made. `is_small`: False for an answer that is too large to stay in memory. `age_s`: how old
        the answer may be though a table has changed.
        """
        slot = self._slot(key)
        with slot.lock:
            is_of_now = slot.version == self._version(slot.tables)
            if slot.version < 0 or not (is_of_now or self._clock() - slot.made_s < age_s):
                slot.version = -1
                return self._made(slot, make, sql, is_small)
            self._note(slot.tables)
            kept: Made = slot.answer
            return kept

    def _made(
        self, slot: _Slot, make: Callable[[], Made], sql: str, is_small: Callable[[Any], bool]
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
        names_no_table = bool(sql) and not tables  # of what it is read nobody would tell a change
        if is_small(made) and not names_no_table:
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
                while len(self._slots) >= MAX_ANSWERS:
                    del self._slots[next(iter(self._slots))]
                self._slots[key] = _Slot()
            return self._slots[key]


PATIENCE_SECONDS = (
    5.0  # with statements under way; the owner then looks after its runs and tries again
)
# that a new database is the owner's alone, so that nobody sees half of one; pages say so of those
# that take longer
FIRST_SECONDS = 15.0


class ReopenBarrier:
    """One for each store.

    The owner's thread neither waits before a closed gate nor for an answer that it would have to
    give.
    """

    def __init__(self) -> None:
        self.is_repaired = False  # by an owner that reopens a damaged database
        self._changed = threading.Condition()
        self._within, self._is_shut = 0, False
        self._owners_until = 0.0
        self._owner = threading.local()
        self._asked_s: float | None = (
            None  # when a question ended; None: nobody has asked since the last rest
        )

    @contextmanager
    def passed(self) -> Iterator[None]:
        """For one statement; waits while the database is opened anew."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_shut)
            while not self._is_owner and (left := self._owners_until - time.monotonic()) > 0:
                self._changed.wait(left)
            self._within += 1
        try:
            yield
        finally:
            with self._changed:
                self._within -= 1
                if not self._is_owner:
                    self._asked_s = time.monotonic()
                self._changed.notify_all()

    @contextmanager
    def rest(self, seconds: float) -> Iterator[bool]:
        """Whether somebody has asked since the last rest, and nobody for so many seconds; nobody
        comes in meanwhile. The owner's own statements do not count, as there is always one.
        """
        with self._changed:
            asked_s = self._asked_s
            is_at_rest = asked_s is not None and time.monotonic() - asked_s >= seconds
            if is_at_rest := is_at_rest and self._within == 0 and not self._is_shut:
                self._asked_s = None
            yield is_at_rest

    @contextmanager
    def still(self) -> Iterator[bool]:
        """Whether no statement is under way; nobody comes in meanwhile."""
        with self._changed:
            yield self._within == 0 and not self._is_shut

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Nobody is within, and nobody comes in.

        Raises StoreError when a statement does not end.
        """
        with self._changed:
            self._is_shut = True
            is_empty = self._changed.wait_for(lambda: self._within == 0, PATIENCE_SECONDS)
        try:
            if not is_empty:
                raise StoreError(
                    "the database cannot be opened anew yet: a statement is under way."
                )
            yield
        finally:
            with self._changed:
                self._is_shut, self._owners_until = False, time.monotonic() + FIRST_SECONDS
                self._changed.notify_all()

    def open_to_all(self) -> None:
        """The owner has put in everything that there is."""
        with self._changed:
            self._owners_until = 0.0
            self._changed.notify_all()

    @contextmanager
    def by_owner(self) -> Iterator[None]:
        """Whatever this thread asks within is answered or refused at once, as nobody else
        could help it.
        """
        self._owner.is_here = True
        try:
            yield
        finally:
            self._owner.is_here = False

    def wait_until(self, is_done: Callable[[], bool], seconds: float) -> bool:
        """Whether it is done within so many seconds, for whoever is not the owner."""
        if not self.is_repaired or self._is_owner:
            return False
        with self._changed:
            return self._changed.wait_for(is_done, seconds)

    @property
    def _is_owner(self) -> bool:
        return getattr(self._owner, "is_here", False)
