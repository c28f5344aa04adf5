"""The two suites: which tests are in `make test`, and that these are quick."""

from __future__ import annotations

from pathlib import Path

import pytest

from gan_runtime.records.home import REPOSITORY
from tests.support import own_time, slow_tests

pytest_plugins = ["pytester"]
TEST = "tests/store/test_queries.py::test_rows"


def test_slow_tests_are_named_unless_they_are_exceptions() -> None:
    seconds = {
        TEST: 1.9,
        f"{TEST}[a]": 2.1,
        f"{TEST}_of_runs[b]": 4.0,
        "tests/x.py::test_named[c]": 9.0,
    }
    named = {"tests/x.py::test_named": "a browser starts"}
    assert own_time.too_slow(seconds, 2.0, named) == [
        f"{TEST}_of_runs[b]: 4.0 s",
        f"{TEST}[a]: 2.1 s",
    ]


def test_a_slow_test_fails_the_quick_session_unless_marked_full(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\nmarkers = full: slow")
    pytester.makeconftest(
        "from tests.support import own_time\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.register(own_time.OwnTime(limit=0.05))\n"
    )
    monkeypatch.setattr(own_time, "pace", lambda: 1.0)
    busy = (
        "import time, pytest\ndef work(s):\n    end = time.process_time() + s\n    while"
        " time.process_time() < end: pass\n"
    )
    pytester.makepyfile(
        f"{busy}@pytest.mark.full\ndef test_a(): work(0.1)\ndef test_b(): work(0.1)\ndef test_c():"
        " work(0.0)\n"
    )
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.OK, (
        "only sessions of quick tests are judged"
    )
    result = pytester.runpytest_inprocess("-m", "not full")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*move to tests/full*", "*::test_b: 0.1 s"])
    for allowed in ("test_a", "test_c"):
        result.stdout.no_fnmatch_line(f"*::{allowed}: *")


def test_test_time_is_scaled_by_processor_pace(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeconftest(
        "from tests.support import own_time\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.register(own_time.OwnTime(limit=0.1))\n"
    )
    pytester.makepyfile(
        "import time\ndef test_a():\n    end = time.process_time() + 0.2\n    while"
        " time.process_time() < end: pass\n"
    )
    for pace, outcome in ((1.0, pytest.ExitCode.TESTS_FAILED), (4.0, pytest.ExitCode.OK)):
        monkeypatch.setattr(own_time, "pace", lambda pace=pace: pace)
        assert pytester.runpytest_inprocess("-m", "not full").ret == outcome


def test_exceptions_are_few_existing_and_justified() -> None:
    assert len(slow_tests.REASONS) <= slow_tests.MOST
    assert [test for test, reason in slow_tests.REASONS.items() if not reason] == []
    gone = [
        test
        for test in slow_tests.REASONS
        if f"def {test.rpartition('::')[2]}(" not in _text(REPOSITORY / test.partition("::")[0])
    ]
    assert gone == []


def test_tests_in_the_full_folder_are_marked_full(request: pytest.FixtureRequest) -> None:
    full = REPOSITORY / "tests" / "full"
    wrong = [
        test.nodeid
        for test in request.session.items
        if (test.get_closest_marker("full") is not None) != test.path.is_relative_to(full)
    ]
    assert wrong == []


def test_each_folder_in_full_matches_a_test_folder() -> None:
    """`make test-all ONLY=store` runs both folders."""
    tests = REPOSITORY / "tests"
    parts = {
        path.parent.relative_to(tests / "full").parts[0]
        for path in (tests / "full").rglob("test_*.py")
    }
    assert len(parts) > 5, "this rule looks in the wrong place"
    assert [part for part in sorted(parts) if not any((tests / part).rglob("test_*.py"))] == []


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
