"""The verdict of a run: one finding and a sentence with its evidence, from stored numbers only.

Each epoch after the first is judged by its alarms (alarms.py) and by the spread of its rows. A
finding needs AGREEING consecutive epochs, or all epochs of a shorter run that has ended, so no
single epoch decides. An alarm in only some of them makes the run "not steady". The scores of the
judging network do not exclude bad rows, so without an alarm only an evaluation says more.

Images are judged by the evaluation `quality`: coverage, precision and kernel distance against other
real images, the share of each class, and copies. The worst answer of the newest AGREEING epochs
counts, each score by the end of its 95% interval that speaks against the finding. An answer expires
after a quarter of the run's epochs; until then the sentence says of which epoch it is. For other
evaluations the sentence repeats what their pages say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from statistics import fmean

from gan_runtime.base.metrics import Metric, Role
from gan_runtime.catalog import declarations
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.records.answer import Score
from gan_runtime.training import alarms, likeness
from gan_runtime.training.alarms import FIRST_EPOCH, AlarmLimits
from gan_runtime.training.likeness import LIKENESS, Comparison

AGREEING = 3  # epochs
WINNING = 0.05  # mean scores: D wins if it scores generated rows below, real ones above 1 - this
# Coverage and precision as a share of those of other real images (their floors): with a coverage
# below the first limit the images are unlike the data, from the second on they are like it.
UNLIKE_COVERAGE, LIKE_DATA = 0.1, 0.75
RARE_CLASS = 0.5  # generated share of a class over its real share
MOST_COPIES = 0.1  # share of images as near to a training image as the nearest 1% of real ones
# Class distance: from the first limit on, half of the images would have to change class; that is a
# collapse if classes are clear. Up to the second limit the classes are as in the data.
FEW_CLASSES, LIKE_CLASSES = 0.5, 0.25
CLEAR_CLASS = 0.5  # share of images whose class the classifier is sure of
# By the network that read the images; without labels there is no classifier.
COVERAGES = ("coverage", "imagenet_coverage", "inception_coverage")
PRECISIONS = ("precision", "imagenet_precision", "inception_precision")
# The most of each distance, as a share of the way from real images to noise. By its value: the
# interval of FCD∞ is up to 3.5 times too wide. FCD∞ needs 512 images of a classifier.
LIKE_DISTANCES = {"fcd_infinite": 0.015, "kcd": 0.05, "imagenet_kcd": 0.05, "kid": 0.05}
DISTANCES = {"fcd_infinite": "FCD∞", "kcd": "KCD", "imagenet_kcd": "KCD", "kid": "KID"}
# read by a verdict
QUALITY_SCORES = (
    *(*COVERAGES, *PRECISIONS, *DISTANCES, "class_distance", "sure", "rarest_class", "copies"),
)


class Finding(StrEnum):
    """The possible findings about a run."""

    NONE = "none"  # nothing was measured
    EARLY = "early"
    COLLAPSED = "collapsed"
    EMPTY = "empty"
    WRONG_RESPONSE = "wrong_response"
    JUDGE_WINS = "judge_wins"
    UNLIKE = "unlike"
    COPIES = "copies"
    UNSTEADY = "unsteady"
    PARTIAL = "partial"
    NO_ALARM = "no_alarm"  # and no image was measured
    MEASURED = "measured"  # by another evaluation than that of images
    HEALTHY = "healthy"


# Titles for tables. {} is the network described by the metric with this role.
TITLES: dict[Finding, tuple[str, Role]] = {
    Finding.NONE: ("", ""),
    Finding.EARLY: ("too early", ""),
    Finding.COLLAPSED: ("{} collapsed", "spread_of_generated"),
    Finding.EMPTY: ("{}: empty outputs", "empty_rows"),
    Finding.WRONG_RESPONSE: ("{}: wrong response", "response"),
    Finding.JUDGE_WINS: ("{} wins", "judged_generated"),
    Finding.UNLIKE: (f"{LIKENESS[3]} the data", ""),
    Finding.COPIES: ("copying training images", ""),
    Finding.UNSTEADY: ("not steady", ""),
    Finding.PARTIAL: (f"{LIKENESS[2]} the data", ""),
    Finding.NO_ALARM: ("no alarm", ""),
    Finding.MEASURED: ("measured", ""),
    Finding.HEALTHY: ("healthy", ""),
}
# Worst first.
_BY_ALARM = {
    "alarm_collapse": Finding.COLLAPSED,
    "alarm_empty": Finding.EMPTY,
    "alarm_response": Finding.WRONG_RESPONSE,
    "alarm_d_wins": Finding.JUDGE_WINS,
}
TROUBLES = frozenset({*_BY_ALARM.values(), Finding.UNLIKE, Finding.COPIES, Finding.UNSTEADY})
_BY_QUALITY = (
    *(Finding.COLLAPSED, Finding.UNLIKE, Finding.COPIES, Finding.PARTIAL, Finding.HEALTHY),
)


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
class OtherAnswer:
    """The newest answer of another evaluation: its scores by the metrics of the run."""

    epoch: int
    scores: Mapping[Metric, Score]


@dataclass(frozen=True)
class ImageVerdict:
    """What one answer says about images. `evidence`: the scores that decide, in words."""

    finding: Finding
    evidence: str
    epoch: int

    def sentence(self, when: str = "") -> str:
        """The finding with its evidence. `when`: which epochs were not measured, if any."""
        title = TITLES[self.finding][0].replace("{} ", "")
        if when:
            return f"The checkpoint of epoch {self.epoch} is {title}: {self.evidence}; {when}."
        return f"{title[:1].upper()}{title[1:]} after epoch {self.epoch}: {self.evidence}."


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
    other: OtherAnswer | None = None,
) -> Verdict:
    """The verdict from a run's measurements. `epochs`, `quality`: earliest first; only the last
    AGREEING + 1 of each matter. `is_over`: whether the run has ended.
    """
    if not epochs and not quality and other is None:
        return Verdict()
    numbers = _numbers(limits.workload)
    last = max((epoch.epoch for epoch in epochs), default=0)
    answers = _counting(quality, last - max(AGREEING, last // 4))
    evidence = _Evidence(
        numbers,
        _judged(limits, numbers, epochs),
        {judged.finding: judged for answer in answers if (judged := of_images(answer)) is not None},
        max((answer.epoch for answer in quality), default=0),
        last,
        is_over,
        other,
    )
    finding = _finding(evidence, is_over)
    text, role = TITLES[finding]
    title = text.format(evidence.network(role))
    judged = evidence.images(finding)
    if judged is None:
        return Verdict(finding, title, _SENTENCES[finding](evidence))
    when = evidence.not_measured(judged.epoch)
    return Verdict(
        finding, f"{title}, epoch {judged.epoch}" if when else title, judged.sentence(when)
    )


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
    """The evidence of a verdict. `answers`: each finding about images, with the newest answer.

    `measured_epoch`: the epoch of the newest answer, 0 without an answer; `last`: the last epoch.
    """

    numbers: Declarations
    epochs: list[_JudgedEpoch]
    answers: dict[Finding, ImageVerdict]
    measured_epoch: int
    last: int
    is_over: bool
    other: OtherAnswer | None

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

    def images(self, finding: Finding) -> ImageVerdict | None:
        """The answer that gives a finding; None if the epochs give it."""
        return self.answers.get(finding) if finding is not self._agreed else None

    @property
    def _agreed(self) -> Finding | None:
        kinds = set(self.findings)
        return self.findings[0] if len(kinds) == 1 else None

    def not_measured(self, epoch: int) -> str:
        """Text on the epochs after a measured one; "" if it is the last."""
        if epoch >= self.last:
            return ""
        return "the end was not measured" if self.is_over else "later epochs are not measured yet"

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
    if real is not None and generated is not None:
        return (
            Finding.JUDGE_WINS if generated < WINNING and real > 1.0 - WINNING else Finding.NO_ALARM
        )
    return Finding.NONE if spread is None else Finding.NO_ALARM


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
        if evidence.other:
            return measured or Finding.MEASURED
        return measured or (Finding.NONE if is_whole or is_over else Finding.EARLY)
    if not is_whole or Finding.EARLY in kinds:
        return Finding.EARLY
    return measured or (Finding.MEASURED if evidence.other else Finding.NO_ALARM)


# ---- images --------------------------------------------------------------------------------------


def of_images(answer: MeasuredQuality) -> ImageVerdict | None:
    """What an answer of the evaluation `quality` says; None without coverage, precision and kernel
    distance.
    """
    classes, sure = (answer.scores.get(name) for name in ("class_distance", "sure"))
    if classes and _low(classes) >= FEW_CLASSES and (sure is None or sure.value >= CLEAR_CLASS):
        evidence = f"few classes, class distance {classes.value:.0%}{_real(classes, '.0%')}"
        return ImageVerdict(Finding.COLLAPSED, evidence, answer.epoch)
    coverage, precision, distance = (
        next((score for name in names if (score := _finite(answer, name))), None)
        for names in (COVERAGES, PRECISIONS, DISTANCES)
    )
    if coverage is None:
        return None
    covered = (
        f"generated images cover {coverage.value:.0%} of the real ones"
        f"{_real(coverage, '.0%', 'other real ones')}"
    )
    if _high(coverage) < UNLIKE_COVERAGE * _whole(coverage):
        return ImageVerdict(Finding.UNLIKE, covered, answer.epoch)
    copies = _finite(answer, "copies")
    if copies and _low(copies) - max(0.0, copies.floor) > MOST_COPIES:
        evidence = f"{copies.value:.0%} are as near to one as the nearest 1% of real images"
        return ImageVerdict(Finding.COPIES, evidence, answer.epoch)
    if precision is None or distance is None:
        return None
    shortfalls = [
        *([covered] if _low(coverage) < LIKE_DATA * _whole(coverage) else []),
        *_shortfalls(answer.scores, precision, distance),
    ]
    if shortfalls:
        more = [] if covered in shortfalls else [covered]
        evidence = "; ".join([*shortfalls, *more][:2])
        return ImageVerdict(Finding.PARTIAL, evidence, answer.epoch)
    named = (
        f"precision {precision.value:.0%}{_real(precision, '.0%')}",
        f"{DISTANCES[distance.name]} {distance.value:.2g}{_real(distance, '.2g')}",
        *(["no class is rare"] if _finite(answer, "rarest_class") else []),
        *([f"copies {copies.value:.0%}"] if copies else []),
    )
    return ImageVerdict(Finding.HEALTHY, f"{covered}; {', '.join(named)}", answer.epoch)


def _shortfalls(scores: Mapping[str, Score], precision: Score, distance: Score) -> list[str]:
    """The evidence, apart from coverage, that images are not like the data."""
    rarest, classes = scores.get("rarest_class"), scores.get("class_distance")
    way = (distance.value - distance.floor) / (distance.ceiling - distance.floor)
    evidence = []
    if rarest and _high(rarest) < RARE_CLASS:
        evidence.append(f"a class has {rarest.value:.0%} of its share of real images")
    if not _low(precision) >= LIKE_DATA * _whole(precision):
        evidence.append(
            f"{precision.value:.0%} are near a real image{_real(precision, '.0%', 'of real ones')}"
        )
    if not way <= LIKE_DISTANCES[distance.name]:
        title, noise = DISTANCES[distance.name], f"noise {distance.ceiling:,.3g}"
        real = f"real ones {distance.floor:,.3g}"
        evidence.append(f"{title} {distance.value:,.3g} ({real}, {noise})")
    if classes and not _high(classes) <= LIKE_CLASSES:
        evidence.append(f"class distance {classes.value:.0%}{_real(classes, '.0%')}")
    return evidence


def _real(score: Score, form: str, text: str = "real ones") -> str:
    """Text with the same score of other real images."""
    return f" ({text} {score.floor:{form}})" if math.isfinite(score.floor) else ""


def _whole(score: Score) -> float:
    return score.floor if math.isfinite(score.floor) else 1.0


def _finite(answer: MeasuredQuality, name: str) -> Score | None:
    score = answer.scores.get(name)
    return score if score and math.isfinite(score.value) else None


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
    share = evidence.mean("spread_of_generated") / evidence.mean("spread_of_real")
    real = evidence.rows("spread_of_real")
    return f"Collapsed: {rows} vary {share:.1%} as much as {real} {evidence.when}."


def _empty(evidence: _Evidence) -> str:
    return f"Empty outputs: {evidence.mean('empty_rows'):.0%} of all {evidence.when}."


def _response(evidence: _Evidence) -> str:
    rows, size = evidence.rows("response"), evidence.mean("response")
    return f"Wrong response: {rows} have {size:.2g} times the true size {evidence.when}."


def _wins(evidence: _Evidence) -> str:
    judge = evidence.network("judged_generated")
    return f"The {judge} wins: {_scores(evidence)}; lower its learning rate."


def _scores(evidence: _Evidence) -> str:
    """Text with the mean scores that the judging network gives."""
    metric = evidence.numbers.of_role("judged_generated")
    judge = evidence.numbers.network(metric.network).short if metric else "The network"
    real, generated = evidence.mean("judged_real"), evidence.mean("judged_generated")
    return f"{judge} scores real {real:.2f}, generated {generated:.2f} {evidence.when}"


def _no_alarm(evidence: _Evidence) -> str:
    """The numbers of the epochs, without a judgement."""
    parts = []
    if not math.isnan(evidence.mean("judged_generated")):
        parts.append(_scores(evidence))
    measure, quality = evidence.numbers.of_role("quality"), evidence.mean("quality")
    if measure is not None and not math.isnan(quality):
        title = measure.title.partition(",")[0]
        parts.append(f"{title[:1].lower()}{title[1:]} {quality:.3g}")
    elif evidence.measured_epoch:
        parts.append(f"quality was last measured after epoch {evidence.measured_epoch}")
    else:
        parts.append("quality is not measured yet")
    return f"No alarm: {'; '.join(parts)}."


def _measured(evidence: _Evidence) -> str:
    """What another evaluation says: the median score by its floor, else a score of quality."""
    other = evidence.other
    if other is None:
        return ""
    comparison, when = Comparison.of(other.scores), evidence.not_measured(other.epoch)
    end = f"; {when}." if when else "."
    if not comparison.rated:
        metric = min(other.scores, key=lambda metric: metric.role != "measured_quality")
        value = metric.in_words(other.scores[metric].value)
        return f"Measured after epoch {other.epoch}: {metric.title} {value}{end}"
    grade, (better, middle) = comparison.grade, next(iter(comparison.middles.items()))
    return (
        f"{grade[:1].upper()}{grade[1:]} the ground truth after epoch {other.epoch}: the median"
        f" score is {likeness.middle_in_words(better, middle)} that of ground truth against"
        f" itself{end}"
    )


_SENTENCES: dict[Finding, Callable[[_Evidence], str]] = {
    Finding.NONE: lambda _: "",
    Finding.EARLY: _early,
    Finding.COLLAPSED: _collapsed,
    Finding.EMPTY: _empty,
    Finding.WRONG_RESPONSE: _response,
    Finding.JUDGE_WINS: _wins,
    Finding.UNSTEADY: _unsteady,
    Finding.NO_ALARM: _no_alarm,
    Finding.MEASURED: _measured,
}
