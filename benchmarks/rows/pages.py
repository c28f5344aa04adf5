"""The time of every page on a database of 200 runs and 5 million step numbers, as
benchmarks/pages.py defines it.
"""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report

SLOWEST = {"cold": "slowest_first_visit_s", "pages": "slowest_page_s"}


def measure(report: Report, effort: Effort) -> None:
    """Adds the result of a child process that writes the home and visits every page twice."""
    del effort  # the size of the database is fixed
    facts = answer_of(["-m", "benchmarks.pages"])
    report.add("facts", **facts)
    for visit, figure in SLOWEST.items():
        page = max(facts[visit], key=facts[visit].get)
        report.add("figure", name=figure, value=facts[visit][page], count=1, page=page)
