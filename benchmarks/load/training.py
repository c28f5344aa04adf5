"""The cost of open run pages for a training on the same cores, and for the dashboard.

A TensorFlow run with the networks of preset `quick`, in the precision that suits this processor,
trains on all cores while windows open and close: none, one, none, all, none, one … Its speed comes
from the journal: steps from one line to a later one, over the time between them. Each turn with
windows is compared with the mean of the turns without windows before and after it. One window costs
less than turns vary, so it has more turns. The windows run on the same machine; elsewhere they
would cost the training nothing, so the figures are upper bounds.
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

# No epoch ends during the measurement: its probes would look like slow steps.
IMAGES, BATCH, EPOCHS = 400_000, 64, 1_000
START_SECONDS, SETTLE_SECONDS = 180.0, 3.0
TAIL_BYTES = 200_000  # of the journal; has at least one line of numbers


def measure(home: Home, scale: Scale, options: dict[str, Any] | None = None) -> Iterator[Figure]:
    """Turns during one training in the large home. `options`: of the run."""
    with trial.children_killed_on_exit(), trial.random_mnist(IMAGES):
        overrides = {"batch_size_global": BATCH, "epochs": EPOCHS, **(options or {})}
        spec = RunSpec.parse(overrides)
        if machine.precision_warning(spec):
            spec = RunSpec.parse({**overrides, **machine.FLOAT32})
        run = ask(home, hosts.probe(), actor=operator("a benchmark")).submit(spec)
        with stage.served(home) as (process, address):
            _wait_for_training(run)
            stage.wait_until_idle(process)
            figures = _measure_turns(process, address, run, scale)
            run.stop_file.touch()
            _wait_for_exit(run)
    yield from figures


def _measure_turns(
    process: psutil.Process, address: str, run: RunDir, scale: Scale
) -> list[Figure]:
    # Steps per second before, during and after each turn with windows, by their number.
    speeds: dict[int, list[tuple[float, float, float]]] = {1: [], scale.sessions: []}
    crowds: dict[int, dict[str, Any]] = {}
    before = steps_per_s(run, scale.seconds / 2)
    for sessions in _order(scale):
        with stage.crowd(address, run.run_id, sessions) as windows:
            time.sleep(SETTLE_SECONDS)
            cpu_s, begin = stage.cpu_seconds(process), time.monotonic()
            during = steps_per_s(run, scale.seconds / 2)
            share = (stage.cpu_seconds(process) - cpu_s) / (time.monotonic() - begin)
            crowds[sessions] = {**windows.close(), "dashboard_cores": round(share, 3)}
        time.sleep(SETTLE_SECONDS)
        after = steps_per_s(run, scale.seconds / 2)
        speeds[sessions].append((before, during, after))
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
    slowdowns = [1 - during / statistics.mean((before, after)) for before, during, after in speeds]
    facts = {"windows": sessions, "turns": [round(slowdown, 4) for slowdown in slowdowns], **counts}
    return Figure(name, statistics.median(slowdowns), facts)


def steps_per_s(run: RunDir, seconds: float) -> float:
    """The speed over the next `seconds`, or until a new journal line."""
    begin, deadline = _newest_call(run), time.monotonic() + seconds + START_SECONDS
    time.sleep(seconds)
    while (end := _newest_call(run))[0] == begin[0]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the training has stalled: {run.log_tail(5)}")
        time.sleep(0.2)
    return (end[0] - begin[0]) / (end[1] - begin[1])


def _newest_call(run: RunDir) -> tuple[int, float]:
    """The last step of the newest line of numbers, and its Unix time."""
    with run.trainer_journal().open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
        lines = file.read().split(b"\n")[:-1]
    for line in reversed(lines):
        if b'"kind":"scalars"' in line and line.startswith(b"{"):
            call = json.loads(line)
            return (
                call["first_step"] + len(call["wall_s"]) - 1,
                datetime.fromisoformat(call["at"]).timestamp(),
            )
    return 0, 0.0


def _wait_for_training(run: RunDir) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not run.trainer_journal().exists() or _newest_call(run)[0] < 20:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the training has not started: {run.log_tail(5)}")
        time.sleep(0.2)


def _wait_for_exit(run: RunDir) -> None:
    identity = run.process()
    deadline = time.monotonic() + START_SECONDS
    while identity and psutil.pid_exists(identity.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
