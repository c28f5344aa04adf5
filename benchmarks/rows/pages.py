"""How long every page takes on a store of 200 runs and 5 million step numbers; benchmarks/pages.py says what is timed."""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report

SLOWEST = "slowest_page_s"


def measure(report: Report, effort: Effort) -> None:
    """One child process that writes the store, takes it in and visits every page twice."""
    del effort  # the store is as large as it is
    facts = answer_of(["-m", "benchmarks.pages"])
    report.add("facts", **facts)
    report.add("figure", name=SLOWEST, value=max(facts["pages"].values()), count=1)
