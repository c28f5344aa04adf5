"""How long a step waits for its images: the share of input in a profile of the bare engine's steps."""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report
from benchmarks.turns import NotMeasuredError

FIGURE = "input_share"


def measure(report: Report, effort: Effort) -> None:
    """One profile of `effort.steps` steps; the other shares are kept beside it."""
    options = ["--batch", str(effort.batch), "--images", str(effort.images), "--profile", str(effort.steps)]
    answer = answer_of(["-m", "benchmarks.engine_side", *options])
    if not answer["shares"]:
        raise NotMeasuredError("the profile of the steps is empty")
    report.add(
        "figure", name=FIGURE, value=answer["shares"].get("input", 0.0), count=1, shares=answer["shares"]
    )
