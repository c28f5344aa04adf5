"""How long each test takes by itself, and the rule that a test of `make test` is quick; a plugin of
pytest.

A test's own time is the processor's time of its call, that of the processes that it started and
waited for included; fixtures count for themselves. Of the processes that tests share and ask (JAX,
the browser, a dashboard) what they compute meanwhile counts too. Even the processor's time is
longer on a busy or a virtual machine, so what is over the limit is divided by how much longer a
fixed piece of work takes just then.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Generator, Mapping
from typing import Any

import numpy as np
import psutil
import pytest

from gan_runtime.hardware import machine
from tests.support.slow_tests import REASONS

OWN_SECONDS = "own_seconds"
# Fixtures with a process that outlives a test. To look for such processes takes milliseconds, so
# other tests do not.
WITH_PROCESSES = {"jax", "browser", "dashboard"}
IDLE_SECONDS = 0.04  # of `_fixed_work` on the idle machine of docs/testing.md


def limit_seconds() -> float:
    """2 s of the processor; 3 s on one without AVX-512, where networks take half as long again."""
    return 2.0 if "avx512f" in machine.cpu_flags() else 3.0


def too_slow(own_seconds: Mapping[str, float], limit: float, named: Mapping[str, str]) -> list[str]:
    """Tests over the limit that are not named as exceptions, with their seconds; the slowest first.

    `own_seconds`: by node id; `named`: node ids without parameters, with the reason of each.
    """
    over = [
        (seconds, test)
        for test, seconds in own_seconds.items()
        if seconds > limit and test.partition("[")[0] not in named
    ]
    return [f"{test}: {seconds:.1f} s" for seconds, test in sorted(over, reverse=True)]


class OwnTime:
    """Measures in each process that runs tests; judges in the one that the others report to."""

    def __init__(self, limit: float | None = None) -> None:
        """`limit`: seconds, in place of this machine's."""
        self._limit = limit_seconds() if limit is None else limit
        self._own_seconds: dict[str, float] = {}
        self._judges = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Notes the seconds of the processor that the call takes, without those of processes
        that an earlier test has left.
        """
        subprocess._cleanup()  # type: ignore[attr-defined]
        asks = not WITH_PROCESSES.isdisjoint(getattr(item, "fixturenames", ()))
        before = _processor_seconds(asks)
        try:
            return (yield)
        finally:
            seconds = _processor_seconds(asks) - before
            item.user_properties.append(
                (OWN_SECONDS, seconds / pace() if seconds > self._limit else seconds)
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps what a call of a quick test took."""
        if report.when == "call" and "full" not in report.keywords:
            self._own_seconds[report.nodeid] = float(
                dict(report.user_properties).get(OWN_SECONDS, 0.0)
            )  # type: ignore[arg-type]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fails a session of quick tests for one that is too slow.

        Among the tests of `full` it would pay for what they leave in memory.
        """
        self._judges = session.config.getoption("markexpr") == "not full"
        if self._slow() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Names the tests that are too slow."""
        if slow := self._slow():
            terminalreporter.section(f"over {self._limit:g} s of the processor: move to tests/full")
            for line in slow:
                terminalreporter.line(line)

    def _slow(self) -> list[str]:
        return too_slow(self._own_seconds, self._limit, REASONS) if self._judges else []


def pace() -> float:
    """How many times as long the processor takes just now as when it is idle; at least 1.

    The slowest of three tries.
    """
    return max(1.0, *(_fixed_work() / IDLE_SECONDS for _ in range(3)))


def _fixed_work() -> float:
    """The processor's seconds for a loop of Python and products of matrices."""
    begin, total, matrix = time.process_time(), 0, np.ones((256, 256), np.float32)
    for number in range(1_000_000):
        total += number % 7
    for _ in range(40):
        matrix = matrix @ matrix * 1e-3
    return time.process_time() - begin


def _processor_seconds(with_living: bool) -> float:
    """Of this process and the children it has waited for; `with_living`: and of those that
    are at work.
    """
    times = os.times()
    seconds = times.user + times.system + times.children_user + times.children_system
    return (
        seconds + sum(map(_seconds_of, psutil.Process().children(recursive=True)))
        if with_living
        else seconds
    )


def _seconds_of(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        return float(sum(process.cpu_times()[:4]))  # user, system, and both of its own children
    return 0.0
