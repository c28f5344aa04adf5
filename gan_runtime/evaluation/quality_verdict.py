"""What an answer of the evaluation `quality` says about images.

Coverage, precision and kernel distance against other real images, the share of each class, and
copies. Each score counts by the end of its 95% interval that speaks against the finding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from gan_runtime.records.answer import Score
from gan_runtime.training.verdict import AnswerVerdict, Finding, MeasuredAnswer

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


def verdict(answer: MeasuredAnswer) -> AnswerVerdict | None:
    """What an answer of the evaluation `quality` says; None without coverage, precision and kernel
    distance.
    """
    classes, sure = (answer.scores.get(name) for name in ("class_distance", "sure"))
    if classes and _low(classes) >= FEW_CLASSES and (sure is None or sure.value >= CLEAR_CLASS):
        evidence = f"few classes, class distance {classes.value:.0%}{_real(classes, '.0%')}"
        return AnswerVerdict(Finding.COLLAPSED, evidence, answer.epoch)
    coverage, precision, distance = (
        next((score for name in names if (score := answer.finite(name))), None)
        for names in (COVERAGES, PRECISIONS, DISTANCES)
    )
    if coverage is None:
        return None
    covered = (
        f"generated images cover {coverage.value:.0%} of the real ones"
        f"{_real(coverage, '.0%', 'other real ones')}"
    )
    if _high(coverage) < UNLIKE_COVERAGE * _whole(coverage):
        return AnswerVerdict(Finding.UNLIKE, covered, answer.epoch)
    copies = answer.finite("copies")
    if copies and _low(copies) - max(0.0, copies.floor) > MOST_COPIES:
        evidence = f"{copies.value:.0%} are as near to one as the nearest 1% of real images"
        return AnswerVerdict(Finding.COPIES, evidence, answer.epoch)
    if precision is None or distance is None:
        return None
    shortfalls = [
        *([covered] if _low(coverage) < LIKE_DATA * _whole(coverage) else []),
        *_shortfalls(answer.scores, precision, distance),
    ]
    if shortfalls:
        more = [] if covered in shortfalls else [covered]
        evidence = "; ".join([*shortfalls, *more][:2])
        return AnswerVerdict(Finding.PARTIAL, evidence, answer.epoch)
    named = (
        f"precision {precision.value:.0%}{_real(precision, '.0%')}",
        f"{DISTANCES[distance.name]} {distance.value:.2g}{_real(distance, '.2g')}",
        *(["no class is rare"] if answer.finite("rarest_class") else []),
        *([f"copies {copies.value:.0%}"] if copies else []),
    )
    return AnswerVerdict(Finding.HEALTHY, f"{covered}; {', '.join(named)}", answer.epoch)


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


def _low(score: Score) -> float:
    return score.low if math.isfinite(score.low) else score.value


def _high(score: Score) -> float:
    return score.high if math.isfinite(score.high) else score.value
