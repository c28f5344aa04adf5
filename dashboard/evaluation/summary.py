"""How good a run is: a verdict from its scores, the main figures, and all scores against their
floors and baselines.

Also published scores, from the declaration and from the domain.
"""

from __future__ import annotations

import math
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import plots, tables, words
from dashboard.evaluation import charts as evaluation_charts
from dashboard.evaluation.answers import Scores, Selection, bar, number
from gan_runtime.base.metrics import Metric
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.answer import Score
from gan_runtime.store.queries import EvaluationRow
from gan_runtime.training import likeness
from gan_runtime.training.likeness import Comparison
from gan_runtime.training.verdict import MeasuredAnswer, of_answer

Outcomes = dict[str, dict[str, list[str]]]  # baseline → "better", "worse" → titles of scores


def draw(_: Runtime, selection: Selection) -> None:
    """The tab `Summary`."""
    if not any(selection.scores_of(name) for name in selection.answers):
        st.info("This evaluation has no scores: see its tab Curves.")
        return
    if len(selection.answers) == 1:
        st.markdown(verdict(selection, selection.first[0]))
    else:
        st.markdown(
            "\n".join(
                f"- {words.plain(name)}: {verdict(selection, name)}" for name in selection.answers
            )
        )
    figures(selection)
    name, row = selection.first
    subject = (
        f"Figures are those of **{words.plain(name)}**"
        if len(selection.answers) > 1
        else "Figures are"
    )
    st.caption(
        f"{subject}, {selection.page.subject(row)}.".replace("Figures are,", "Figures are of")
    )
    against(selection)
    st.markdown("**All scores**")
    tables.show(table(selection), hide_index=True, key="evaluation.scores", height="content")
    meanings = st.expander("What the scores mean", icon=":material/help:", on_change="rerun")
    if meanings.open:
        explained = [
            metric for metric in selection.page.scores if metric.name in selection.page.texts
        ]
        meanings.markdown(
            "\n".join(
                f"- **{metric.title}** – {selection.page.texts[metric.name]}"
                for metric in explained
            )
        )


def verdict(selection: Selection, name: str) -> str:
    """The verdict on an answer, in a few sentences: that of the evaluation, and against its
    baselines; against the floors if it has neither.
    """
    scores = selection.scores_of(name)
    own, outcomes = _of_evaluation(selection, name), _outcomes(selection, scores)
    if outcomes:
        return f"{own} {_against_baselines(selection, scores, outcomes)}".strip()
    return own or _against_floors(selection, scores)


def _of_evaluation(selection: Selection, name: str) -> str:
    """The sentence of the run's verdict, for one answer, if the evaluation declares one."""
    if not selection.evaluation.verdict:
        return ""
    answer = MeasuredAnswer(
        selection.evaluation.name, selection.answers[name].epoch, selection.scores_of(name)
    )
    said = of_answer(answer)
    title, _, evidence = said.sentence().partition(":") if said else ("", "", "")
    return f"**{title}**:{evidence}" if title else ""


def _against_baselines(selection: Selection, scores: Scores, outcomes: Outcomes) -> str:
    """The main scores in which an answer is better or worse than each baseline, then their values.

    Only main scores: the others are often the same error, measured again.
    """
    sentences, values = [], []
    for baseline, ways in outcomes.items():
        parts = [f"{way} in {', '.join(titles)}" for way, titles in ways.items()]
        sentences.append(f"Against the {baseline}: {'; '.join(parts)}.")
    for name in _headline(selection, scores):
        metric, baselines = selection.metric(name), _baselines(selection, scores[name])
        if baselines.keys() & outcomes.keys():
            own = number(metric, scores[name].value, scores[name].error)
            others = [f"{title} {number(metric, value)}" for title, value in baselines.items()]
            values.append(f"{metric.title}: {', '.join([own, *others])}.")
    return f"**{' '.join(sentences)}** {' '.join(values)}"


def _outcomes(selection: Selection, scores: Scores) -> Outcomes:
    """By baseline: "better" and "worse" → titles of the main scores; baselines of a single score
    only if no other has more.
    """
    outcomes: Outcomes = {}
    for baseline in selection.page.baselines.values():
        for name in _headline(selection, scores):
            metric, score = selection.metric(name), scores[name]
            value = _baselines(selection, score).get(baseline, math.nan)
            if metric.better and math.isfinite(value) and math.isfinite(score.value):
                is_better = (
                    score.value > value if metric.better == "higher" else score.value < value
                )
                way = "better" if is_better else "worse"
                outcomes.setdefault(baseline, {}).setdefault(way, []).append(metric.title)
    several = {name: ways for name, ways in outcomes.items() if sum(map(len, ways.values())) > 1}
    return several or outcomes


