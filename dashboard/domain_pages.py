"""What is added to the page of an evaluation, by its name: of images and of the domains."""

from __future__ import annotations

import math
from dataclasses import replace

from dashboard.domains.flows.page import PAGE as FLOWS
from dashboard.domains.showers.page import PAGE as SHOWERS
from dashboard.evaluation.answers import DomainPage, Scores, number
from gan_runtime.base import formats
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog.pairs import QUALITY, QUALITY_METRICS
from gan_runtime.evaluation.sample_scores import (
    NEIGHBORS_OF_DENSITY,
    NEIGHBORS_OF_PRECISION,
    SURE,
)
from gan_runtime.store.queries import EvaluationRow


def _of_images(row: EvaluationRow) -> str:
    facts, count = row.facts, formats.count(row.facts["samples"])
    warning = f". {facts['warning'].rstrip('.')}" if facts["warning"] else ""
    return (
        f"epoch {row.epoch} ({row.checkpoint} checkpoint): {count} generated images against {count}"
        f" {facts['reference']}. Classifier {facts['classifier']}:"
        f" {facts['accuracy']:.1%} accurate{warning}"
    )


def _interval(metric: Metric, scores: Scores) -> str:
    """95% interval, then the floor."""
    score = scores[metric.name]
    if math.isnan(score.low) or math.isnan(score.high):
        return f"real {number(metric, score.floor)}"
    ends = (number(metric, end) for end in (score.low, score.high))
    return f"{' to '.join(ends)} · real {number(metric, score.floor)}"


IMAGES = DomainPage(
    tabs=(),
    scores=tuple(
        replace(metric, name=metric.name.removeprefix(f"{QUALITY}_"), title=metric.axis)
        for metric in QUALITY_METRICS
    ),
    headline=("fcd_infinite", "kcd", "precision", "coverage", "sure"),
    over_epochs=("kcd", "fcd_infinite", "coverage"),
    substitutes={"fcd_infinite": "fcd"},
    real="real images",
    subject=_of_images,
    below=_interval,
    unbiased=frozenset({"fcd_infinite", "kcd"}),
    floor_title="Real",
    ceiling_title="Noise",
    floor_help=(
        "Real: the score of other real images, the best that a network can reach. Range: 95%"
        " interval."
    ),
    texts={
        "fcd_infinite": (
            "Fréchet distance of the classifier's features, extrapolated to infinitely many images."
            " 0 for equal distributions."
        ),
        "fcd": "The same without extrapolation. Few images raise it: compare it with real images.",
        "kcd": "Kernel distance of the features. 0 on average for equal distributions.",
        "classifier_score": (
            "High if each image is clearly of one class, and all classes occur. At most the number"
            " of classes."
        ),
        "precision": (
            "Share of generated images near a real one, within the distance to its"
            f" {NEIGHBORS_OF_PRECISION} nearest neighbors."
        ),
        "recall": "Share of real images near a generated one. Low: the network lacks variety.",
        "density": (
            f"How many real images have a generated one within their {NEIGHBORS_OF_DENSITY} nearest"
            f" neighbors, over {NEIGHBORS_OF_DENSITY}. About 1 for equal distributions."
        ),
        "coverage": (
            "Share of real images with a generated one within their"
            f" {NEIGHBORS_OF_DENSITY} nearest neighbors. About 97% for equal distributions."
        ),
        "sure": f"Share of images with a class of a probability of {SURE:.0%} or more.",
        "class_distance": "Total variation between the class shares of generated and real images.",
        "modes": "Number of different classes among the generated images.",
        "nearest_training": (
            "Median distance to the nearest training image, over that of real images. Far below 1:"
            " the network copies training images."
        ),
    },
)
PAGES: dict[str, DomainPage] = {QUALITY: IMAGES, "physics": SHOWERS, "rollout": FLOWS}
