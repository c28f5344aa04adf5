"""How fast and how light the dashboard is; benchmarks/dashboard.py says what each number means."""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report

FIGURES = ("first_page_s", "memory_mb")


def measure(report: Report, effort: Effort) -> None:
    """One visit of a new user, in a child process."""
    del effort  # a visit is as long as it is
    facts = answer_of(["-m", "benchmarks.dashboard"])
    report.add("facts", **facts)
    for name in FIGURES:
        report.add("figure", name=name, value=facts[name], count=1)
