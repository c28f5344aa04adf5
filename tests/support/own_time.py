"""A pytest plugin that measures each test's own time and fails slow tests of `make test`.

A test's own time is the CPU time of its call, including processes that it started and waited for;
fixtures are not included. For processes that tests share (JAX, the browser, a dashboard), their CPU
time during the call counts too. CPU time grows on busy or virtual machines, so a time over the
limit is divided by the current slowdown of a fixed piece of work.
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

from tests.support.slow_tests import REASONS

OWN_SECONDS = "own_seconds"
# Fixtures with a process that outlives a test. Finding these processes takes milliseconds, so other
# tests skip it.
WITH_PROCESSES = {"jax", "browser", "dashboard"}
IDLE_SECONDS = 0.04  # of `_fixed_work` on the idle machine of docs/testing.md
# From run to run the same test takes up to twice as long, and a process that an earlier test has
# started can end during a later one. Without the exceptions all tests took at most 3.5 s, so that
# the limit finds what belongs in tests/full, not tests that vary.
LIMIT_SECONDS = 7.0


def too_slow(own_seconds: Mapping[str, float], limit: float, named: Mapping[str, str]) -> list[str]:
    """Tests over the limit that are not listed as exceptions, with their seconds, slowest first.

    `own_seconds`: by node ID; `named`: node IDs without parameters, with a reason each.
    """
    over = [
        (seconds, test)
        for test, seconds in own_seconds.items()
        if seconds > limit and test.partition("[")[0] not in named
    ]
    return [f"{test}: {seconds:.1f} s" for seconds, test in sorted(over, reverse=True)]


class OwnTime:
    """Measures in each process that runs tests; judges in the process that collects reports."""

    def __init__(self, limit: float = LIMIT_SECONDS) -> None:
        """`limit`: in seconds of the machine of docs/testing.md."""
        self._limit = limit
        self._own_seconds: dict[str, float] = {}
        self._judges = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Records the CPU time of the call, without processes left behind by an earlier test."""
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
        """Stores the time of a quick test's call."""
        if report.when == "call" and "full" not in report.keywords:
            self._own_seconds[report.nodeid] = float(
                dict(report.user_properties).get(OWN_SECONDS, 0.0)
            )  # type: ignore[arg-type]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fails a session of quick tests if one is too slow.

        Among tests of `full`, a quick test would pay for what they leave in memory.
        """
        self._judges = session.config.getoption("markexpr") == "not full"
        if self._slow() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Lists the tests that are too slow."""
        if slow := self._slow():
            terminalreporter.section(f"over {self._limit:g} s of the processor: move to tests/full")
            for line in slow:
                terminalreporter.line(line)

    def _slow(self) -> list[str]:
        return too_slow(self._own_seconds, self._limit, REASONS) if self._judges else []


def pace() -> float:
    """How many times slower the processor currently is than when idle; at least 1.

    The slowest of three tries.
    """
    return max(1.0, *(_fixed_work() / IDLE_SECONDS for _ in range(3)))


def _fixed_work() -> float:
    """The CPU time of a Python loop and of matrix products."""
    begin, total, matrix = time.process_time(), 0, np.ones((256, 256), np.float32)
    for number in range(1_000_000):
        total += number % 7
    for _ in range(40):
        matrix = matrix @ matrix * 1e-3
    return time.process_time() - begin


def _processor_seconds(with_living: bool) -> float:
    """The CPU time of this process and of the children it has waited for; `with_living`: also of
    running children.
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
        return float(sum(process.cpu_times()[:4]))  # user and system time, also of its own children
    return 0.0
