"""What flows add to the page of a rollout: tabs, the scores that say most, words."""

from __future__ import annotations

import json

from dashboard.domains.flows import curves, film, form, literature
from dashboard.domains.flows import words as flow_words
from dashboard.evaluation.answers import AnswerRow, Scores
from dashboard.evaluation.shown import DomainPage, DomainTab, number
from gan_runtime.base.metrics import Metric
from gan_runtime.domains.flows import iterate_requests
from gan_runtime.domains.flows.score_metrics import SCORES
from gan_runtime.records.answer import Score
from gan_runtime.spec import nesting
from gan_runtime.store.queries import FlowRow, RunRow
from gan_runtime.supervision.runtime import Runtime

_HORIZONS = ("horizon", "horizon_replay")


def _applies(runtime: Runtime, row: RunRow) -> bool:
    return iterate_requests.translates(runtime.home, row.run_id)


def _kind(row: RunRow) -> str:
    """The options of the workload: with the data set they decide what a run reads."""
    given = nesting.flat(json.loads(row.spec))
    own = {name: given[name] for name in nesting.own_options(row.workload) if name in given}
    return json.dumps(own, sort_keys=True)


def _about(row: AnswerRow) -> dict[str, str]:
    return flow_words.parts(FlowRow(**row.facts))


def _value(metric: Metric, score: Score, row: AnswerRow) -> str:
    """A horizon of all steps is one at least as long."""
    beyond = metric.name in _HORIZONS and row.samples is not None and score.value >= row.samples
    return f"{'≥ ' if beyond else ''}{number(metric, score.value, score.error)}"


def _below(metric: Metric, scores: Scores) -> str:
    """A horizon in shedding periods."""
    period = scores.get("period")
    if metric.name not in _HORIZONS or period is None:
        return ""
    frames = next((value for value in (period.floor, period.value) if value == value and value), None)
    steps = scores[metric.name].value
    return "" if frames is None or steps != steps else f"{steps / frames:.1f} shedding periods"


PAGE = DomainPage(
    applies=_applies,
    about=_about,
    kind=_kind,
    tabs=(
        DomainTab("Film", film.draw),
        DomainTab("Errors", curves.draw_errors),
        DomainTab("Wake", curves.draw_wake),
        DomainTab("Time", curves.draw_times),
    ),
    headline=("rmse_period", "horizon_replay", "ssim_period", "strouhal_error", "ms_frame"),
    over_epochs=("rmse_period", "ssim_period", "strouhal_error"),
    substitutes={"horizon_replay": "horizon"},  # where no replay was measured, as by version 0.2.0
    real="the true flow",
    floor_title="True flow",
    floor_help="The same number of the true flow.",
    subject=flow_words.subject,
    texts={score.name: score.text for score in SCORES}
    | {
        name: f"{score.text} {flow_words.HORIZON_HELP}"
        for score in SCORES
        if (name := score.name) in _HORIZONS
    },
    baselines={"replay": "replay", "persistence": "copied frame", "solver": "solver"},
    value_words=_value,
    below=_below,
    literature=literature.draw,
    measure=form.measure,
    no_run=flow_words.NO_RUN,
    no_answer=flow_words.NOTHING_YET,
    best_rule="By the root mean square error over the first shedding period",
)
