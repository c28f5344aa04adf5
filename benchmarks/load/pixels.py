"""The delay from a completed step to a changed pixel, in a browser on the page of a run whose
journal another process writes.

A mutation observer in the browser watches the text "step N of M" and records when the frame with a
new N is drawn; the loss chart comes in the same refresh. Step N is complete at the time of its
journal line, which is written when the step's call ends. A line that the page skips counts as seen
with the next one.
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
from benchmarks.load.views import RENDERED, TIMEOUT_MS, chromium
from dashboard import rendering
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir

STEPS_PER_S = 100.0
WATCH = r"""() => { window.seen = []; let last = -1;
    const check = () => { const match = document.body.innerText.match(/step ([\d\s\u2009\u202f,]+) of/);
        const step = match ? parseInt(match[1].replace(/\D/g, '')) : -1;
        if (step > last) { last = step; requestAnimationFrame(() => window.seen.push([step, Date.now() / 1000])); } };
    new MutationObserver(check).observe(document.body, {subtree: true, childList: true, characterData: true}); check(); }"""  # noqa: E501


def measure(home: Home, scale: Scale) -> Iterator[Figure]:
    """Measures one window alone, then with all others."""
    yield delay_figure("pixel_p95_s", home, scale, sessions=0)
    yield delay_figure("pixel_p95_s_thirty", home, scale, sessions=scale.sessions)


def delay_figure(name: str, home: Home, scale: Scale, sessions: int) -> Figure:
    """The p95 delay. `sessions`: further windows on the same run."""
    with stage.served(home) as (_, address):
        run = replay.submit_run(home, replay.free_name(home))
        seconds = 60 + 3 * scale.seconds + 4.0 * sessions
        with (
            replay.replaying(run, "--steps-per-s", str(STEPS_PER_S), "--seconds", str(seconds)),
            stage.crowd(address, run.run_id, sessions) if sessions else nullcontext(),
        ):
            pixels = _shown_steps(f"{address}/run?run={run.run_id}", scale.seconds)
        delays_s = delays(_journaled_steps(run), pixels)
    if not delays_s:
        return Figure(name, None, {}, "the page showed no step")
    facts = {
        "steps_seen": len(pixels),
        "median_s": round(sorted(delays_s)[len(delays_s) // 2], 3),
        "other_windows": sessions,
    }
    interval_s = rendering.interval_of(sessions + 1, replay.ACCELERATOR)
    reason = f"each of {sessions + 1} pages is redrawn every {interval_s:g} s" if sessions else ""
    return Figure(name, p95(delays_s), facts, reason)


def _shown_steps(address: str, seconds: float) -> list[tuple[int, float]]:
    """The steps that the page showed, and their times in Unix seconds."""
    with chromium() as browser:
        page = browser.new_page()
        page.goto(address)
        page.wait_for_function(RENDERED, arg=True, timeout=TIMEOUT_MS)
        page.wait_for_function(
            "() => document.body.innerText.includes('step ')", timeout=TIMEOUT_MS
        )
        page.evaluate(WATCH)
        time.sleep(seconds)
        steps: list[tuple[int, float]] = [
            (int(step), float(at)) for step, at in page.evaluate("window.seen")
        ]
        return steps


def _journaled_steps(run: RunDir) -> list[tuple[int, float]]:
    """The last step of each call, and the Unix time of its line."""
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
    """Seconds from each line, written while the page was watched, until its step or a later one
    was shown.
    """
    steps = [step for step, _ in pixels]
    delays_s = []
    for step, at in written:
        index = bisect.bisect_left(steps, step)
        if pixels and step > steps[0] and index < len(pixels):
            delays_s.append(pixels[index][1] - at)
    return delays_s
