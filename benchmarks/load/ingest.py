"""The speed of ingest, the size of the database, and the time of the pages' queries.

A long run: all numbers in one run; its losses are asked for as its page does at each refresh.

Ended runs: journals of numbers only, ingested at once. A live run: each tick writes and ingests
calls of 50 steps with six numbers each, as an owner does four times a second. Its figure is the
highest rate that these ticks could sustain.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import large_home, pages
from benchmarks.load import replay
from benchmarks.load.figures import PAGES, Figure, p95
from benchmarks.load.scale import Scale
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import JournalWriter
from gan_runtime.store import queries as stored_queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision.owner_thread import TICK_SECONDS

BATCH_RUNS, LIVE_STEPS_PER_S, CURVES = 20, 2_000, 9


def measure(scale: Scale) -> Iterator[Figure]:
    """Ingest of ended runs and of a live run, in separate homes."""
    with tempfile.TemporaryDirectory(prefix="gan-load-") as folder:
        rows = min(scale.rows, 2_000_000)
        home = large_home.create(
            Path(folder) / "ended", min(scale.runs, BATCH_RUNS), rows, epochs=1
        )
        begin, store = time.perf_counter(), Store(home.database)
        Ingestor(home, store).catch_up()
        seconds = time.perf_counter() - begin
        row_count = int(store.rows("SELECT count(*) FROM scalars")[0][0])
        store.close()
        yield Figure("ingest_rows_per_s", row_count / seconds, {"rows": row_count})
        size = home.database.stat().st_size / 1e6
        facts = {"rows": row_count, "journals_mb": round(_megabytes(home), 1)}
        yield Figure("bytes_per_million_rows", size / row_count * 1e6, facts)
        yield _live(Home(Path(folder) / "live").prepare(), scale.seconds)
    yield _long_curve(scale.rows)


def _long_curve(rows: int) -> Figure:
    """The processor time of the losses of one run, median."""
    with tempfile.TemporaryDirectory(prefix="gan-load-") as folder:
        home = large_home.create(Path(folder), 1, rows, epochs=1)
        store, run_ids = Store(home.database), [home.run_dirs()[0].run_id]
        Ingestor(home, store).catch_up()
        seconds = []
        for _ in range(CURVES):
            store.forget_answers()
            begin = time.process_time()
            stored_queries.curves(store, run_ids, ("loss_generator", "loss_discriminator"))
            seconds.append(time.process_time() - begin)
        steps = int(store.rows("SELECT max(step) FROM scalars")[0][0])
        store.close()
    return Figure("long_curve_ms", 1e3 * statistics.median(seconds), {"steps": steps})


def _megabytes(home: Home) -> float:
    return sum(path.stat().st_size for path in home.runs.glob("*/*.jsonl")) / 1e6


def _live(home: Home, seconds: float) -> Figure:
    """Ticks at LIVE_STEPS_PER_S; only the ingest is timed."""
    run, random, store = (
        replay.submit_run(home, "quick-0001"),
        np.random.default_rng(1),
        Store(home.database),
    )
    ingestor, per_tick = Ingestor(home, store), int(LIVE_STEPS_PER_S * TICK_SECONDS)
    tick_seconds, step = [], 0
    with JournalWriter(run.trainer_journal()) as writer:
        writer.write(
            journal.AttemptStart(resume_step=0),
            journal.StatusChange(status="running", reason="training"),
        )
        ingestor.catch_up()
        for _ in range(max(2, int(seconds / TICK_SECONDS))):
            for first in range(step + 1, step + per_tick + 1, large_home.STEPS_PER_CALL):
                writer.write(
                    large_home.call_scalars(
                        journal.now(), 1, first, large_home.STEPS_PER_CALL, random
                    )
                )
            step += per_tick
            begin = time.perf_counter()
            ingestor.catch_up_news(at_once=True)
            tick_seconds.append(time.perf_counter() - begin)
    stored = int(store.rows("SELECT max(step) FROM scalars")[0][0])
    assert stored == step, f"{stored} of {step} steps were ingested"
    store.close()
    facts = {
        "steps": step,
        "rows_per_step": len(large_home.METRICS),
        "slowest_tick_s": round(max(tick_seconds), 3),
    }
    return Figure("ingest_steps_per_s", step / sum(tick_seconds), facts)


def queries(home: Home, scale: Scale) -> Iterator[Figure]:
    """Every query of the pages while new sessions visit them. No answer comes from the cache."""
    import os

    from gan_runtime.records.home import HOME_VARIABLE

    seconds: list[tuple[float, str]] = []
    answer_now = Store._answer_now

    def timed(store: Store, sql: str, parameters: Any = None) -> Any:
        begin = time.perf_counter()
        answer = answer_now(store, sql, parameters)
        seconds.append((time.perf_counter() - begin, " ".join(sql.split())))
        return answer

    os.environ[HOME_VARIABLE] = str(home.path)
    from dashboard.frame import session

    session.open_early()
    with mock.patch.object(Store, "_answer_now", timed):
        for _ in range(max(1, scale.visits // 4)):
            for page in PAGES:
                session.runtime().store.forget_answers()
                pages.visit(pages.page_of(page), pages.visits(scale.runs)[page], times=1)
    session.close()
    slowest, sql = max(seconds)
    facts = {
        "queries": len(seconds),
        "median_ms": round(1e3 * sorted(seconds)[len(seconds) // 2][0], 2),
        "slowest_ms": round(1e3 * slowest, 1),
        "slowest": sql[:100],
    }
    yield Figure("query_p95_ms", 1e3 * p95([duration for duration, _ in seconds]), facts)
