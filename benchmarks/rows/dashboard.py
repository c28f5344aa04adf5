"""How fast and how light the dashboard is; benchmarks/dashboard.py says what each number means."""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report


def measure(report: Report, effort: Effort) -> None:
    """One visit of a new user, in a child process."""
    del effort  # a visit is as long as it is
    report.add("facts", **answer_of(["-m", "benchmarks.dashboard"]))
