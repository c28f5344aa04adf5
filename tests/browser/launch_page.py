"""The Launch page as a user fills it in."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.dashboard_process import opened, settled

START = re.compile("Start run|Add to the queue|Submit to")


def fill(page: Page, role: Any, label: str, value: str) -> None:
    """Fills in a field of the form and waits until the page has processed it."""
    field = page.get_by_role(role, name=label)
    field.fill(value)
    field.press("Enter")
    expect(field).to_have_value(value)
    settled(page)


def choose(page: Page, label: str, option: str) -> None:
    """Selects an option from a list of the form."""
    opened(page, label)
    page.get_by_role("option", name=option).click()
    settled(page)


def start(page: Page) -> str:
    """Starts the run that is filled in; returns its id."""
    page.get_by_role("button", name=START).click()
    expect(page).to_have_url(re.compile(r"/run\?run=quick-\d{4}"))
    return page.url.rpartition("run=")[2]


def launch(page: Page, address: str, epochs: int, replicas: int, workload: str) -> str:
    """Starts the quick preset with some options changed; returns the run's id."""
    page.goto(f"{address}/launch")
    settled(page)
    expect(page.get_by_role("button", name=START)).to_be_visible()
    fill(page, "textbox", "Replicas (devices)", str(replicas))
    fill(page, "textbox", "Epochs (passes over the data)", str(epochs))
    choose(page, "Workload", workload)
    expect(page.get_by_text(f"--set epochs={epochs}")).to_be_visible()
    return start(page)
