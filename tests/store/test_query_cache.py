"""Answers are computed once for all callers, and again after a change of a table that they were
read from.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pandas as pd
import pytest

from gan_runtime.store.concurrency import MAX_ANSWERS, QueryCache
from gan_runtime.store.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store()
    with opened.transaction() as writer:
        writer.append("phases", [("one", 1, "build", 1.0)])
    yield opened
    opened.close()


def seconds_of_phases(store: Store, run_id: str) -> float:
    return float(store.rows("SELECT sum(seconds) FROM phases WHERE run_id = ?", [run_id])[0][0])


def test_new_rows_are_in_the_next_answer(store: Store) -> None:
    assert store.once(seconds_of_phases, "one") == 1.0
    with store.transaction() as writer:
        writer.append("phases", [("one", 1, "trace", 2.0)])
    assert store.once(seconds_of_phases, "one") == 3.0
    with store.transaction() as writer:
        writer.execute("DELETE FROM ingest.phases WHERE phase = ?", ["build"])
    assert store.once(seconds_of_phases, "one") == 2.0


def test_answer_through_nested_views_follows_their_tables(store: Store) -> None:
    count = "SELECT count(*) FROM numbers"
    assert store.rows(count) == [(0,)]
    with store.transaction() as writer:
        writer.append("scalars", [("one", 1, 1, 1, "loss", 0.5, 0.1)])
    assert store.rows(count) == [(1,)]


def test_a_rolled_back_change_is_in_no_answer(store: Store) -> None:
    def fails() -> None:
        with store.transaction() as writer:
            writer.append("phases", [("one", 1, "trace", 2.0)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert store.once(seconds_of_phases, "one") == 1.0


def test_writing_to_a_frame_changes_no_other_answer(store: Store) -> None:
    question = "SELECT phase, seconds FROM phases"
    mine = store.frame(question)
    mine["seconds"] = 7.0
    mine.loc[0, "phase"] = "mine"
    pd.testing.assert_frame_equal(
        store.frame(question), pd.DataFrame({"phase": ["build"], "seconds": [1.0]})
    )


def counted(memo: QueryCache, key: str, sql: str, calls: list[str]) -> str:
    return memo.once(key, lambda: calls.append(key) or key, sql)  # type: ignore[func-returns-value]


def test_only_answers_from_a_changed_table_are_recomputed() -> None:
    memo, calls = (
        QueryCache(["steps", "epochs"], {"all_steps": "SELECT * FROM ingest.steps"}),
        list[str](),
    )
    for _ in range(2):
        counted(memo, "a", "SELECT 1 FROM all_steps", calls)
        counted(memo, "b", "SELECT 1 FROM epochs", calls)
    assert calls == ["a", "b"]
    memo.changed(["steps"])
    counted(memo, "a", "SELECT 1 FROM all_steps", calls)
    counted(memo, "b", "SELECT 1 FROM epochs", calls)
    assert calls == ["a", "b", "a"]


def test_nested_views_are_followed_in_any_order_of_names() -> None:
    views = {
        "newest": "SELECT * FROM some",
        "some": "SELECT * FROM all_steps",
        "all_steps": "SELECT * FROM ingest.steps",
    }
    memo, calls = QueryCache(["steps"], views), list[str]()
    for _ in range(2):
        counted(memo, "a", "SELECT 1 FROM newest", calls)
    assert calls == ["a"]
    memo.changed(["steps"])
    counted(memo, "a", "SELECT 1 FROM newest", calls)
    assert calls == ["a", "a"]


def test_answer_depends_on_the_tables_of_answers_inside_it() -> None:
    memo, calls = QueryCache(["steps", "epochs"], {}), list[str]()

    def outer() -> None:
        memo.once("outer", lambda: calls.append("outer") or counted(memo, "a", "FROM steps", calls))  # type: ignore[func-returns-value]

    counted(memo, "a", "FROM steps", calls)
    outer()
    outer()
    assert calls == ["a", "outer"]
    memo.changed(["steps"])
    outer()
    assert calls == ["a", "outer", "outer", "a"]


def test_query_waits_for_the_answer_another_thread_computes() -> None:
    memo, calls, may_end, begun = (
        QueryCache([], {}),
        list[int](),
        threading.Event(),
        threading.Event(),
    )

    def make() -> int:
        begun.set()
        may_end.wait(10)
        calls.append(1)
        return 42

    answers: list[int] = []
    askers = [
        threading.Thread(target=lambda: answers.append(memo.once("key", make))) for _ in range(5)
    ]
    for asker in askers:
        asker.start()
    assert begun.wait(10)
    may_end.set()
    for asker in askers:
        asker.join()
    assert answers == [42] * 5
    assert calls == [1]


def test_change_during_a_computation_makes_the_next_query_recompute() -> None:
    memo, calls = QueryCache(["steps"], {}), list[str]()
    memo.once("key", lambda: memo.changed(["steps"]) or calls.append("old"), "FROM steps")  # type: ignore[func-returns-value]
    counted(memo, "key", "FROM steps", calls)
    assert calls == ["old", "key"]


def test_answer_from_no_known_table_is_not_cached() -> None:
    memo, calls = QueryCache(["steps"], {}), list[str]()
    for _ in range(2):
        counted(memo, "size", "PRAGMA database_size", calls)
    assert calls == ["size", "size"]


def test_failed_answer_is_retried_and_the_cache_is_bounded() -> None:
    memo = QueryCache([], {})
    with pytest.raises(ZeroDivisionError):
        memo.once("key", lambda: 1 / 0)
    assert memo.once("key", lambda: 2) == 2
    calls: list[str] = []
    for number in range(MAX_ANSWERS + 1):
        counted(memo, str(number), "", calls)
    counted(memo, "0", "", calls)
    assert calls.count("0") == 2, "the oldest is let go"


def test_answer_with_an_age_ignores_changes_until_it_expires() -> None:
    now, calls = [100.0], iter(range(10))
    memo = QueryCache(["phases"], {}, clock=lambda: now[0])

    def ask() -> int:
        return memo.once("seconds", lambda: next(calls), "FROM phases", age_s=3.0)

    assert ask() == 0
    memo.changed(["phases"])
    now[0] += 2.9
    assert ask() == 0
    now[0] += 0.2
    assert ask() == 1
    now[0] += 60.0
    assert ask() == 1, "nothing has changed"


def test_answers_that_are_slow_twice_take_at_most_three_percent_of_the_time() -> None:
    now, calls = [0.0], list[float]()
    memo = QueryCache(["steps"], {}, clock=lambda: now[0])

    def compute(seconds: float) -> None:
        calls.append(now[0])
        now[0] += seconds

    def ask_each_second(times: int, age_s: float, seconds: float) -> int:
        before = len(calls)
        for _ in range(times):
            memo.changed(["steps"])
            memo.once(age_s, lambda: compute(seconds), "FROM steps", age_s=age_s)
            now[0] += 1.0
        return len(calls) - before

    assert ask_each_second(2, age_s=0.5, seconds=0.2) == 2, (
        "the first can be slow for other reasons"
    )
    assert ask_each_second(66, age_s=0.5, seconds=0.2) / 66 * 0.2 <= 0.03
    assert ask_each_second(10, age_s=0.0, seconds=0.2) == 10, "nothing old was allowed"
    assert ask_each_second(10, age_s=0.25, seconds=0.09) == 10, "quick ones are as new as before"


def test_current_query_gets_new_rows_despite_a_cached_answer(
    store: Store,
) -> None:
    assert store.lately(seconds_of_phases, "one") == 1.0
    with store.transaction() as writer:
        writer.append("phases", [("one", 1, "trace", 2.0)])
    assert store.lately(seconds_of_phases, "one") == 1.0
    assert store.once(seconds_of_phases, "one") == 3.0
    assert store.lately(seconds_of_phases, "one") == 3.0


@pytest.mark.parametrize(
    ("column", "is_kept"),
    [
        ("range(6_000)", True),
        ("range(7_000)", False),
        ("repeat('a', 190_000)::BLOB", True),
        ("repeat('a', 210_000)::BLOB", False),
    ],
)
def test_answer_with_long_lists_or_large_images_is_not_cached(
    store: Store, column: str, is_kept: bool
) -> None:
    """Each number in a list is a separate object of 32 bytes."""
    question = f"SELECT {column} FROM phases"
    (answer,), (again,) = store.rows(question), store.rows(question)
    assert answer == again
    assert (answer is again) == is_kept