def _against_floors(selection: Selection, scores: Scores) -> str:
    """How many scores reach their floor, and the distance of the others."""
    page = selection.page
    comparison = Comparison.of(
        {metric: scores.get(metric.name) for metric in page.scores}, page.unbiased
    )
    rated, missed, middles = comparison.rated, comparison.missed, comparison.middles
    floor = page.floor_title.lower()
    if not rated:
        return f"No score has a baseline or one of {floor} to compare it with."
    is_one = len(rated) == 1
    start = f"**{words.capitalized(comparison.grade)} {page.real}**"
    if not missed:
        reached = (
            "the only score reaches that" if is_one else f"all {len(rated)} scores reach those"
        )
        return f"{start}: {reached} of {floor}."
    count = len(rated) - len(missed)
    verb = "reaches" if count == 1 else "reach"
    reached = "the only score misses" if is_one else f"{count} of {len(rated)} scores {verb}"
    if len(middles) == 1:
        [(better, middle)] = middles.items()
        text = likeness.middle_in_words(better, middle)
        if is_one:
            return f"{start}: the only score is {text} that of {floor}."
        return f"{start}: the median score is {text} that of {floor}; {reached} it."
    distances = comparison.distances
    farthest = max(missed, key=lambda metric: distances.get(metric, 0.0))
    score = rated[farthest]
    return (
        f"{start}: {reached} those of {floor}. Farthest from it: {farthest.title} with"
        f" {number(farthest, score.value)}, {floor} {number(farthest, score.floor)}."
    )


def _baselines(selection: Selection, score: Score) -> dict[str, float]:
    """The values of known baselines in words, the most important first."""
    return {
        title: score.baselines[name]
        for name, title in selection.page.baselines.items()
        if math.isfinite(score.baselines.get(name, math.nan))
    }


def _headline(selection: Selection, scores: Scores) -> list[str]:
    """The scores of the first row that an answer has, each or its substitute."""
    return selection.page.among(selection.page.headline, scores)


def figures(selection: Selection) -> None:
    """The main scores of the first answer, with floor or baselines below."""
    scores = selection.scores_of(selection.first[0])
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        for name in _headline(selection, scores):
            metric, score = selection.metric(name), scores[name]
            without_error = score.model_copy(update={"error": math.nan})
            st.metric(
                metric.axis,
                selection.value_words(metric, without_error, selection.first[1]),
                delta=_figure_note(selection, metric, scores) or None,
                delta_color="off",
                delta_arrow="off",
                help=(
                    f"{selection.page.texts.get(name, '')}"
                    f" {'' if math.isnan(score.floor) else selection.page.floor_help}"
                ),
                width=188,
            )


def _figure_note(selection: Selection, metric: Metric, scores: Scores) -> str:
    """The text below a figure: the domain's, else the first baseline, else the floor."""
    bound, score = selection.page.below(metric, scores), scores[metric.name]
    baselines = _baselines(selection, score)
    if bound or baselines:
        return bound or next(f"{name} {number(metric, value)}" for name, value in baselines.items())
    return (
        ""
        if math.isnan(score.floor)
        else f"{selection.page.floor_title.lower()} {number(metric, score.floor)}"
    )


