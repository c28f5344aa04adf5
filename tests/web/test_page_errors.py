"""Errors of pages in the log: a traceback once for each place, then one line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from streamlit import error_util

from dashboard.frame import page_errors

LOGGER = logging.getLogger("streamlit.error_util")


def first_page(value: object) -> None:
    raise TypeError(f"no text:\n{value!r}")


def second_page(value: object) -> None:
    raise ValueError(f"no number: {value!r}")


@pytest.fixture
def printed() -> Iterator[list[str]]:
    """What is written to the log. The filter is new, as in a dashboard that just started."""
    texts: list[str] = []
    handler, once = logging.Handler(), page_errors.FullTracebackOnce()
    handler.emit = lambda record: texts.append(handler.format(record))  # type: ignore[method-assign]
    LOGGER.addHandler(handler)
    LOGGER.addFilter(once)
    yield texts
    LOGGER.removeFilter(once)
    LOGGER.removeHandler(handler)


def fail(page: Callable[[object], None], value: object) -> None:
    try:
        page(value)
    except Exception as error:
        error_util.handle_user_script_exception(error, lambda _: True)


def test_each_place_logs_one_traceback_then_one_line_each_time(printed: list[str]) -> None:
    for value in ([1], {"a": 1}, "x" * 9_000):
        fail(first_page, value)
    fail(second_page, None)
    full, *again, other = printed
    assert "Traceback" in full
    assert "no text:\n[1]" in full
    assert "no number: None" in other
    assert "Traceback" in other
    assert len(again) == 2
    for line in again:
        assert line.startswith("Uncaught app execution again: TypeError ")
        assert "no text:" in line
        assert "test_page_errors.py, line" in line
        assert "\n" not in line
        assert len(line) < 600


def test_the_dashboard_installs_the_filter_once() -> None:
    before = list(LOGGER.filters)
    page_errors.log_tracebacks_once()
    page_errors.log_tracebacks_once()
    added = [each for each in LOGGER.filters if each not in before]
    for each in added:
        LOGGER.removeFilter(each)
    assert sum(isinstance(each, page_errors.FullTracebackOnce) for each in (*before, *added)) == 1
