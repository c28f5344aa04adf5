"""Addresses that nobody of ours has made: every page answers in words, and shows nothing of them as anything but text."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from gan_runtime.records.rundir import RunDir
from tests.hostile.cases import kinds

LINKS = [text for text in dict(kinds())["deep links"].values() if not re.search("[\ud800-\udfff]", text)]
ADDRESS = re.compile(
    r"(?<!\\)\]\(http|https?://evil|www\.evil|<img|<script|:material/home:|:red\[", re.IGNORECASE
)


@pytest.mark.parametrize("page", ["live", "compare", "samples", "studies", "xla", "physics", "flow"])
def test_a_page_opened_by_a_hostile_address_shows_text(
    show: Callable[..., AppTest], trained: Callable[..., RunDir], page: str
) -> None:
    """All of them at once where an address takes several runs, and one after the other where it takes one."""
    trained("quick-0001")
    for one in ("![x](http://evil.example/a.png)", "'; DROP TABLE runs; --\0\x1b[2J" + "A" * 10_000):
        app = show(page, run=one, study=one, runs=",".join(LINKS))
        assert not app.exception
        shown = [*app.markdown, *app.caption, *app.warning, *app.info, *app.error, *app.title]
        assert shown
        assert not [box.value for box in shown if ADDRESS.search(box.value)]
        assert max(len(box.value) for box in shown) < 3_000
        if page in ("compare", "samples"):
            break  # takes several
