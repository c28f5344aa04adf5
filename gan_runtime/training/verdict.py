"""The verdict of a run: one finding and a sentence with its evidence, from stored numbers only.

Each epoch after the first is judged by its alarms (alarms.py) and by the mean scores of the judging
network. A finding needs AGREEING consecutive epochs, or all epochs of a shorter run that has ended,
so no single epoch decides. An alarm in only some of them makes the run "not steady".

"Healthy" also needs measured quality: balanced scores and a spread like that of the data do not
exclude images of only a few kinds. The worst quality answer of the newest AGREEING epochs counts,
each by the end of its 95% interval that speaks against the finding. An answer expires after a
quarter of the run's epochs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from statistics import fmean

from gan_runtime.base.metrics import Role
from gan_runtime.catalog import declarations
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.records.answer import Score
from gan_runtime.training import alarms
from gan_runtime.training.alarms import FIRST_EPOCH, AlarmLimits

AGREEING = 3  # epochs
WINNING, FOOLED = 0.05, 0.9  # mean scores of generated rows: D wins below, D is fooled above
# Coverage as a share of the coverage of other real images (the score's floor): below the first
# limit the images are unlike the data, from the second on they are like it.
UNLIKE_COVERAGE, LIKE_COVERAGE = 0.1, 0.75
# Class distance: from the first limit on, half of the images would have to change class; that is a
# collapse if classes are clear. Up to the second limit the classes are as in the data.
FEW_CLASSES, LIKE_CLASSES = 0.5, 0.25
CLEAR_CLASS = 0.5  # share of images whose class the classifier is sure of
# By the network that read the images; without labels there is no classifier.
COVERAGES = ("coverage", "imagenet_coverage", "inception_coverage")
QUALITY_SCORES = (*COVERAGES, "class_distance", "sure")  # read by a verdict


class Finding(StrEnum):
    """The possible findings about a run."""

    NONE = "none"  # nothing was measured
    EARLY = "early"
    COLLAPSED = "collapsed"
    EMPTY = "empty"
    WRONG_RESPONSE = "wrong_response"
    JUDGE_WINS = "judge_wins"
    UNLIKE = "unlike"
    UNSTEADY = "unsteady"
    JUDGE_FOOLED = "judge_fooled"
    PARTIAL = "partial"
    BALANCED = "balanced"
    HEALTHY = "healthy"


# Titles for tables. {} is the network described by the metric with this role.
TITLES: dict[Finding, tuple[str, Role]] = {
    Finding.NONE: ("", ""),
    Finding.EARLY: ("too early", ""),
    Finding.COLLAPSED: ("{} collapsed", "spread_of_generated"),
    Finding.EMPTY: ("{}: empty outputs", "empty_rows"),
    Finding.WRONG_RESPONSE: ("{}: wrong response", "response"),
    Finding.JUDGE_WINS: ("{} wins", "judged_generated"),
    Finding.UNLIKE: ("unlike the data", ""),
    Finding.UNSTEADY: ("not steady", ""),
    Finding.JUDGE_FOOLED: ("{} is fooled", "judged_generated"),
    Finding.PARTIAL: ("partly like the data", ""),
    Finding.BALANCED: ("balanced", ""),
    Finding.HEALTHY: ("healthy", ""),
}
# Worst first.
_BY_ALARM = {
    "alarm_collapse": Finding.COLLAPSED,
    "alarm_empty": Finding.EMPTY,
    "alarm_response": Finding.WRONG_RESPONSE,
    "alarm_d_wins": Finding.JUDGE_WINS,
}
TROUBLES = frozenset({*_BY_ALARM.values(), Finding.UNLIKE, Finding.UNSTEADY})
_BY_QUALITY = (Finding.COLLAPSED, Finding.UNLIKE, Finding.PARTIAL, Finding.HEALTHY)


@dataclass(frozen=True)
class EpochNumbers:
    """The measurements of a run after an epoch: metric → value."""

    epoch: int
    scores: Mapping[str, float]


@dataclass(frozen=True)
class MeasuredQuality:
    """The scores in an answer of the evaluation `quality`: name → score."""

    epoch: int
    scores: Mapping[str, Score]


@dataclass(frozen=True)
class Verdict:
    """`title`: a short label; `sentence`: the finding with its evidence. Both are empty for
    `Finding.NONE`.
    """

    finding: Finding = Finding.NONE
    title: str = ""
    sentence: str = ""

    @property
    def is_trouble(self) -> bool:
        """Whether the run needs attention."""
        return self.finding in TROUBLES


def verdict(
    limits: AlarmLimits,
    epochs: Sequence[EpochNumbers],
    quality: Sequence[MeasuredQuality] = (),
    is_over: bool = False,
) -> Verdict:
    """The verdict from a run's measurements. `epochs`, `quality`: earliest first; only the last
    AGREEING + 1 of each matter. `is_over`: whether the run has ended.
    """
    if not epochs and not quality:
        return Verdict()
    numbers = _numbers(limits.workload)
    last = max((epoch.epoch for epoch in epochs), default=0)
    answers = _counting(quality, last - max(AGREEING, last // 4))
    evidence = _Evidence(
        numbers,
        _judged(limits, numbers, epochs),
        {finding: answer for answer in answers if (finding := _of_answer(answer)) is not None},
        max((answer.epoch for answer in quality), default=0),
    )
    finding = _finding(evidence, is_over)
    text, role = TITLES[finding]
    return Verdict(finding, text.format(evidence.network(role)), _SENTENCES[finding](evidence))


@cache
def _numbers(workload: str) -> Declarations:
    return declarations.of(workload)


def _counting(quality: Sequence[MeasuredQuality], first: int) -> list[MeasuredQuality]:
    """The newest answer and those of the AGREEING - 1 epochs before it, from epoch `first` on."""
    last = max((answer.epoch for answer in quality), default=0)
    return [answer for answer in quality if answer.epoch >= max(first, last - AGREEING + 1)]


# ---- findings ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _JudgedEpoch:
    """An epoch and the finding that it alone would give."""

    numbers: EpochNumbers
    finding: Finding
    is_alarm: bool


@dataclass(frozen=True)
class _Evidence:
    """The evidence of a verdict. `answers`: each finding of quality, with its answer.

    `measured_epoch`: the epoch of the newest answer, 0 without an answer.
    """

    numbers: Declarations
    epochs: list[_JudgedEpoch]
    answers: dict[Finding, MeasuredQuality]
    measured_epoch: int

    @property
    def measured(self) -> Finding | None:
        """The worst finding of quality; None without an answer."""
        return next((finding for finding in _BY_QUALITY if finding in self.answers), None)

    @property
    def findings(self) -> list[Finding]:
        """The findings of the last epochs."""
        return [epoch.finding for epoch in self.epochs]

    @property
    def alarm(self) -> Finding | None:
        """The worst alarm of the last epochs."""
        raised = {epoch.finding for epoch in self.epochs if epoch.is_alarm}
        return next((alarm for alarm in _BY_ALARM.values() if alarm in raised), None)

    @property
    def when(self) -> str:
        """The last epochs as text."""
        first, last = self.epochs[0].numbers.epoch, self.epochs[-1].numbers.epoch
        return f"in epoch {last}" if first == last else f"in epochs {first} to {last}"

    def mean(self, role: Role) -> float:
        """The mean over the last epochs of the metric with a role; NaN without one."""
        values = [self.numbers.value(role, epoch.numbers.scores) for epoch in self.epochs]
        measured = [value for value in values if value is not None]
        return fmean(measured) if measured else math.nan

    def rows(self, role: Role) -> str:
        """The display name of the rows that a metric describes, such as "generated images"."""
        metric = self.numbers.of_role(role)
        return metric.legend[:1].lower() + metric.legend[1:] if metric else "rows"

    def network(self, role: Role) -> str:
        """The display name of the network that a metric describes."""
        metric = self.numbers.of_role(role)
        return self.numbers.network(metric.network).noun if metric and metric.network else "network"


def _judged(
    limits: AlarmLimits, numbers: Declarations, epochs: Sequence[EpochNumbers]
) -> list[_JudgedEpoch]:
    """The last AGREEING epochs or fewer, without the first epoch of the run."""
    befores = [{}, *(epoch.scores for epoch in epochs)]
    judged = []
    for before, epoch in list(zip(befores, epochs, strict=False))[-AGREEING:]:
        if epoch.epoch > FIRST_EPOCH:
            raised = alarms.raised(limits, epoch.scores, epoch.epoch, before)
            topics = {alarm.topic for alarm in raised}
            alarm = next((worst for topic, worst in _BY_ALARM.items() if topic in topics), None)
            finding = alarm or _without_alarm(limits, numbers, epoch.scores)
            judged.append(_JudgedEpoch(epoch, finding, alarm is not None))
    return judged


def _without_alarm(
    limits: AlarmLimits, numbers: Declarations, scores: Mapping[str, float]
) -> Finding:
    """The finding of one epoch without an alarm. A low spread that still rises is too early to
    judge.
    """
    spread = numbers.value("spread_of_generated", scores)
    spread_of_real = numbers.value("spread_of_real", scores) or 0.0
    if spread is not None and spread < limits.collapse_share * spread_of_real:
        return Finding.EARLY
    real = numbers.value("judged_real", scores)
    generated = numbers.value("judged_generated", scores)
    if real is None or generated is None:
        return Finding.NONE
    if generated < WINNING and real > 1.0 - WINNING:
        return Finding.JUDGE_WINS
    return Finding.JUDGE_FOOLED if generated > FOOLED else Finding.BALANCED


def _finding(evidence: _Evidence, is_over: bool) -> Finding:
    """The finding of a run: first trouble on which epochs agree, then trouble in quality, then the
    rest.
    """
    kinds, measured = set(evidence.findings), evidence.measured
    is_whole = len(evidence.epochs) == AGREEING or (is_over and bool(kinds))
    agreed = evidence.findings[0] if is_whole and len(kinds) == 1 else None
    if agreed in TROUBLES:
        return agreed or Finding.NONE
    if measured in TROUBLES:
        return measured or Finding.NONE
    if evidence.alarm is not None:
        return Finding.UNSTEADY
    if not kinds - {Finding.NONE}:
        return measured or (Finding.NONE if is_whole or is_over else Finding.EARLY)
    if not is_whole or Finding.EARLY in kinds:
        return Finding.EARLY
    if agreed is Finding.JUDGE_FOOLED:
        return agreed
    return measured or Finding.BALANCED


def _of_answer(answer: MeasuredQuality) -> Finding | None:
    """The finding of one answer; None without coverage."""
    coverage = next(iter(_coverages(answer)), None)
    classes, sure = (answer.scores.get(name) for name in ("class_distance", "sure"))
    if classes and _low(classes) >= FEW_CLASSES and (sure is None or sure.value >= CLEAR_CLASS):
        return Finding.COLLAPSED
    if coverage is None or not math.isfinite(coverage.value):
        return None
    whole = coverage.floor if math.isfinite(coverage.floor) else 1.0
    if _high(coverage) < UNLIKE_COVERAGE * whole:
        return Finding.UNLIKE
    has_all_classes = classes is None or _high(classes) <= LIKE_CLASSES
    if has_all_classes and _low(coverage) >= LIKE_COVERAGE * whole:
        return Finding.HEALTHY
    return Finding.PARTIAL


def _coverages(answer: MeasuredQuality) -> list[Score]:
    return [answer.scores[name] for name in COVERAGES if name in answer.scores]


def _low(score: Score) -> float:
    return score.low if math.isfinite(score.low) else score.value


def _high(score: Score) -> float:
    return score.high if math.isfinite(score.high) else score.value


# ---- sentences -----------------------------------------------------------------------------------


def _early(evidence: _Evidence) -> str:
    if Finding.EARLY in evidence.findings:
        rows = evidence.rows("spread_of_generated")
        return f"Too early for a verdict: {rows} vary little, but more with each epoch."
    first, last = FIRST_EPOCH + 1, FIRST_EPOCH + AGREEING
    return f"Too early for a verdict: it needs epochs {first} to {last}."


def _unsteady(evidence: _Evidence) -> str:
    alarm = evidence.alarm or Finding.COLLAPSED
    text, role = TITLES[alarm]
    count, epochs = evidence.findings.count(alarm), len(evidence.epochs)
    what = text.format(f"the {evidence.network(role)}")
    return f"Not steady: {what} in {count} of {epochs} epochs ({evidence.when})."


def _collapsed(evidence: _Evidence) -> str:
    rows = evidence.rows("spread_of_generated")
    if set(evidence.findings) == {Finding.COLLAPSED}:
        share = evidence.mean("spread_of_generated") / evidence.mean("spread_of_real")
        real = evidence.rows("spread_of_real")
        return f"Collapsed: {rows} vary {share:.1%} as much as {real} {evidence.when}."
    answer = evidence.answers[Finding.COLLAPSED]
    share = answer.scores["class_distance"].value
    return (
        f"Collapsed: {rows} are of few classes after epoch {answer.epoch} (class distance"
        f" {share:.0%}{_other_real(answer.scores['class_distance'])})."
    )


def _other_real(score: Score) -> str:
    """Text with the same score of other real images."""
    return f", other real images {score.floor:.0%}" if math.isfinite(score.floor) else ""


def _empty(evidence: _Evidence) -> str:
    return f"Empty outputs: {evidence.mean('empty_rows'):.0%} of all {evidence.when}."


def _response(evidence: _Evidence) -> str:
    rows, size = evidence.rows("response"), evidence.mean("response")
    return f"Wrong response: {rows} have {size:.2g} times the true size {evidence.when}."


def _wins(evidence: _Evidence) -> str:
    judge = evidence.network("judged_generated")
    return f"The {judge} wins: {_scores(evidence)}; lower its learning rate."


def _fooled(evidence: _Evidence) -> str:
    return f"The {evidence.network('judged_generated')} is fooled: {_with_measure(evidence)}."


def _balanced(evidence: _Evidence) -> str:
    return f"Balanced: {_with_measure(evidence)}."


def _of_coverage(beginning: str, finding: Finding) -> Callable[[_Evidence], str]:
    def sentence(evidence: _Evidence) -> str:
        answer = evidence.answers[finding]
        covered, rows = _coverages(answer)[0], evidence.rows("spread_of_generated")
        scores = f"; {_scores(evidence)}" if finding is Finding.HEALTHY and evidence.epochs else ""
        return (
            f"{beginning}: {rows} cover {covered.value:.0%} of real ones after epoch"
            f" {answer.epoch}{_other_real(covered)}{scores}."
        )

    return sentence


def _scores(evidence: _Evidence) -> str:
    """Text with the mean scores that the judging network gives."""
    metric = evidence.numbers.of_role("judged_generated")
    judge = evidence.numbers.network(metric.network).short if metric else "The network"
    real, generated = evidence.mean("judged_real"), evidence.mean("judged_generated")
    return f"{judge} scores real {real:.2f}, generated {generated:.2f} {evidence.when}"


def _with_measure(evidence: _Evidence) -> str:
    """Text with the scores, and the metric of quality or when quality was last measured."""
    measure, quality = evidence.numbers.of_role("quality"), evidence.mean("quality")
    if measure is not None and not math.isnan(quality):
        title = measure.title.partition(",")[0]
        rest = f"{title[:1].lower()}{title[1:]} {quality:.3g}"
    elif evidence.measured_epoch:
        rest = f"quality was last measured after epoch {evidence.measured_epoch}"
    else:
        rest = "quality is not measured yet"
    return f"{_scores(evidence)}; {rest}"


_SENTENCES: dict[Finding, Callable[[_Evidence], str]] = {
    Finding.NONE: lambda _: "",
    Finding.EARLY: _early,
    Finding.COLLAPSED: _collapsed,
    Finding.EMPTY: _empty,
    Finding.WRONG_RESPONSE: _response,
    Finding.JUDGE_WINS: _wins,
    Finding.UNLIKE: _of_coverage("Unlike the data", Finding.UNLIKE),
    Finding.UNSTEADY: _unsteady,
    Finding.JUDGE_FOOLED: _fooled,
    Finding.PARTIAL: _of_coverage("Partly like the data", Finding.PARTIAL),
    Finding.BALANCED: _balanced,
    Finding.HEALTHY: _of_coverage("Healthy", Finding.HEALTHY),
}
