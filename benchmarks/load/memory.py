"""Memory of the dashboard on the large home: after a visit of every page, and over an hour of live
data, replayed faster than real time.

A replayed run writes what a trainer would in an hour (6 numbers a step, and each minute an epoch's
end with histograms and image) while windows show Live. Memory after the visits is reported twice:
right after the last page, and once the idle database has released what DuckDB had read
(`Store.rest`). Growth: the maximum of the last tenth minus that of the tenth before the middle.
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
RELEASE_SECONDS = 3.0  # after REST_SECONDS the database releases its memory within these


def measure(home: Home, scale: Scale) -> Iterator[Figure]:
    """Measures after one window has visited every page, then over the replayed hour."""
    with stage.served(home) as (process, address):
        stage.wait_until_idle(process)
        initial_mb = round(process.memory_info().rss / 1e6)
        asyncio.run(_visit_all(address, scale.runs))
        facts: dict[str, Any] = {"pages": len(pages.visits(scale.runs)), "runs": scale.runs}
        reason = (
            f"{initial_mb} MB before the first page: the libraries, and DuckDB with {scale.runs:,}"
            " runs"
        )
        yield Figure("memory_visited_mb", process.memory_info().rss / 1e6, facts, reason)
        time.sleep(REST_SECONDS + RELEASE_SECONDS)
        stage.wait_until_idle(process)
        yield Figure("memory_mb", process.memory_info().rss / 1e6, facts)
        name, seconds = replay.free_name(home), scale.replayed_s
        run = replay.submit_run(home, name)
        pace = ("--steps-per-s", str(STEPS_PER_S), "--seconds", str(seconds))
        length = ("--epoch-steps", str(EPOCH_STEPS), "--faster", str(scale.faster))
        with replay.replaying(run, *pace, *length) as writer:
            time.sleep(1.0)
            with stage.crowd(address, name, min(WINDOWS, scale.sessions)):
                resident = _resident_mb(process, seconds / scale.faster)
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


def _resident_mb(process: psutil.Process, seconds: float) -> list[float]:
    """Resident memory at equal intervals, in 10⁶ bytes."""
    begin = time.monotonic()
    sizes: list[float] = []
    while time.monotonic() - begin < seconds or len(sizes) < 2:
        sizes.append(process.memory_info().rss / 1e6)
        time.sleep(max(0.1, seconds / SAMPLES))
    return sizes


async def _visit_all(address: str, runs: int) -> None:
    async with client.open_session(address) as session:
        for page, query in pages.visits(runs).items():
            parameters = "&".join(f"{name}={value}" for name, value in query.items())
            await session.visit("" if page == "home" else pages.page_of(page), parameters)
