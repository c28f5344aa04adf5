"""The verdict of a run: one finding and a sentence with its evidence, from stored numbers only.

Each epoch after the first is judged by its alarms (alarms.py) and by the spread of its rows. A
finding needs AGREEING consecutive epochs, or all epochs of a shorter run that has ended, so no
single epoch decides. An alarm in only some of them makes the run "not steady". The scores of the
judging network do not exclude bad rows, so without an alarm only an evaluation says more.

What the network generates is judged by evaluations: each declares what an answer says, else its
scores are compared with their floors. The worst answer of the newest AGREEING epochs counts. An
answer expires after a quarter of the run's epochs; until then the sentence says of which epoch it
is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from statistics import fmean

from gan_runtime.base.importing import loaded
from gan_runtime.base.metrics import Role, of_score
from gan_runtime.base.packages import guarded
from gan_runtime.catalog import declarations
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.records.answer import Score
from gan_runtime.training import alarms, likeness
from gan_runtime.training.alarms import FIRST_EPOCH, AlarmLimits
from gan_runtime.training.likeness import LIKENESS, Comparison

AGREEING = 3  # epochs
WINNING = 0.05  # mean scores: D wins if it scores generated rows below, real ones above 1 - this


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
    NO_ALARM = "no_alarm"  # and no evaluation has measured it
    MEASURED = "measured"  # without a judgement: by scores alone
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
_BY_ANSWERS = (
    *(Finding.COLLAPSED, Finding.UNLIKE, Finding.COPIES, Finding.PARTIAL, Finding.HEALTHY),
    Finding.MEASURED,
)
# By the scale LIKENESS. A comparison with floors alone makes no run healthy: scores can be few.
_BY_LIKENESS = (Finding.MEASURED, Finding.MEASURED, Finding.PARTIAL, Finding.UNLIKE)


@dataclass(frozen=True)
class EpochNumbers:
    """The measurements of a run after an epoch: metric → value."""

    epoch: int
    scores: Mapping[str, float]


@dataclass(frozen=True)
class MeasuredAnswer:
    """The scores of an evaluation after an epoch, by name."""

    evaluation: str
    epoch: int
    scores: Mapping[str, Score]

    def finite(self, name: str) -> Score | None:
        """The score of this name; None without a finite value."""
        score = self.scores.get(name)
        return score if score and math.isfinite(score.value) else None


@dataclass(frozen=True)
class AnswerVerdict:
    """What one answer says. `evidence`: the scores that decide, in words."""

    finding: Finding
    evidence: str
    epoch: int

    def sentence(self, when: str = "") -> str:
        """The finding with its evidence. `when`: which epochs were not measured, if any."""
        title = TITLES[self.finding][0].replace("{} ", "")
        if when:
            return f"The checkpoint of epoch {self.epoch} is {title}: {self.evidence}; {when}."
        return f"{title[:1].upper()}{title[1:]} after epoch {self.epoch}: {self.evidence}."


Judge = Callable[[MeasuredAnswer], AnswerVerdict | None]  # an evaluation's rule


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
    answers: Sequence[MeasuredAnswer] = (),
    is_over: bool = False,
) -> Verdict:
    """The verdict from a run's measurements. `epochs`, `answers`: earliest first; only the last
    AGREEING + 1 of each matter. `is_over`: whether the run has ended.
    """
    if not epochs and not answers:
        return Verdict()
    numbers = _numbers(limits.workload)
    last = max((epoch.epoch for epoch in epochs), default=0)
    counting = _counting(answers, last - max(AGREEING, last // 4))
    evidence = _Evidence(
        numbers,
        _judged(limits, numbers, epochs),
        {said.finding: said for answer in counting if (said := of_answer(answer)) is not None},
        max((answer.epoch for answer in answers), default=0),
        last,
        is_over,
    )
    finding = _finding(evidence, is_over)
    text, role = TITLES[finding]
    title = text.format(evidence.network(role))
    said = evidence.answer(finding)
    if said is None:
        return Verdict(finding, title, _SENTENCES[finding](evidence))
    when = evidence.not_measured(said.epoch)
    return Verdict(finding, f"{title}, epoch {said.epoch}" if when else title, said.sentence(when))


def of_answer(answer: MeasuredAnswer) -> AnswerVerdict | None:
    """What an answer says by the rule of its evaluation; None for an evaluation that this version
    does not know, without the scores that the rule needs, or if the rule fails.
    """
    declared = evaluations().get(answer.evaluation)
    if declared is None:
        return None
    judge = guarded(f"the verdict of evaluation {declared.name}", _judged_by, None)
    return judge(declared, answer)


def _judged_by(declared: Evaluation, answer: MeasuredAnswer) -> AnswerVerdict | None:
    judge: Judge = loaded(declared.verdict) if declared.verdict else partial(_by_floors, declared)
    said = judge(answer)
    if said is not None and said.finding not in _BY_ANSWERS:
        raise ValueError(f"{said.finding} is a finding of epochs")
    return said


def _by_floors(declared: Evaluation, answer: MeasuredAnswer) -> AnswerVerdict | None:
    """The median score by its floor; without floors the measured quality, else the first score."""
    by_metric = {of_score(declared.scores, name): score for name, score in answer.scores.items()}
    scores = {
        metric: by_metric[metric]
        for metric in declared.scores
        if metric in by_metric and math.isfinite(by_metric[metric].value)
    }
    if not scores:
        return None
    comparison = Comparison.of(scores)
    if not comparison.rated:
        metric = min(scores, key=lambda metric: metric.role != "measured_quality")
        evidence = f"{metric.title} {metric.in_words(scores[metric].value)}"
        return AnswerVerdict(Finding.MEASURED, evidence, answer.epoch)
    better, middle = comparison.decisive
    evidence = (
        f"the median score is {likeness.middle_in_words(better, middle)} that of ground truth"
        " against itself"
    )
    finding = _BY_LIKENESS[comparison.rank]
    if finding is Finding.MEASURED:
        evidence = f"{comparison.grade} the ground truth; {evidence}"
    return AnswerVerdict(finding, evidence, answer.epoch)


@cache
def _numbers(workload: str) -> Declarations:
    return declarations.of(workload)


def _counting(answers: Sequence[MeasuredAnswer], first: int) -> list[MeasuredAnswer]:
    """The newest answer of each evaluation and those of the AGREEING - 1 epochs before it, from
    epoch `first` on.
    """
    newest = {answer.evaluation: answer.epoch for answer in answers}
    return [
        answer
        for answer in answers
        if answer.epoch >= max(first, newest[answer.evaluation] - AGREEING + 1)
    ]


# ---- findings ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _JudgedEpoch:
    """An epoch and the finding that it alone would give."""

    numbers: EpochNumbers
    finding: Finding
    is_alarm: bool


@dataclass(frozen=True)
class _Evidence:
    """The evidence of a verdict. `answers`: each finding of an evaluation, with the newest answer.

    `measured_epoch`: the epoch of the newest answer, 0 without an answer; `last`: the last epoch.
    """

    numbers: Declarations
    epochs: list[_JudgedEpoch]
    answers: dict[Finding, AnswerVerdict]
    measured_epoch: int
    last: int
    is_over: bool

    @property
    def measured(self) -> Finding | None:
        """The worst finding of the evaluations; None without an answer."""
        return next((finding for finding in _BY_ANSWERS if finding in self.answers), None)

    @property
    def findings(self) -> list[Finding]:
        """The findings of the last epochs."""
        return [epoch.finding for epoch in self.epochs]

    @property
    def alarm(self) -> Finding | None:
        """The worst alarm of the last epochs."""
        raised = {epoch.finding for epoch in self.epochs if epoch.is_alarm}
        return next((alarm for alarm in _BY_ALARM.values() if alarm in raised), None)

    def answer(self, finding: Finding) -> AnswerVerdict | None:
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
    """The finding of a run: first trouble on which epochs agree, then trouble that an evaluation
    found, then the rest.
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
    return measured or Finding.NO_ALARM


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
    measure, value = evidence.numbers.of_role("quality"), evidence.mean("quality")
    if measure is not None and not math.isnan(value):
        title = measure.title.partition(",")[0]
        parts.append(f"{title[:1].lower()}{title[1:]} {value:.3g}")
    elif evidence.measured_epoch:
        parts.append(f"quality was last measured after epoch {evidence.measured_epoch}")
    else:
        parts.append("quality is not measured yet")
    return f"No alarm: {'; '.join(parts)}."


_SENTENCES: dict[Finding, Callable[[_Evidence], str]] = {
    Finding.NONE: lambda _: "",
    Finding.EARLY: _early,
    Finding.COLLAPSED: _collapsed,
    Finding.EMPTY: _empty,
    Finding.WRONG_RESPONSE: _response,
    Finding.JUDGE_WINS: _wins,
    Finding.UNSTEADY: _unsteady,
    Finding.NO_ALARM: _no_alarm,
}
