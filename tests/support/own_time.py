"""How long each test takes by itself, and the rule that a test of `make test` is quick; a plugin of pytest.

A test's own time is the processor's time of its call, that of the processes that it started and waited for included; fixtures
count for themselves. The processor's time is nearly the same on a busy machine, the clock's is not.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Mapping
from typing import Any

import pytest

from gan_runtime import processor
from tests.support.slow_tests import REASONS

OWN_SECONDS = "own_seconds"


def limit_seconds() -> float:
    """2 s of the processor; 3 s on one without AVX-512, where networks take half as long again."""
    return 2.0 if "avx512f" in processor.flags() else 3.0


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

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Notes the seconds of the processor that the call takes, without those of processes that an earlier test has left."""
        subprocess._cleanup()  # type: ignore[attr-defined]
        before = _processor_seconds()
        try:
            return (yield)
        finally:
            item.user_properties.append((OWN_SECONDS, _processor_seconds() - before))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps what a call of a quick test took."""
        if report.when == "call" and "full" not in report.keywords:
            self._own_seconds[report.nodeid] = float(dict(report.user_properties).get(OWN_SECONDS, 0.0))  # type: ignore[arg-type]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fails the session for a test that is too slow."""
        if self._slow() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Names the tests that are too slow."""
        if slow := self._slow():
            terminalreporter.section(f"over {self._limit:g} s of the processor: move to tests/full")
            for line in slow:
                terminalreporter.line(line)

    def _slow(self) -> list[str]:
        return too_slow(self._own_seconds, self._limit, REASONS)


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
