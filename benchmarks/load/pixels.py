"""The delay from a completed step to a changed pixel, in a browser on the page of a run whose
journal another process writes.

The page's sentence "step N of M" is watched in the browser (a mutation observer, with the browser's
clock, which is this machine's): when N first appears, the next frame is drawn, and the chart of
losses came in the same refresh. The moment of step N is that of its journal line, which is written
when the step's call ends. Each line of the journal that the page skips counts as seen with the next
one.
"""

from __future__ import annotations

import bisect
import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime
from typing import Any

from benchmarks.load import replay, stage
from benchmarks.load.figures import Figure, p95
from benchmarks.load.scale import Scale
from benchmarks.load.views import PATIENCE_MS, RENDERED, chromium
from dashboard import rendering
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir

STEPS_PER_S = 100.0
WATCH = r"""() => { window.seen = []; let last = -1;
    const look = () => { const found = document.body.innerText.match(/step ([\d\s\u2009\u202f,]+) of/);
        const step = found ? parseInt(found[1].replace(/\D/g, '')) : -1;
        if (step > last) { last = step; requestAnimationFrame(() => window.seen.push([step, Date.now() / 1000])); } };
    new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true}); look(); }"""  # noqa: E501


def measure(home: Home, scale: Scale) -> Iterator[Figure]:
    """Measures one window alone, then together with all others."""
    yield measured("pixel_p95_s", home, scale, sessions=0)
    yield measured("pixel_p95_s_thirty", home, scale, sessions=scale.sessions)


def measured(name: str, home: Home, scale: Scale, sessions: int) -> Figure:
    """`sessions`: further windows on the same run."""
    with stage.served(home) as (_, address):
        run = replay.submitted(home, replay.free_name(home))
        seconds = 60 + 3 * scale.seconds + 4.0 * sessions
        with (
            replay.replaying(run, "--steps-per-s", str(STEPS_PER_S), "--seconds", str(seconds)),
            stage.crowd(address, run.run_id, sessions) if sessions else nullcontext(),
        ):
            pixels = _pixels(f"{address}/run?run={run.run_id}", scale.seconds)
        waited = delays(_written(run), pixels)
    if not waited:
        return Figure(name, None, {}, "the page showed no step")
    facts = {
        "steps_seen": len(pixels),
        "median_s": round(sorted(waited)[len(waited) // 2], 3),
        "other_windows": sessions,
    }
    every = rendering.interval_of(sessions + 1, replay.ACCELERATOR)
    often = f"each of {sessions + 1} pages is redrawn every {every:g} s" if sessions else ""
    return Figure(name, p95(waited), facts, often)


def _pixels(where: str, seconds: float) -> list[tuple[int, float]]:
    """The steps that the page showed, and when."""
    with chromium() as browser:
        page = browser.new_page()
        page.goto(where)
        page.wait_for_function(RENDERED, arg=True, timeout=PATIENCE_MS)
        page.wait_for_function(
            "() => document.body.innerText.includes('step ')", timeout=PATIENCE_MS
        )
        page.evaluate(WATCH)
        time.sleep(seconds)
        steps: list[tuple[int, float]] = [
            (int(step), float(at)) for step, at in page.evaluate("window.seen")
        ]
        return steps


def _written(run: RunDir) -> list[tuple[int, float]]:
    """The last step of each call, and the time of its line."""
    calls: list[dict[str, Any]] = [
        json.loads(line)
        for line in run.trainer_journal().read_bytes().splitlines()
        if b'"scalars"' in line
    ]
    return [
        (
            call["first_step"] + len(call["wall_s"]) - 1,
            datetime.fromisoformat(call["at"]).timestamp(),
        )
        for call in calls
    ]


def delays(written: list[tuple[int, float]], pixels: list[tuple[int, float]]) -> list[float]:
    """Of each line written while the page was watched: until it, or a later one, was on the
    screen.
    """
    steps = [step for step, _ in pixels]
    waited = []
    for step, at in written:
        place = bisect.bisect_left(steps, step)
        if pixels and step > steps[0] and place < len(pixels):
            waited.append(pixels[place][1] - at)
    return waited
