"""What showers add to the page of their evaluation: tabs, the scores that say most, words."""

from __future__ import annotations

import math

from dashboard import words
from dashboard.domains.showers import any_energy, distributions, literature, side_by_side
from dashboard.domains.showers import words as shower_words
from dashboard.evaluation.shown import DomainPage, DomainTab, number
from gan_runtime.base.metrics import NOT_DRAWN, Metric
from gan_runtime.domains.showers.score_metrics import SCORES, fewest_showers, layer_features
from gan_runtime.records.answer import Score
from gan_runtime.store.queries import EvaluationRow


def _subject(row: EvaluationRow) -> str:
    count = words.count(row.facts["showers"])
    return f"epoch {row.epoch}: {count} generated showers, compared with {count} {shower_words.SIMULATED}"


def _value(metric: Metric, score: Score, row: EvaluationRow) -> str:
    """Of a score that needs more showers than were compared, how many."""
    fewest = fewest_showers(layer_features(row.facts["grid"][2]))
    if metric.name == "fpd" and math.isnan(score.value) and (score.samples or 0) < fewest:
        return f"needs at least {words.count(fewest)} showers"
    return number(metric, score.value, score.error)


METRICS = tuple(
    Metric(
        score.name,
        score.title,
        score.title,
        NOT_DRAWN,
        log=score.log,
        better="lower" if score.better == "lower" else "",
        format=score.format,
    )
    for score in SCORES
)
PAGE = DomainPage(
    tabs=(
        DomainTab("Distributions", distributions.draw),
        DomainTab("Showers", side_by_side.draw),
        DomainTab("Any energy", any_energy.draw),
    ),
    scores=METRICS,
    headline=("sampling_fraction", "profile_z", "challenge_fpd", "auc_high", "ms_batch"),
    over_epochs=("sampling_fraction", "profile_z", "challenge_fpd"),
    substitutes={"challenge_fpd": "fpd"},  # of measurements that were made before it
    real=shower_words.SIMULATED,
    subject=_subject,
    texts={score.name: score.text for score in SCORES},
    value_words=_value,
    literature=literature.draw,
    no_answer=shower_words.NOTHING_YET,
    best_rule=shower_words.BEST_EPOCH,
)
