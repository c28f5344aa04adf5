"""The cost of open Live pages for a training on the same cores, and for the dashboard.

A real run (the quick preset's networks and, as there, the precision that this processor can;
TensorFlow) trains without end on all cores while windows come and go: none, one, none, all, none,
one … Its speed in each turn is read from its journal: steps from one line to a later one, over the
time between their writing. Each turn with windows is compared with the mean of the turns without
any before and after it. One window takes less than a turn differs from the next one, so it has more
turns. The windows are processes of this machine too; on another one they would take nothing from
the training, so the figures are on the safe side.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import psutil

from benchmarks import trial
from benchmarks.load import stage
from benchmarks.load.figures import Figure
from benchmarks.load.scale import Scale
from gan_runtime.hardware import hosts, machine
from gan_runtime.records.home import Home
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from tests.support.asking import ask

IMAGES, BATCH, EPOCHS = (
    400_000,
    64,
    1_000,
)  # no epoch ends during the measurement: its probes would look like slow steps
STARTING_SECONDS, SETTLING_SECONDS = 180.0, 3.0
LINE_BYTES = 200_000


def measure(home: Home, scale: Scale, options: dict[str, Any] | None = None) -> Iterator[Figure]:
    """Turns during one training in the home of many runs. `options`: of its run."""
    with trial.no_process_left(), trial.random_mnist(IMAGES):
        overrides = {"batch_size_global": BATCH, "epochs": EPOCHS, **(options or {})}
        spec = RunSpec.parse(overrides)
        if machine.precision_warning(spec):
            spec = RunSpec.parse({**overrides, **machine.FLOAT32})
        run = ask(home, hosts.probe(), actor=operator("a benchmark")).submit(spec)
        with stage.served(home) as (process, address):
            _wait_until_it_trains(run)
            stage.wait_until_idle(process)
            facts = _turns(process, address, run, scale)
            run.stop_file.touch()
            _wait_until_it_has_ended(run)
    yield from facts


def _turns(process: psutil.Process, address: str, run: RunDir, scale: Scale) -> list[Figure]:
    speeds: dict[int, list[tuple[float, float, float]]] = {
        1: [],
        scale.sessions: [],
    }  # before, during, after
    crowds: dict[int, dict[str, Any]] = {}
    before = steps_per_s(run, scale.seconds / 2)
    for sessions in _order(scale):
        with stage.crowd(address, run.run_id, sessions) as windows:
            time.sleep(SETTLING_SECONDS)
            busy, begin = stage.cpu_seconds(process), time.monotonic()
            beside = steps_per_s(run, scale.seconds / 2)
            share = (stage.cpu_seconds(process) - busy) / (time.monotonic() - begin)
            crowds[sessions] = {**windows.close(), "dashboard_cores": round(share, 3)}
        time.sleep(SETTLING_SECONDS)
        after = steps_per_s(run, scale.seconds / 2)
        speeds[sessions].append((before, beside, after))
        before = after
    names = dict(zip(speeds, ("one_page_slows", "thirty_pages_slow"), strict=True))
    return [
        _figure(names[sessions], sessions, turns, crowds[sessions])
        for sessions, turns in speeds.items()
    ]


def _order(scale: Scale) -> list[int]:
    """The number of windows in each turn that has windows."""
    return [1, *[scale.sessions, 1, 1] * (scale.rounds - 1), scale.sessions]


def _figure(
    name: str, sessions: int, speeds: list[tuple[float, float, float]], counts: dict[str, Any]
) -> Figure:
    slows = [1 - beside / statistics.mean((before, after)) for before, beside, after in speeds]
    facts = {"windows": sessions, "turns": [round(slow, 4) for slow in slows], **counts}
    return Figure(name, statistics.median(slows), facts)


def steps_per_s(run: RunDir, seconds: float) -> float:
    """Watches from now on, for `seconds` or until a new line."""
    begin, deadline = _newest_call(run), time.monotonic() + seconds + STARTING_SECONDS
    time.sleep(seconds)
    while (end := _newest_call(run))[0] == begin[0]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the training has stalled: {run.log_tail(5)}")
        time.sleep(0.2)
    return (end[0] - begin[0]) / (end[1] - begin[1])


def _newest_call(run: RunDir) -> tuple[int, float]:
    """Last step of the newest line of numbers, and when it was written."""
    with run.trainer_journal().open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - LINE_BYTES))
        lines = file.read().split(b"\n")[:-1]
    for line in reversed(lines):
        if b'"kind":"scalars"' in line and line.startswith(b"{"):
            call = json.loads(line)
            return (
                call["first_step"] + len(call["wall_s"]) - 1,
                datetime.fromisoformat(call["at"]).timestamp(),
            )
    return 0, 0.0


def _wait_until_it_trains(run: RunDir) -> None:
    deadline = time.monotonic() + STARTING_SECONDS
    while not run.trainer_journal().exists() or _newest_call(run)[0] < 20:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the training has not started: {run.log_tail(5)}")
        time.sleep(0.2)


def _wait_until_it_has_ended(run: RunDir) -> None:
    identity = run.process()
    deadline = time.monotonic() + STARTING_SECONDS
    while identity and psutil.pid_exists(identity["pid"]) and time.monotonic() < deadline:
        time.sleep(0.2)