def against(selection: Selection) -> None:
    """One chart: each score against its floor, or against the most important baseline."""
    reference = next(
        (name for name in selection.page.baselines if _has_baseline(selection, name)), ""
    )
    rows, marks = [], []
    for metric in selection.page.scores:
        if not metric.better or metric.name in selection.page.unbiased:
            continue
        for place, name in enumerate(selection.answers):
            score = selection.scores_of(name).get(metric.name)
            base = (
                math.nan
                if score is None
                else score.baselines.get(reference, math.nan)
                if reference
                else score.floor
            )
            if score is None or not base > 0 or not score.value > 0:
                continue
            values = dict(zip(("ratio", "low", "high"), (score.value, *bar(score)), strict=True))
            ends = {end: likeness.ratio(metric, value, base) for end, value in values.items()}
            value_text = number(metric, score.value, score.error)
            rows.append(
                {
                    "series": name,
                    "score": metric.title,
                    "value": value_text,
                    "base": number(metric, base),
                    **ends,
                }
            )
            if place == 0:
                marks += [
                    {
                        "name": title,
                        "score": metric.title,
                        "ratio": likeness.ratio(metric, value, base),
                        "value": number(metric, value),
                    }
                    for title, value in _baselines(selection, score).items()
                    if title != selection.page.baselines.get(reference) and value > 0
                ]
    if not rows:
        return
    floor = selection.page.floor_title.lower()
    title = f"the {selection.page.baselines[reference]}" if reference else floor
    draw = partial(
        evaluation_charts.against,
        marks=pd.DataFrame(marks),
        colors=selection.colors,
        reference=title,
    )
    plots.steady_chart(draw, pd.DataFrame(rows), f"evaluation.against.{selection.key}")


def _has_baseline(selection: Selection, baseline: str) -> bool:
    scores = selection.scores_of(selection.first[0]).values()
    return any(math.isfinite(score.baselines.get(baseline, math.nan)) for score in scores)


def table(selection: Selection) -> pd.DataFrame:
    """A row for each score, a column for each answer; then floor, baselines and published values,
    if any.
    """
    first = selection.scores_of(selection.first[0])
    metrics = [
        metric
        for metric in selection.page.scores
        if any(metric.name in selection.scores_of(name) for name in selection.answers)
    ]
    answers = {
        name: [_cell(selection, metric, selection.scores_of(name), row) for metric in metrics]
        for name, row in selection.answers.items()
    }
    references: dict[str, list[str]] = {}
    first_scores = [first.get(metric.name) for metric in metrics]
    if any(score is not None and math.isfinite(score.floor) for score in first_scores):
        references[selection.page.floor_title] = [
            "–" if score is None else number(metric, score.floor, score.floor_error)
            for metric, score in zip(metrics, first_scores, strict=True)
        ]
    if any(score is not None and math.isfinite(score.ceiling) for score in first_scores):
        references[selection.page.ceiling_title] = [
            "–" if score is None else number(metric, score.ceiling)
            for metric, score in zip(metrics, first_scores, strict=True)
        ]
    for name, title in selection.page.baselines.items():
        values = [
            math.nan if score is None else score.baselines.get(name, math.nan)
            for score in first_scores
        ]
        if any(map(math.isfinite, values)):
            references[words.capitalized(title)] = [
                number(metric, value) for metric, value in zip(metrics, values, strict=True)
            ]
    anchors = [_anchor(selection, metric) for metric in metrics]
    if any(anchors):
        references["Published, on other data"] = [anchor or "–" for anchor in anchors]
    return tables.of_runs({"Score": [metric.axis for metric in metrics]}, answers, references)


def _anchor(selection: Selection, metric: Metric) -> str:
    """The best and the worst published value: "24.6 (CaloDREAM) to 5,443.0 (CaloVAE+INN)"; "" for
    none.
    """
    anchors = [anchor for anchor in selection.evaluation.published if anchor.score == metric.name]
    anchors.sort(key=lambda anchor: anchor.value, reverse=metric.better == "higher")
    ends = [f"{number(metric, anchor.value)} ({anchor.what})" for anchor in anchors]
    return " to ".join(dict.fromkeys([ends[0], ends[-1]])) if ends else ""


def _cell(selection: Selection, metric: Metric, scores: Scores, row: EvaluationRow) -> str:
    return selection.value_words(metric, scores[metric.name], row) if metric.name in scores else "–"


def draw_literature(runtime: Runtime, selection: Selection) -> None:
    """The tab Speed and literature: the domain's tables, or else the published scores of the
    declaration.
    """
    if selection.page.literature is not None:
        selection.page.literature(runtime, selection)
        return
    rows = [
        {
            "Score": metric.title,
            "Published": number(
                metric, anchor.value, math.nan if anchor.error is None else anchor.error
            ),
            "Of": anchor.what,
            "Source": anchor.source,
        }
        for metric in selection.page.scores
        for anchor in selection.evaluation.published
        if anchor.score == metric.name
    ]
    tables.show(pd.DataFrame(rows), hide_index=True, key="evaluation.published", height="content")
