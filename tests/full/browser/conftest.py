"""The browser, and a dashboard for each test."""

from tests.browser.fixtures import browser, dashboard

__all__ = ["browser", "dashboard"]
