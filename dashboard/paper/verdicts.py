"""Whether stored runs agree with a figure of the paper, and why.

Every number is computed from runs. Only comparable runs are judged: the same data, at least as many
epochs and repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pandas as pd

from dashboard import words
from dashboard.studies import words as studies_words
from dashboard.studies.words import factor
from gan_runtime.base import formats
from gan_runtime.catalog import DATASETS
from gan_runtime.store import queries
from gan_runtime.store.queries import Conditions, StudyRow
from gan_runtime.store.store import Store
from gan_runtime.studies import paper, references
from gan_runtime.studies.statistics import Difference


@dataclass(frozen=True)
class Verdict:
    """Whether stored runs agree with a sentence of the paper, and why. `agrees` is None if they do
    not suffice, or, without `is_comparable`, differ too much from the paper's.
    """

    agrees: bool | None
    why: str
    is_comparable: bool = True

    @property
    def word(self) -> str:
        """The verdict in words."""
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
        """The icon before the word."""
        return {
            None: ":material/pending:",
            True: ":material/check_circle:",
            False: ":material/error:",
        }[self.agrees]


NO_DEVICES = Verdict(
    None,
    "no study of the question Devices has a finished run here; “Reproduce the paper” on Launch"
    " queues one for what this host has.",
)
NO_SCHEDULE = Verdict(
    None,
    "no study of the question Rate schedule has finished a run with cycles, as in the paper"
    f" at batch {references.PAPER_RESTARTS_BATCH}; “Reproduce the paper” on Launch queues one.",
)
NO_XLA = Verdict(
    None,
    "no study of the question XLA has a finished run here; “Reproduce the paper” on Launch queues"
    " one where XLA is a choice.",
)
NO_DESCENT = Verdict(
    None,
    "no run here has stored its weights. Start one with the option 'Weight snapshots' on;"
    " “Reproduce the paper” on Launch queues such runs.",
)
NO_EPOCHS = Verdict(
    None, "no run has finished its second epoch, and the first one includes compiling."
)


def by_repeat(results: pd.DataFrame, variant: str, measure: str) -> dict[int, float]:
    runs = results[results["variant"] == variant].dropna(subset=[measure])
    return dict(zip(runs["repeat"].astype(int), runs[measure].astype(float), strict=True))


def of_ratio(compared: Difference, paper: float, sentence: str) -> Verdict:
    """Agrees if the interval contains the paper's ratio."""
    if not compared.ratio.is_known:
        return Verdict(None, f"{sentence}.")
    within = compared.ratio.low <= paper <= compared.ratio.high
    if within and not compared.is_clear:
        return Verdict(
            None,
            f"{sentence}; the interval contains that, but also no difference at all.",
        )
    return Verdict(
        within,
        f"{sentence}, {'within' if within else 'outside'} {factor(compared.ratio.low)} to"
        f" {factor(compared.ratio.high)}.",
    )


@dataclass(frozen=True)
class Minimum:
    """The least that a study needs.

    The paper states no repeats, so `repeats` are those of "Reproduce the paper"; an interval needs
    them.
    """

    epochs: int
    repeats: int


_FULL = paper.SIZES["full"]
# By question. Step times are steady after the first epoch; a rate's schedule does not vary.
MINIMUMS = {
    "batch_size": Minimum(_FULL.epochs, _FULL.repeats),
    "schedule": Minimum(_FULL.epochs, 1),
    "xla": Minimum(_FULL.compared_epochs, _FULL.repeats),
    "devices": Minimum(_FULL.compared_epochs, _FULL.repeats),
}
OF_ONE_RUN = Minimum(_FULL.epochs, 1)


@dataclass(frozen=True)
class Candidate:
    """A study, and the reasons why it cannot be judged: empty if it is comparable."""

    study: StudyRow
    shortfalls: tuple[str, ...]


