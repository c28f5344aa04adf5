"""The speed and memory of the dashboard, as benchmarks/dashboard.py defines them."""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.ratios import spread
from benchmarks.results import Report

FIGURES = ("first_page_s", "first_point_s", "next_point_s", "memory_mb")


def measure(report: Report, effort: Effort) -> None:
    """Measures visits of new users, each in a child process with its own home."""
    visits = [answer_of(["-m", "benchmarks.dashboard"]) for _ in range(effort.rounds)]
    for facts in visits:
        report.add("facts", **facts)
    for name in FIGURES:
        report.spread("figure", name, spread([facts[name] for facts in visits]))
