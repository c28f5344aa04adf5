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
# An answer that may be old is computed again after so many times its own duration: each then takes
# at most 3% of the time, also of a run with ten million numbers.
PAUSE, SLOW_SECONDS = 33.0, 0.1  # quicker ones are as new as is asked
_NAME = re.compile(r"\w+")
Result = TypeVar("Result")


class _Slot:
    """The cache slot of one answer. `lock`: held while the answer is computed; other
    threads wait.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tables: frozenset[str] = frozenset()
        self.version = -1  # version of the tables; -1 without an answer
        self.made_s = 0.0
        self.took_s, self.last_took_s = 0.0, 0.0  # the shorter of the last two durations; the last
        self.answer: Any = None


class QueryCache:
    """Answers of one store, each computed once and dropped when one of its tables changes.

    Thirty browsers on one run ask the same questions within a second, and most answers change once
    an epoch. `views`: name → definition. Methods are thread-safe.
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
        self._asking = threading.local()  # tables of the answers that this thread computes

    def changed(self, tables: Iterable[str] | None = None) -> None:
        """Notes a change of these tables, or of all."""
        with self._lock:
            for table in self._versions if tables is None else tables:
                self._versions[table] += 1

    def once(
        self,
        key: Hashable,
        make: Callable[[], Result],
        sql: str = "",
        is_small: Callable[[Any], bool] = lambda _: True,
        age_s: float = 0.0,
    ) -> Result:
        """The result of `make`, computed once and shared, so it must not be changed.

        It depends on the tables that `sql` names, and on those of nested answers. `is_small`: False
        for an answer that is too large to retain. `age_s`: allowed age after a change; if positive,
        an answer that took SLOW_SECONDS or more can be PAUSE times as old as it took.
        """
        slot = self._slot(key)
        with slot.lock:
            is_of_now = slot.version == self._version(slot.tables)
            is_slow = age_s > 0.0 and slot.took_s >= SLOW_SECONDS
            oldest_s = max(age_s, PAUSE * slot.took_s) if is_slow else age_s
            if slot.version < 0 or not (is_of_now or self._clock() - slot.made_s < oldest_s):
                slot.version = -1
                return self._answer(slot, make, sql, is_small)
            self._note(slot.tables)
            answer: Result = slot.answer
            return answer

    def _answer(
        self, slot: _Slot, make: Callable[[], Result], sql: str, is_small: Callable[[Any], bool]
    ) -> Result:
        asking: list[set[str]] = self._asking.__dict__.setdefault("stack", [])
        asked_s = self._clock()
        before = dict(self._versions)  # a change from here on can be in the answer, or not
        asking.append(set(self._tables(sql)))
        try:
            result = make()
        finally:
            tables = asking.pop()
        self._note(tables)
        names_no_table = bool(sql) and not tables  # then changes cannot be detected
        if is_small(result) and not names_no_table:
            slot.tables, slot.answer, slot.made_s = frozenset(tables), result, asked_s
            took_s = self._clock() - asked_s
            # A single slow one can be due to imports or to other programs.
            slot.took_s, slot.last_took_s = min(took_s, slot.last_took_s), took_s
            slot.version = sum(before[table] for table in tables)
        return result

    def _note(self, tables: Iterable[str]) -> None:
        """Adds tables to the answer that this thread computes."""
        if stack := self._asking.__dict__.get("stack"):
            stack[-1].update(tables)

    def _version(self, tables: frozenset[str]) -> int:
        return sum(self._versions[table] for table in tables)

    def _tables(self, sql: str) -> frozenset[str]:
        """All tables that names in the statement can mean."""
        return frozenset().union(
            *(self._reads.get(name, frozenset()) for name in set(_NAME.findall(sql)))
        )

    def _follow(self, views: Mapping[str, str]) -> None:
        before: dict[str, frozenset[str]] = {}
        while before != self._reads:  # views of views
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


PATIENCE_SECONDS = 5.0  # wait for statements in progress; then the owner retries later
FIRST_SECONDS = 15.0  # during which only the owner uses a new, incomplete database


class ReopenBarrier:
    """Lets statements pass, except while the owner reopens the database.

    The owner's thread never waits for itself.
    """

    def __init__(self) -> None:
        self.is_repaired = False  # by an owner that reopens a damaged database
        self._changed = threading.Condition()
        self._within, self._is_shut = 0, False
        self._owners_until = 0.0
        self._owner = threading.local()
        self._asked_s: float | None = None  # end of the last statement since the last rest

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Context of one statement; waits while the database is reopened."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_shut)
            while not self._is_owner and (remaining_s := self._owners_until - time.monotonic()) > 0:
                self._changed.wait(remaining_s)
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
        """Yields whether no statement has run for `seconds`, since one ran after the last rest. No
        statement starts during the context. The owner's statements do not count.
        """
        with self._changed:
            asked_s = self._asked_s
            is_at_rest = asked_s is not None and time.monotonic() - asked_s >= seconds
            if is_at_rest := is_at_rest and self._within == 0 and not self._is_shut:
                self._asked_s = None
            yield is_at_rest

    @contextmanager
    def still(self) -> Iterator[bool]:
        """Yields whether no statement is in progress; none starts during the context."""
        with self._changed:
            yield self._within == 0 and not self._is_shut

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Context without any statement in progress. Raises StoreError if one does not end."""
        with self._changed:
            self._is_shut = True
            is_empty = self._changed.wait_for(lambda: self._within == 0, PATIENCE_SECONDS)
        try:
            if not is_empty:
                raise StoreError(
                    "the database cannot be reopened yet, as a statement is running: wait a moment."
                )
            yield
        finally:
            with self._changed:
                self._is_shut, self._owners_until = False, time.monotonic() + FIRST_SECONDS
                self._changed.notify_all()

    def open_to_all(self) -> None:
        """Ends the time in which only the owner uses a new database."""
        with self._changed:
            self._owners_until = 0.0
            self._changed.notify_all()

    @contextmanager
    def by_owner(self) -> Iterator[None]:
        """Statements of this thread never wait."""
        self._owner.is_here = True
        try:
            yield
        finally:
            self._owner.is_here = False

    def wait_until(self, is_done: Callable[[], bool], seconds: float) -> bool:
        """Waits until `is_done`, at most `seconds`; returns whether it is. Returns False at once
        for the owner.
        """
        if not self.is_repaired or self._is_owner:
            return False
        with self._changed:
            return self._changed.wait_for(is_done, seconds)

    @property
    def _is_owner(self) -> bool:
        return getattr(self._owner, "is_here", False)
