"""The measures of a study, in which its variants are compared."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from gan_runtime.catalog import declarations
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.studies.design import Question

THREE_DIGITS = ".3g"


@dataclass(frozen=True)
class Measure:
    """A column of `queries.study_results`.

    `scale`: converts its unit there to `unit`; `form`: a Python format. `by_factors`: a positive
    quantity whose repeats differ by factors, so that its mean is the geometric one.
    """

    title: str
    unit: str
    form: str = THREE_DIGITS
    scale: float = 1.0
    help: str = ""
    by_factors: bool = True

    @property
    def label(self) -> str:
        """Title and unit, as a table names it."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def mean_word(self) -> str:
        """The kind of its mean."""
        return "Geometric mean" if self.by_factors else "Mean"


TIME, USUAL_OUTCOME, FASTER = "epoch_seconds", "spread_ratio", "speed_up"
MEAN_HELP = "Mean over the last epoch with a value."
OUTCOME_HELP = (
    "The measure in which variants are compared, in addition to time. Scores of an evaluation"
    " appear once a run has been evaluated."
)
LOSS_HELP = f"{MEAN_HELP} A GAN's loss does not measure its images."
MEASURES = {
    "epoch_seconds": Measure(
        "Time per epoch",
        "s",
        help="Median of a run's epochs after the first, which includes compiling.",
    ),
    "steady_step": Measure(
        "Steady step",
        "ms",
        scale=1000.0,
        help="Median time of a training step, without compiling.",
    ),
    "images_per_s": Measure("Images/s", "", ",.0f", help="Steady rate of all replicas together."),
    "compile": Measure(
        "Compile", "s", help="Time of the first step beyond a steady step.", by_factors=False
    ),
    "memory_bytes": Measure(
        "Memory, peak", "GB", ".2f", 1e-9, "Highest resident memory of the trainer's process."
    ),
    "spread_ratio": Measure(
        "Spread of images",
        "real images = 1",
        ".2f",
        help=(
            "Spread of the generated images divided by that of the real ones. Near 0, all images"
            " are alike."
        ),
        by_factors=False,
    ),
}
# Drawn, but not a column of the table, which has the ratio of times.
SPEED_UP = Measure(
    "Speed-up",
    "first variant = 1",
    ".2f",
    help="Time per epoch of the first variant over that of this one, repeat by repeat.",
)


def measure_of(name: str, results: pd.DataFrame) -> Measure:
    """The measure of a column of `results`, which are rows of `queries.study_results`; a column
    without one is a number that the study's workload declares.
    """
    if name in MEASURES:
        return MEASURES[name]
    if name == FASTER:
        return SPEED_UP
    declaration = _declared(results)
    metric = next(metric for metric in declaration.compared if metric.name == name)
    if metric.role == "loss":
        return Measure(
            declaration.loss_title(metric), metric.unit, ".3f", help=LOSS_HELP, by_factors=False
        )
    return Measure(metric.title, metric.unit, help=MEAN_HELP, by_factors=False)


def measures(results: pd.DataFrame) -> dict[str, Measure]:
    """The measures of these results, with declared numbers before the last measure.

    A number that a job measures on a checkpoint is left out if no run has it.
    """
    names = {
        metric.name
        for metric in _declared(results).compared
        if metric.role == "loss" or (metric.name in results and results[metric.name].notna().any())
    }
    *first, last = MEASURES
    return {
        name: measure_of(name, results)
        for name in [*first, *(name for name in results if name in names), last]
    }


def _declared(results: pd.DataFrame) -> Declarations:
    losses = results["loss_option"] if "loss_option" in results else [""] * len(results)
    return declarations.together_with_losses(zip(results["workload"], losses, strict=True))


def outcomes(results: pd.DataFrame, question: Question | None = None) -> list[str]:
    """The measures that a run of this study has, by name, except time: first the measured quality,
    else the spread of images, or the speed-up for a question about speed.
    """
    about_speed = question is not None and question.is_about_speed
    names = [FASTER, *measures(results)] if about_speed else list(measures(results))
    measured = [name for name in names if name != TIME and results[name].notna().any()]
    qualities = [
        metric.name
        for metric in _declared(results).qualities
        if metric.role == "measured_quality" and metric.name in measured
    ]
    first = FASTER if about_speed else next(iter(qualities), USUAL_OUTCOME)
    return sorted(measured, key=lambda name: name != first)
