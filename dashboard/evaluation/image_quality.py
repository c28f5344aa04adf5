"""The page of the evaluation of images: which scores it shows first, and what each is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dashboard.evaluation.answers import DomainPage, Scores, number
from gan_runtime.base import formats
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog.evaluation import QUALITY, QUALITY_METRICS
from gan_runtime.evaluation.sample_scores import (
    NEIGHBORS_OF_DENSITY,
    NEIGHBORS_OF_PRECISION,
    SURE,
)
from gan_runtime.store.queries import EvaluationRow

NETWORKS = {"imagenet": "MobileNetV2 (ImageNet)", "inception": "Inception (FID)"}
OTHERS = ("imagenet", "inception")  # features besides those of the classifier
TEXTS = {
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
    "imagenet_kcd": (
        "Kernel distance of MobileNetV2's features. 0 on average for equal distributions."
    ),
    "fid": (
        "Fréchet distance of Inception's features, as published. Only of 50,000 images or more."
    ),
    "kid": "Kernel distance of Inception's features. 0 on average for equal distributions.",
}
TEXTS |= {
    f"{features}_{name}": f"{name.capitalize()} by the features of {network}."
    for features, network in NETWORKS.items()
    for name in ("precision", "recall", "density", "coverage")
}


def _of_images(row: EvaluationRow) -> str:
    facts, count = row.facts, formats.count(row.facts["samples"])
    real = formats.count(facts.get("references", facts["samples"]))
    warning = f". {facts['warning'].rstrip('.')}" if facts["warning"] else ""
    return (
        f"epoch {row.epoch} ({row.checkpoint} checkpoint): {count} generated images against {real}"
        f" {facts['reference']}. {_network(facts)}{warning}"
    )


def _network(facts: Mapping[str, Any]) -> str:
    """What has read the images."""
    if facts["features"] == "classifier":
        return f"Classifier {facts['classifier']}: {facts['accuracy']:.1%} accurate"
    return f"Features of {NETWORKS[facts['features']]}"


def _interval(metric: Metric, scores: Scores) -> str:
    """95% interval, then the floor."""
    score = scores[metric.name]
    if math.isnan(score.low) or math.isnan(score.high):
        return f"real {number(metric, score.floor)}"
    ends = (number(metric, end) for end in (score.low, score.high))
    return f"{' to '.join(ends)} · real {number(metric, score.floor)}"


PAGE = DomainPage(
    tabs=(),
    scores=tuple(
        replace(metric, name=metric.name.removeprefix(f"{QUALITY}_"), title=metric.axis)
        for metric in QUALITY_METRICS
    ),
    headline=("fcd_infinite", "kcd", "precision", "coverage", "sure"),
    over_epochs=("kcd", "fcd_infinite", "coverage"),
    substitutes={
        "fcd_infinite": ("fcd", "fid"),
        "kcd": ("imagenet_kcd", "kid"),
        **{
            name: tuple(f"{features}_{name}" for features in OTHERS)
            for name in ("precision", "coverage")
        },
    },
    about=lambda row: {"features": row.facts["features"]},
    real="real images",
    subject=_of_images,
    below=_interval,
    unbiased=frozenset({"fcd_infinite", "kcd", "imagenet_kcd", "kid"}),
    floor_title="Real",
    ceiling_title="Noise",
    floor_help=(
        "Real: the score of other real images, the best that a network can reach. Range: 95%"
        " interval."
    ),
    texts=TEXTS,
)
