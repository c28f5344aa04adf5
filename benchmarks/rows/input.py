"""The time that a step waits for images: the share of input in a profile of the bare engine."""

from __future__ import annotations

from benchmarks.effort import Effort, answer_of
from benchmarks.results import Report
from benchmarks.run_options import MNIST
from benchmarks.turns import NotMeasuredError

FIGURE = "input_share"


def measure(report: Report, effort: Effort) -> None:
    """Adds the share of input in the steps of Table 1."""
    add_share(report, effort, MNIST)


def add_share(report: Report, effort: Effort, data: str) -> None:
    """Adds the share of input as a figure, together with the other shares."""
    shares = share_of(effort, data)
    report.add("figure", name=FIGURE, value=shares.get("input", 0.0), count=1, shares=shares)


def share_of(effort: Effort, data: str) -> dict[str, float]:
    """Category → share of the time, 0 to 1, in a profile of `effort.steps` steps.

    Raises NotMeasuredError for an empty profile.
    """
    options = ["--data", data, "--batch", str(effort.batch), "--images", str(effort.images)]
    answer = answer_of(["-m", "benchmarks.engine_side", *options, "--profile", str(effort.steps)])
    if not answer["shares"]:
        raise NotMeasuredError("the profile of the steps is empty")
    return dict(answer["shares"])
