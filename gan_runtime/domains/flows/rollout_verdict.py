"""What a rollout says of its model: the error of its frames next to those of two predictions that
need no model, a copy of the start frame and the replay of the nearest training film.
"""

from __future__ import annotations

import math

from gan_runtime.domains.flows.score_metrics import BY_NAME
from gan_runtime.records.answer import Score
from gan_runtime.training.verdict import AnswerVerdict, Finding, MeasuredAnswer

# The first that an answer has: short films end within a shedding period.
ERRORS = ("rmse_period", "rmse")


def verdict(answer: MeasuredAnswer) -> AnswerVerdict | None:
    """Unlike the data: no better than the copied frame. Partly like the data: better, but no better
    than the replay. Without these, or better than both, the error alone; None without an error.
    """
    name = next((name for name in ERRORS if _is_measured(answer.scores.get(name))), None)
    if name is None:
        return None
    score, error = answer.scores[name], BY_NAME[name]
    # A stored reference has the name of its prediction on pages.
    copied = score.baselines.get("reference", score.baselines.get("persistence", math.nan))
    replay = score.baselines.get("replay", math.nan)
    finding = Finding.MEASURED
    if score.value >= copied:
        finding = Finding.UNLIKE
    elif score.value >= replay:
        finding = Finding.PARTIAL
    comparisons = [
        f", {'below' if score.value < value else 'not below'} that of the {what}"
        f" ({value:{error.format}})"
        for what, value in (("copied start frame", copied), ("replay", replay))
        if math.isfinite(value)
    ]
    evidence = f"{error.title} {score.value:{error.format}}{''.join(comparisons)}"
    return AnswerVerdict(finding, evidence, answer.epoch)


def _is_measured(score: Score | None) -> bool:
    return score is not None and math.isfinite(score.value)
