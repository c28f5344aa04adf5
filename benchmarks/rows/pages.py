"""How long every page takes on a database of 200 runs and 5 million step numbers;
benchmarks/pages.py says what is timed.
"""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report

SLOWEST = {"cold": "slowest_first_visit_s", "pages": "slowest_page_s"}


def measure(report: Report, effort: Effort) -> None:
    """One child process that writes the home, takes it in and visits every page twice."""
    del effort  # the size of the database is fixed
    facts = answer_of(["-m", "benchmarks.pages"])
    report.add("facts", **facts)
    for visit, figure in SLOWEST.items():
        page = max(facts[visit], key=facts[visit].get)
        report.add("figure", name=figure, value=facts[visit][page], count=1, page=page)
