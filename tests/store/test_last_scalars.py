"""Separate tables have the last row of each run and metric, and the scalars of long runs in blocks.
Both match the scalars whatever was ingested when.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import AttemptStart, EpochScores, Record, Scalars
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import scalar_blocks
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store

BLOCK, LONG = 2, 7  # steps
NUMBERS = itertools.count(1)
RUNS_KEPT = 3
METRICS = st.sampled_from(["loss_generator", "loss_discriminator", "mean_real", 'of "its" own'])
VALUES = st.floats(allow_nan=False) | st.just(float("inf"))


@st.composite
def calls(draw: st.DrawFn) -> Record:
    """Scalars of a call or scores of an epoch, at steps that may be stored already."""
    first, metrics = draw(st.integers(1, 12)), draw(st.sets(METRICS, min_size=1))
    if draw(st.booleans()):
        values = {metric: draw(VALUES) for metric in metrics}
        return EpochScores(epoch=1, step=first, wall_s=0.1 * first, values=values)
    length = draw(st.integers(1, 4))
    numbers = {
        metric: draw(st.lists(VALUES, min_size=length, max_size=length)) for metric in metrics
    }
    return Scalars(
        epoch=1,
        first_step=first,
        wall_s=[0.1 * (first + index) for index in range(length)],
        values=numbers,
    )


ATTEMPTS = st.lists(
    st.tuples(st.integers(0, 12), st.lists(calls(), max_size=5)), min_size=1, max_size=4
)


def lines(attempts: list[tuple[int, list[Record]]]) -> list[tuple[int, Record]]:
    """Attempts and records in journal order."""
    return [
        (number, record)
        for number, (resume_step, records) in enumerate(attempts, start=1)
        for record in (AttemptStart(resume_step=resume_step if number > 1 else 0), *records)
    ]


def both(store: Store) -> tuple[list[Any], list[Any]]:
    """Rows of the tables, and the same rows computed from all scalars."""
    last = "FROM ingest.scalars QUALIFY step = max(step) OVER (PARTITION BY run_id, metric)"
    blocks = f"""
        SELECT run_id, attempt, metric, step // {BLOCK} AS block, min(step), max(step),
               count(*) FILTER (isfinite(value)), min(value) FILTER (isfinite(value)),
               max(value) FILTER (isfinite(value))
        FROM (FROM ingest.scalars QUALIFY max(step) OVER (PARTITION BY run_id) >= {LONG})
        GROUP BY run_id, attempt, metric, block
        """
    stored_blocks = f"""
        SELECT run_id, attempt, metric, block, first_step, last_step, numbers, low, high
        FROM ingest.scalar_blocks WHERE run_id IN (
            SELECT run_id FROM ingest.last_scalars GROUP BY run_id HAVING max(step) >= {LONG}
        )
        """
    stored = ("FROM ingest.last_scalars", stored_blocks)
    return tuple(  # type: ignore[return-value]
        [store.rows(f"{sql} ORDER BY ALL") for sql in statements]
        for statements in (stored, (last, blocks))
    )


@pytest.fixture(scope="module", autouse=True)
def short_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scalar_blocks, "BLOCK", BLOCK)
        patch.setattr(scalar_blocks, "LONG", LONG)
        yield


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(attempts=ATTEMPTS, looks=st.sets(st.integers(0, 30)), is_by_new_ones=st.booleans())
def test_last_scalars_and_blocks_match_all_scalars_after_every_read(
    home: Home,
    store: Store,
    new_run: Callable[..., RunDir],
    attempts: list[tuple[int, list[Record]]],
    looks: set[int],
    is_by_new_ones: bool,
) -> None:
    """Checks after the lines numbered in `looks` and at the end, with one ingestor or a new one
    each time. Each example adds a run to the home, which keeps the last few.
    """
    run = new_run(f"quick-{next(NUMBERS):04d}")
    ingestor, records = Ingestor(home, store), lines(attempts)
    for number, (attempt, record) in enumerate(records):
        journal.append(run.trainer_journal(), attempt, record)
        if number in looks or number == len(records) - 1:
            ingestor = Ingestor(home, store) if is_by_new_ones else ingestor
            ingestor.catch_up()
            stored, said = both(store)
            assert stored == said
    for earlier in home.run_dirs()[:-RUNS_KEPT]:
        shutil.rmtree(earlier.path)


def test_last_scalars_are_deleted_with_their_run(
    home: Home, store: Store, new_run: Callable[..., RunDir]
) -> None:
    ingestor = Ingestor(home, store)
    for name in ("quick-0001", "quick-0002"):
        call = Scalars(
            epoch=1, first_step=1, wall_s=[0.1, 0.2], values={"loss_generator": [1.0, 2.0]}
        )
        journal.append(new_run(name).trainer_journal(), 1, call)
    ingestor.catch_up()
    stored = "SELECT run_id, step, value FROM ingest.last_scalars ORDER BY ALL"
    assert store.rows(stored) == [("quick-0001", 2, 2.0), ("quick-0002", 2, 2.0)]
    ingestor.forget("quick-0001")
    assert store.rows(stored) == [("quick-0002", 2, 2.0)]
