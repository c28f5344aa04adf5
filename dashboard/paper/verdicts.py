"""Whether stored runs agree with a figure of the paper, and why. Every number is computed from runs."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dashboard.studies.words import factor
from gan_runtime.studies import references
from gan_runtime.studies.statistics import Difference


@dataclass(frozen=True)
class Verdict:
    """Whether stored runs agree with a sentence of the paper, and why; `agrees` None: they do not suffice to say, or, where not
    `is_comparable`, are too unlike the paper's."""

    agrees: bool | None
    why: str
    is_comparable: bool = True

    @property
    def word(self) -> str:
        """The verdict itself."""
        if not self.is_comparable:
            return "Not judged"
        return (
            "Not enough runs yet"
            if self.agrees is None
            else "Agrees with the paper"
            if self.agrees
            else "Differs from the paper"
        )

    @property
    def icon(self) -> str:
        """Beside the word."""
        return {None: ":material/pending:", True: ":material/check_circle:", False: ":material/error:"}[
            self.agrees
        ]


NO_DEVICES = Verdict(
    None,
    "no study of the question Devices has a finished run here; “Reproduce the paper” on Launch queues one for what this host has.",
)
NO_SCHEDULE = Verdict(
    None,
    f"the paper's rate has cycles, at batch {references.PAPER_RESTARTS_BATCH}, and no study of the question Rate schedule has a finished "
    "run here; “Reproduce the paper” on Launch queues one.",
)
NO_XLA = Verdict(
    None,
    "no study of the question XLA has a finished run here; “Reproduce the paper” on Launch queues one where XLA is a choice.",
)
NO_DESCENT = Verdict(
    None,
    "no run here has kept its weights. Start one with the option 'Weight snapshots' on; “Reproduce the paper” on Launch queues such "
    "runs.",
)
NO_EPOCHS = Verdict(None, "no run has finished its second epoch, and the first one holds the compiling.")


def by_repeat(results: pd.DataFrame, variant: str, measure: str) -> dict[int, float]:
    runs = results[results["variant"] == variant].dropna(subset=[measure])
    return dict(zip(runs["repeat"].astype(int), runs[measure].astype(float), strict=True))


def of_ratio(found: Difference, paper: float, sentence: str) -> Verdict:
    """Agrees where the interval holds the paper's ratio."""
    if not found.ratio.is_known:
        return Verdict(None, f"{sentence}.")
    within = found.ratio.low <= paper <= found.ratio.high
    if within and not found.is_clear:
        return Verdict(
            None, f"{sentence}, which the interval holds, but it holds no difference at all as well."
        )
    return Verdict(
        within,
        f"{sentence}, {'within' if within else 'outside'} {factor(found.ratio.low)} to {factor(found.ratio.high)}.",
    )
