"""The barrier in front of the database: no statement runs while it is reopened, and the owner waits
only for running statements.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from gan_runtime.base.errors import StoreError
from gan_runtime.store import concurrency
from gan_runtime.store.concurrency import ReopenBarrier

Wait = Callable[..., Any]


def in_a_thread(act: Callable[[], None]) -> threading.Thread:
    """Starts a thread."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def test_query_waits_while_the_barrier_is_shut() -> None:
    doors, steps = ReopenBarrier(), []

    def ask() -> None:
        with doors.passed():
            steps.append("asked")

    with doors.shut():
        asker = in_a_thread(ask)
        asker.join(0.1)
        assert (asker.is_alive(), steps) == (True, [])
        steps.append("opened anew")
    doors.open_to_all()
    asker.join()
    assert steps == ["opened anew", "asked"]


def test_barrier_shuts_after_the_last_statement_ends(wait_until: Wait) -> None:
    doors, steps, may_end = ReopenBarrier(), [], threading.Event()

    def ask() -> None:
        with doors.passed():
            steps.append("begun")
            may_end.wait()
            steps.append("ended")

    asker = in_a_thread(ask)
    wait_until(lambda: steps, "the statement is under way")

    def shut() -> None:
        with doors.shut():
            steps.append("shut")

    owner = in_a_thread(shut)
    owner.join(0.1)
    assert steps == ["begun"]
    may_end.set()
    owner.join()
    asker.join()
    assert steps == ["begun", "ended", "shut"]


def test_endless_statement_keeps_the_barrier_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "PATIENCE_SECONDS", 0.05)
    doors = ReopenBarrier()
    with doors.passed(), pytest.raises(StoreError, match="a statement is running"), doors.shut():
        raise AssertionError("it was opened anew")
    doors.open_to_all()
    with doors.passed():
        pass


def test_new_database_is_first_available_to_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "FIRST_SECONDS", 60.0)
    doors, steps = ReopenBarrier(), []

    def ask() -> None:
        with doors.passed():
            steps.append("asked")

    with doors.by_owner():
        with doors.shut():
            pass
        asker = in_a_thread(ask)
        with doors.passed():
            steps.append("filled")
        asker.join(0.1)
        assert steps == ["filled"]
        doors.open_to_all()
    asker.join()
    assert steps == ["filled", "asked"]


def test_only_a_repairable_database_is_waited_for() -> None:
    doors = ReopenBarrier()
    assert not doors.wait_until(lambda: True, 60.0)  # the command line's in-memory store: no repair
    doors.is_repaired = True
    assert doors.wait_until(lambda: True, 60.0)
    with doors.by_owner():
        assert not doors.wait_until(lambda: False, 60.0)
