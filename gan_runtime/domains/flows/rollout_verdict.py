"""What a rollout says of its model: its errors next to those of two predictions that need no model,
a copy of the start frame and the replay of the nearest training film.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from gan_runtime.domains.flows.score_metrics import BY_NAME
from gan_runtime.records.answer import Score
from gan_runtime.training.verdict import AnswerVerdict, Finding, MeasuredAnswer

# The first that an answer has: short films end within a shedding period.
ERRORS = ("rmse_period", "rmse")
SPECTRUM = "spectrum"  # RMSE hardly sees short waves


def verdict(answer: MeasuredAnswer) -> AnswerVerdict | None:
    """Unlike the data: an error not below that of the copied frame. Partly like the data: an error,
    or one of the spectrum, not below that of the replay. Else the errors alone; None without one.
    """
    error = next((score for name in ERRORS if (score := answer.finite(name))), None)
    if error is None:
        return None
    spectrum = answer.finite(SPECTRUM)
    finding = Finding.MEASURED
    if error.value >= _copied(error):
        finding = Finding.UNLIKE
    elif any(score.value >= _replay(score) for score in (error, spectrum) if score):
        finding = Finding.PARTIAL
    evidence = _in_words(error, {"copied start frame": _copied(error), "replay": _replay(error)})
    if spectrum:
        evidence += f"; {_in_words(spectrum, {'replay': _replay(spectrum)})}"
    return AnswerVerdict(finding, evidence, answer.epoch)


def _copied(score: Score) -> float:
    """Of the copied start frame, NaN if unknown. A stored reference has its own name on pages."""
    return score.baselines.get("reference", score.baselines.get("persistence", math.nan))


def _replay(score: Score) -> float:
    return score.baselines.get("replay", math.nan)


def _in_words(score: Score, others: Mapping[str, float]) -> str:
    """The score, and whether it is below those of other predictions."""
    declared = BY_NAME[score.name]
    comparisons = [
        f", {'below' if score.value < value else 'not below'} that of the {what}"
        f" ({value:{declared.format}})"
        for what, value in others.items()
        if math.isfinite(value)
    ]
    return f"{declared.title} {score.value:{declared.format}}{''.join(comparisons)}"
