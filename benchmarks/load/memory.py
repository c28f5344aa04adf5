"""Memory of the dashboard on a home of many runs: with every page visited, and over an hour of live
data, replayed faster than it was made.

A replayed run writes what a trainer would in an hour (6 numbers a step, an epoch's end with its
histograms and image once a minute) while windows show Live. Memory with every page visited is
reported twice: right after the last page, and once the database has been idle long enough to
release what DuckDB had read (`Store.rest`). Growth: the highest of the last tenth over the highest
of the tenth before the middle.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import psutil

from benchmarks import pages
from benchmarks.load import client, replay, stage
from benchmarks.load.figures import Figure
from benchmarks.load.scale import Scale
from gan_runtime.records.home import Home
from gan_runtime.store.store import REST_SECONDS

STEPS_PER_S, EPOCH_STEPS, WINDOWS = 20.0, 1_200, 3
SAMPLES = 100
TICKS = 3.0  # seconds after REST_SECONDS within which the database releases its memory


def measure(home: Home, scale: Scale) -> Iterator[Figure]:
    """Measures after one window has visited every page, then over the hour."""
    with stage.served(home) as (process, address):
        stage.wait_until_quiet(process)
        begun_mb = round(process.memory_info().rss / 1e6)
        asyncio.run(_visit_all(address, scale.runs))
        facts: dict[str, Any] = {"pages": len(pages.visits(scale.runs)), "runs": scale.runs}
        reason = (
            f"{begun_mb} MB before the first page: the libraries, and DuckDB with {scale.runs:,}"
            " runs"
        )
        yield Figure("memory_visited_mb", process.memory_info().rss / 1e6, facts, reason)
        time.sleep(REST_SECONDS + TICKS)
        stage.wait_until_quiet(process)
        yield Figure("memory_mb", process.memory_info().rss / 1e6, facts)
        name, seconds = replay.free_name(home), scale.replayed_s
        run = replay.submitted(home, name)
        words = ("--steps-per-s", str(STEPS_PER_S), "--seconds", str(seconds))
        faster = ("--epoch-steps", str(EPOCH_STEPS), "--faster", str(scale.faster))
        with replay.replaying(run, *words, *faster) as writer:
            time.sleep(1.0)
            with stage.crowd(address, name, min(WINDOWS, scale.sessions)):
                resident = _followed(process, seconds / scale.faster)
            writer.wait()
    tenth = max(1, len(resident) // 10)
    middle, end = resident[len(resident) // 2 - tenth : len(resident) // 2], resident[-tenth:]
    facts = {
        "replayed_s": seconds,
        "times_faster": scale.faster,
        "at_begin_mb": round(resident[0]),
        "at_end_mb": round(end[-1]),
    }
    yield Figure("memory_growth_mb", max(end) - max(middle or end), facts)


def _followed(process: psutil.Process, seconds: float) -> list[float]:
    """Resident memory in 10⁶ bytes, at equal intervals."""
    begin = time.monotonic()
    sizes: list[float] = []
    while time.monotonic() - begin < seconds or len(sizes) < 2:
        sizes.append(process.memory_info().rss / 1e6)
        time.sleep(max(0.1, seconds / SAMPLES))
    return sizes


async def _visit_all(address: str, runs: int) -> None:
    async with client.opened(address) as session:
        for page, query in pages.visits(runs).items():
            words = "&".join(f"{name}={value}" for name, value in query.items())
            await session.visit("" if page == "home" else pages.page_of(page), words)
