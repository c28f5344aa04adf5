"""What the page of an evaluation shows, read from stored answers, and what the evaluation adds to
it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner_utils.exceptions import ScriptControlException

from dashboard import palette, run_selection
from gan_runtime.base.errors import PackageError
from gan_runtime.base.metrics import Metric, of_score
from gan_runtime.base.packages import replaced
from gan_runtime.catalog import table
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.answer import Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.queries import EvaluationRow, RunRow
from gan_runtime.store.store import Store

log = logging.getLogger("gan_runtime")
Scores = dict[str, Score]
Identity = tuple[str, str]  # run and key of an answer
MOST_ANSWERS, MOST_HEADLINES = 4, 5
NUMBERS = ("value", "error", "low", "high", "floor", "floor_error", "ceiling")


@dataclass(frozen=True)
class Selection:
    """One answer of each run, or several of one run.

    `answers`: by their names in charts; figures show the first. `runs`: by id. `stored`: all
    answers of these runs; `scores`: of each of them, by identity.
    """

    evaluation: Evaluation
    page: DomainPage
    runs: dict[str, RunRow]
    answers: dict[str, EvaluationRow]
    stored: list[EvaluationRow]
    scores: dict[Identity, Scores]

    @property
    def first(self) -> tuple[str, EvaluationRow]:
        """Name and answer that figures show."""
        return next(iter(self.answers.items()))

    @property
    def colors(self) -> dict[str, str]:
        """One answer has the color of generated data; several have the colors of their runs."""
        if len(self.answers) == 1:
            return dict.fromkeys(self.answers, palette.SIDES["generated"])
        indices = [self.runs[row.run_id].color for row in self.answers.values()]
        return dict(zip(self.answers, palette.distinct(indices), strict=True))

    @property
    def key(self) -> str:
        """Equal for equal selections."""
        return "+".join(f"{row.run_id}.{row.key}" for row in self.answers.values())

    def run_of(self, name: str) -> RunRow:
        """The run of the answer with this name."""
        return self.runs[self.answers[name].run_id]

    def scores_of(self, name: str) -> Scores:
        """The scores of the answer with this name."""
        return self.scores[identity(self.answers[name])]

    def value_words(self, metric: Metric, score: Score, row: EvaluationRow) -> str:
        """A value in words, with its error."""
        if self.page.value_words is not None:
            return self.page.value_words(metric, score, row)
        return number(metric, score.value, score.error)

    def metric(self, name: str) -> Metric:
        """The declaration of a score."""
        return next(metric for metric in self.page.scores if metric.name == name)


@dataclass(frozen=True)
class DomainTab:
    """A tab of a domain. `draw`: draws it; called only while the tab is open."""

    title: str
    draw: Callable[[Runtime, Selection], None]


@dataclass(frozen=True)
class OptionChoices:
    """What the form offers for an option of a run: value → title, or any number up to `most`;
    `several`: any subset of the values.
    """

    titles: Mapping[Any, str] = field(default_factory=dict)
    several: bool = False
    most: float | None = None


@dataclass(frozen=True)
class DomainPage:
    """What an evaluation adds to its page.

    `tabs`: its views. `scores`: all scores in page order; `texts`: what each is. `headline`: the
    scores of the first row, of which the verdict uses the first; `substitutes`: their replacements
    where an answer lacks one. `over_epochs`: the scores drawn over epochs; `best_rule`: the words
    before the best epoch by the first.
    `real`: what generated rows are compared with. `subject`: an answer in words; `about`: what
    distinguishes it from others of its run except the epoch. `usual`: the answers shown first,
    from a run's answers, newest first. `unbiased`: scores with a floor near 0, whose ratios to it
    mean nothing.
    `definition(facts)`: on what the scores of an answer depend, in words.
    `baselines`: simpler predictions in words, by name, the most important first. `read`: converts a
    stored score. `value_words`: a value in words, if it is more than a number; `below`: the text
    below a figure, "" for its floor or baselines. `choices(home, run)`: the form's choices by
    option. `literature`: draws published tables. `no_answer`: a sentence for a run without answers.
    """

    tabs: tuple[DomainTab, ...]
    scores: tuple[Metric, ...]
    headline: tuple[str, ...]
    over_epochs: tuple[str, ...]
    best_rule: str = "By the first of these scores"
    real: str = "held-out rows"
    no_answer: str = "This run is not evaluated yet. Its scores appear here after the evaluation."
    subject: Callable[[EvaluationRow], str] = lambda row: (
        f"epoch {row.epoch} ({row.checkpoint} checkpoint)"
    )
    about: Callable[[EvaluationRow], dict[str, str]] = lambda _: {}
    usual: Callable[[list[EvaluationRow]], list[EvaluationRow]] = lambda rows: rows[:1]
    definition: Callable[[Mapping[str, Any]], str] = lambda _: ""
    texts: Mapping[str, str] = field(default_factory=dict)
    baselines: Mapping[str, str] = field(default_factory=dict)
    substitutes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unbiased: frozenset[str] = frozenset()
    floor_title: str = "Real against real"
    ceiling_title: str = "Noise"
    floor_help: str = (
        "Real against real: the score of held-out rows against other held-out rows. A lower score"
        " is chance."
    )
    read: Callable[[Score], Score] = lambda score: score
    value_words: Callable[[Metric, Score, EvaluationRow], str] | None = None
    below: Callable[[Metric, Scores], str] = lambda *_: ""
    choices: Callable[[Home, RunDir], Mapping[str, OptionChoices]] = lambda *_: {}
    literature: Callable[[Runtime, Selection], None] | None = None

    def among(self, names: Iterable[str], scores: Collection[str]) -> list[str]:
        """Each name, or the first of its substitutes, that an answer has a score for."""
        candidates = ((name, *self.substitutes.get(name, ())) for name in names)
        firsts = (next((name for name in group if name in scores), "") for group in candidates)
        return [name for name in firsts if name]


def by_key(row: EvaluationRow) -> dict[str, str]:
    """What distinguishes an answer of an evaluation without a page."""
    return {"key": row.key}


def page_of(declared: Evaluation) -> DomainPage:
    """What an evaluation adds to its page; if nothing, or if that of a package cannot be loaded,
    keys distinguish its answers.
    """
    if declared.page:
        try:
            page = table.declared(declared.page, DomainPage)
            is_of_project = declared.page.startswith("dashboard.")
            return page if is_of_project else _protected(declared.page, page)
        except PackageError as error:
            log.warning("the page of evaluation %s is the usual one: %s", declared.name, error)
    names = tuple(metric.name for metric in declared.scores)
    return DomainPage(
        tabs=(),
        scores=declared.scores,
        headline=names[:MOST_HEADLINES],
        over_epochs=names[:3],
        about=by_key,
        usual=lambda rows: list({row.key: row for row in reversed(rows)}.values())[:MOST_ANSWERS],
    )


FUNCTIONS = ("subject", "usual", "definition", "read", "below", "choices")
NOT_DRAWN = "This part cannot be drawn: the log says why."


def _protected(place: str, page: DomainPage) -> DomainPage:
    """The page of a package. Where one of its functions raises, that part is the usual one."""

    def part(name: str, function: Any, substitute: Any) -> Any:
        what = f"`{name}` of {place}"
        return function and replaced(what, function, substitute, (ScriptControlException,))

    def say(*_: object) -> None:
        st.error(NOT_DRAWN, icon=":material/error:")

    usual = DomainPage((), (), (), ())
    return replace(
        page,
        tabs=tuple(replace(tab, draw=part(tab.title, tab.draw, say)) for tab in page.tabs),
        about=part("about", page.about, by_key),
        value_words=part("value_words", page.value_words, lambda *of: number(of[0], of[1].value)),
        literature=part("literature", page.literature, say),
        **{name: part(name, getattr(page, name), getattr(usual, name)) for name in FUNCTIONS},
    )


def number(metric: Metric, value: float | None, error: float = math.nan) -> str:
    """A value in words, with its error if known: "2.1% ± 0.3%"; a dash for none."""
    if value is None or math.isnan(value):
        return "–"
    spread = "" if math.isnan(error) else f" ± {metric.in_words(error)}"
    return f"{metric.in_words(value)}{spread}"


def bar(score: Score) -> tuple[float, float]:
    """The ends of an error bar: the 95% interval if it is known, else one standard deviation."""
    if math.isfinite(score.low) and math.isfinite(score.high):
        return score.low, score.high
    error = 0.0 if math.isnan(score.error) else score.error
    return score.value - error, score.value + error


def bar_words(scores: Iterable[Score]) -> str:
    """What the error bars of these scores are."""
    has_interval = any(math.isfinite(score.low) for score in scores)
    return "95% intervals" if has_interval else "one standard deviation"


def cautions(rows: list[EvaluationRow]) -> str:
    """The warnings of answers, and whether their scores are comparable; "" without."""
    warnings = dict.fromkeys(str(row.facts.get("warning") or "") for row in rows)
    values: dict[tuple[str, ...], set[object]] = {}  # by the kind of answer and the fact
    for row in rows:
        if declared := evaluations().get(row.evaluation):
            about = page_of(declared).about
            # A key says nothing of what an answer is.
            kind = row.evaluation, *(() if about is by_key else about(row).values())
            for name in declared.defining_facts:
                values.setdefault((*kind, name), set()).add(repr(row.facts.get(name)))
    differing = dict.fromkeys(key[-1] for key, each in values.items() if len(each) > 1)
    mixed = f"{NOT_COMPARABLE} {' and '.join(differing)}." if differing else ""
    return " ".join(filter(None, [*warnings, mixed]))


NOT_COMPARABLE = "These scores are not comparable, since their answers differ in"


def identity(row: EvaluationRow) -> Identity:
    """Unique among the answers of an evaluation."""
    return row.run_id, row.key


def stored_answers(store: Store, evaluation: str, run_ids: list[str]) -> list[EvaluationRow]:
    """The answers of these runs, newest first."""
    rows = queries.evaluations(store, run_ids, evaluation)
    return sorted(rows, key=lambda row: (row.measured_at, row.epoch), reverse=True)


def stored_scores(
    store: Store, page: DomainPage, evaluation: str, rows: list[EvaluationRow]
) -> dict[Identity, Scores]:
    """The scores by answer and declared name."""
    frame = queries.evaluation_scores(store, list({row.run_id for row in rows}), evaluation)
    scores: dict[Identity, Scores] = {identity(row): {} for row in rows}
    for row in frame.to_dict("records"):
        metric = of_score(page.scores, row["score"])
        score = Score(
            name=row["score"] if metric is None else metric.name,
            baselines={
                name: value for name, value in (row["baselines"] or {}).items() if value is not None
            },
            samples=None if row["samples"] != row["samples"] else row["samples"],
            **{name: row[name] for name in NUMBERS},
        )
        scores.setdefault((row["run_id"], row["key"]), {})[score.name] = page.read(score)
    return scores


def names_of(
    rows: list[EvaluationRow],
    runs: Mapping[str, RunRow],
    about: Callable[[EvaluationRow], dict[str, str]],
) -> list[str]:
    """Unique names of answers for charts: the run and, where needed, everything in which they
    differ.
    """
    run_names = run_selection.unique_names(
        [runs[run_id] for run_id in dict.fromkeys(row.run_id for row in rows)]
    )
    parts = [{"epoch": f"epoch {row.epoch}", **about(row)} for row in rows]
    return unique_labels([run_names[row.run_id] for row in rows], parts, [row.key for row in rows])


def unique_labels(firsts: list[str], parts: list[dict[str, str]], keys: list[str]) -> list[str]:
    """`firsts`; if some are equal, with all parts in which they differ, and finally with the unique
    key.
    """
    if len(set(firsts)) == len(firsts):
        return firsts
    every = dict.fromkeys(part for facts in parts for part in facts)
    differing = [part for part in every if len({facts.get(part) for facts in parts}) > 1]
    names = [
        " · ".join([first, *(facts[part] for part in differing if part in facts)])
        for first, facts in zip(firsts, parts, strict=True)
    ]
    return [
        f"{name} · {key}" if names.count(name) > 1 else name
        for name, key in zip(names, keys, strict=True)
    ]


def label(row: EvaluationRow, run: RunRow, about: dict[str, str]) -> str:
    """An answer as an entry of a list."""
    return " · ".join(
        [run_selection.unique_names([run])[run.run_id], f"epoch {row.epoch}", *about.values()]
    )
