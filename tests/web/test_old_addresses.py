"""Addresses of version 0.2.0 redirect to the current pages."""

from __future__ import annotations

import pytest

from dashboard.frame import front_page, places
from tests.web.test_front_page import ask

LEADS = {
    "live": "run",
    "live?run=quick-0001": "run?run=quick-0001",
    "samples": "run?tab=samples",
    "samples?runs=a": "run?run=a&tab=samples",
    "samples?runs=a,b": "compare?runs=a%2Cb&tab=samples",
    "samples?run=a": "run?run=a&tab=samples",
    "histograms?runs=a,b": "compare?runs=a%2Cb&tab=histograms",
    "histograms?runs=a": "run?run=a&tab=histograms",
    "xla?run=a": "studies?run=a&tab=xla",
    "precision": "studies?tab=precision",
    "paper": "studies?tab=paper",
}


@pytest.mark.parametrize(("old", "new"), LEADS.items(), ids=list(LEADS))
def test_old_address_redirects_to_the_current_page_with_its_query(old: str, new: str) -> None:
    path, _, query = old.partition("?")
    status, headers, _ = ask(f"/{path}", query=query)
    assert (status, headers["location"]) == (307, new)


def test_every_moved_page_is_tested_and_redirects_to_a_page() -> None:
    assert {old.partition("?")[0] for old in LEADS} == set(places.MOVED)
    assert {page for page, _ in places.MOVED.values()} <= front_page.NAMES


def test_query_of_an_old_address_cannot_redirect_elsewhere() -> None:
    leads = places.new_address(
        "live", "run=//evil.example/%0d%0aSet-Cookie:x&next=https://evil.example"
    )
    assert (
        leads == "run?run=%2F%2Fevil.example%2F%0D%0ASet-Cookie%3Ax&next=https%3A%2F%2Fevil.example"
    )
    assert ask("/live", host="evil.example")[0] == 400
