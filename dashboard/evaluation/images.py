"""What the evaluation of images adds to its page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dashboard.evaluation.answers import DomainPage, Scores, number
from gan_runtime.base import formats
from gan_runtime.base.metrics import Metric
from gan_runtime.evaluation.quality_scores import QUALITY, QUALITY_METRICS
from gan_runtime.evaluation.sample_scores import (
    FEWEST_OF_CLASS,
    NEAREST,
    NEIGHBORS_OF_DENSITY,
    NEIGHBORS_OF_PRECISION,
    SURE,
)
from gan_runtime.records.answer import Score
from gan_runtime.store.queries import EvaluationRow

NETWORKS = {"imagenet": "MobileNetV2 (ImageNet)", "inception": "Inception (FID)"}
OTHER_FEATURES = ("imagenet", "inception")  # features other than the classifier's
TEXTS = {
    "fcd_infinite": (
        "Fréchet distance of the classifier's features, extrapolated to infinitely many images."
        " 0 for equal distributions."
    ),
    "fcd": (
        "The Fréchet distance without extrapolation. Few images raise it: compare it with that of"
        " real images."
    ),
    "kcd": "Kernel distance of the features. 0 on average for equal distributions.",
    "classifier_score": (
        "High if each image is clearly of one class, and all classes occur. At most the number"
        " of classes."
    ),
    "precision": (
        "Share of generated images near a real one, within the distance to its"
        f" {NEIGHBORS_OF_PRECISION} nearest neighbors. Blurred images can exceed real ones."
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
    "sure": f"Share of images with a class probability of {SURE:.0%} or more.",
    "class_distance": "Total variation between the class shares of generated and real images.",
    "rarest_class": (
        "Share of generated images of a class over that of real ones, of the class where it is"
        f" lowest. 0: a class is missing. Needs {FEWEST_OF_CLASS} real images of a class."
    ),
    "modes": "Number of different classes among the generated images.",
    "copies": (
        "Share of images that are as near to a training image as the nearest"
        f" {NEAREST:.0%} of real images. All training images are searched."
    ),
    "nearest_training": (
        "Of protocols 1 to 3: median distance to the nearest of 10,000 training images, over that"
        " of real images. It does not show few copies."
    ),
    "imagenet_kcd": (
        "Kernel distance of MobileNetV2's features. 0 on average for equal distributions."
    ),
    "fid": ("Fréchet distance of Inception's features, as published. Needs 50,000 images or more."),
    "kid": "Kernel distance of Inception's features. 0 on average for equal distributions.",
}
TEXTS |= {
    f"{features}_{name}": f"{name.capitalize()} by the features of {network}."
    for features, network in NETWORKS.items()
    for name in ("precision", "recall", "density", "coverage")
}


NOTHING_HELD_OUT = "Too few are held out, so copies of them score as perfect, except in Copies"


def _subject(row: EvaluationRow) -> str:
    facts, count = row.facts, formats.count(row.facts["samples"])
    real = formats.count(facts.get("references", facts["samples"]))
    warning = f". {facts['warning'].rstrip('.')}" if facts["warning"] else ""
    is_searched = facts.get("copies_searched", facts["features"] == "classifier")
    if facts.get("held_out") is False and is_searched:
        warning += f". {NOTHING_HELD_OUT}"
    return (
        f"epoch {row.epoch} ({row.checkpoint} checkpoint): {count} generated images against {real}"
        f" {facts['reference']}. {definition(facts)}{warning}"
    )


def definition(facts: Mapping[str, Any]) -> str:
    """The network, seed and protocol of scores of images; "" for other evaluations."""
    if not {"features", "seed", "protocol"} <= facts.keys():
        return ""
    return f"{_network(facts)}. Seed {facts['seed']}, protocol {facts['protocol']}"


def _network(facts: Mapping[str, Any]) -> str:
    """The network that read the images."""
    if facts["features"] == "classifier":
        return f"Classifier {facts['classifier']}: {facts['accuracy']:.1%} accurate"
    weights = f" (weights {facts['weights']})" if facts.get("weights") else ""
    return f"Features of {NETWORKS.get(facts['features'], facts['features'])}{weights}"


def _with_interval(metric: Metric, score: Score, _: EvaluationRow) -> str:
    """A value with its 95% interval, if its error is to be shown."""
    if not all(map(math.isfinite, (score.error, score.low, score.high))):
        return number(metric, score.value)
    value, low, high = (number(metric, each) for each in (score.value, score.low, score.high))
    return f"{value} ({low} to {high})"


def _below(metric: Metric, scores: Scores) -> str:
    """The floor in words; for a distance, whether it is that of real images from each other."""
    score = scores[metric.name]
    if metric.name in UNBIASED and score.low <= max(score.floor, 0.0):
        return "as close as real images are to each other"
    if metric.name.endswith("coverage"):
        return f"of the real images; other real ones cover {number(metric, score.floor)}"
    return f"real against real {number(metric, score.floor)}"


UNBIASED = frozenset({"fcd_infinite", "kcd", "imagenet_kcd", "kid"})
PAGE = DomainPage(
    tabs=(),
    scores=tuple(
        replace(metric, name=metric.name.removeprefix(f"{QUALITY}_"), title=metric.axis)
        for metric in QUALITY_METRICS
    ),
    headline=("coverage", "precision", "kcd", "fid", "rarest_class", "copies"),
    over_epochs=("kcd", "fcd_infinite", "coverage"),
    substitutes={
        "kcd": ("imagenet_kcd", "kid"),
        **{
            name: tuple(f"{features}_{name}" for features in OTHER_FEATURES)
            for name in ("precision", "coverage")
        },
    },
    about=lambda row: {"features": row.facts.get("features", "classifier")},
    real="real images",
    subject=_subject,
    below=_below,
    definition=definition,
    value_words=_with_interval,
    unbiased=UNBIASED,
    floor_help="Real against real: the score of other real images.",
    texts=TEXTS,
)