@dataclass(frozen=True)
class Batches:
    """A study as its figures need it.

    `first`: the runs of the first repeat; `colors`: variant → color; `ranked`: all studies of its
    question.
    """

    study: StudyRow
    results: pd.DataFrame
    first: dict[str, str]
    colors: dict[str, str]
    ranked: Sequence[Candidate]

    @property
    def run_ids(self) -> list[str]:
        """The runs of all repeats."""
        return list(self.results["run_id"])

    def with_variants(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with the column `variant`."""
        return frame.assign(
            variant=frame["run_id"].map(self.results.set_index("run_id")["variant"])
        )

    def judge(self, verdict: Verdict) -> Verdict:
        """The verdict, if the study is comparable with the paper."""
        candidate = next(
            candidate
            for candidate in self.ranked
            if candidate.study.study_id == self.study.study_id
        )
        return judge(verdict, candidate.shortfalls)


def candidates(store: Store, studies: Collection[StudyRow], question: str) -> list[Candidate]:
    """The studies of a question with a finished run: comparable ones first, then those with more
    finished runs, then newer ones. `studies`: newest first.
    """
    finished = [row for row in studies if row.question == question and row.finished]
    ranked = [Candidate(row, tuple(_study_shortfalls(store, row))) for row in finished]
    return sorted(
        ranked, key=lambda candidate: (bool(candidate.shortfalls), -candidate.study.finished)
    )


def _study_shortfalls(store: Store, study: StudyRow) -> list[str]:
    runs = queries.study_runs(store, study.study_id)
    done = [run for run in runs if run.status == "finished"]
    finished = Counter(run.variant for run in done)
    fewest = min(finished[run.variant] for run in runs)
    conditions = queries.conditions(store, [run.run_id for run in done])
    return shortfalls(conditions, fewest, MINIMUMS[study.question])


def repeats(results: pd.DataFrame) -> int:
    """The number of finished runs of the variant with the fewest."""
    done = results[results["status"] == "finished"]
    return min(int((done["variant"] == variant).sum()) for variant in results["variant"].unique())


def shortfalls(conditions: Collection[Conditions], repeats: int, least: Minimum) -> list[str]:
    """How runs under these conditions fall short of the paper's, in words."""
    reasons = []
    for run in conditions:
        if (run.dataset, run.images) != (references.PAPER_DATASET, references.PAPER_IMAGES):
            theirs = DATASETS[references.PAPER_DATASET].title
            reasons.append(
                f"{studies_words.images_of(run.dataset, run.images)}, where the paper has all"
                f" {formats.count(references.PAPER_IMAGES)} of {theirs}"
            )
        if run.epochs < least.epochs:
            reasons.append(f"{formats.quantity(run.epochs, 'epoch')} of at least {least.epochs}")
    if repeats < least.repeats:
        reasons.append(f"{formats.quantity(repeats, 'repeat')} of at least {least.repeats}")
    return list(dict.fromkeys(reasons))


def judge(verdict: Verdict, shortfalls: Collection[str]) -> Verdict:
    """The verdict, or the measurement without one; `reasons` says why."""
    return verdict if not shortfalls else Verdict(None, verdict.why, is_comparable=False)


def reasons(shortfalls: Collection[str]) -> str:
    """Why runs are not judged, in a sentence; empty if they are."""
    return f"Shown, not judged: {words.plain('; '.join(shortfalls))}." if shortfalls else ""


def other_studies(ranked: Collection[Candidate], study: StudyRow) -> str:
    """Why other studies of the question are not drawn, in a sentence; empty if there are none."""
    rest = [candidate for candidate in ranked if candidate.study.study_id != study.study_id]
    why = "; ".join(
        f"{candidate.study.title} ({candidate.study.study_id}):"
        f" {', '.join(candidate.shortfalls) or 'comparable too'}"
        for candidate in rest
    )
    return f"Not drawn: {words.plain(why)}." if rest else ""
