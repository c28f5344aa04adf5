"""The scores of the evaluation of images (evaluation/quality.py); definitions: docs/metrics.md.

Loads no framework and no NumPy.
"""

from __future__ import annotations

from gan_runtime.base.metrics import NOT_DRAWN, Better, Metric, Role
from gan_runtime.catalog.facts import Facts

QUALITY = "quality"


class QualityFacts(Facts):
    """`samples`, `references`: generated and real images; `reference`: what the real ones are.
    `features`: the network that read the images; `classifier`, `weights`: its digest.
    """

    samples: int = 0
    references: int = 0
    reference: str = ""
    seed: int = 0
    protocol: int = 0
    features: str = ""
    classifier: str = ""
    weights: str = ""
    accuracy: float = 0.0
    warning: str = ""


def _quality(score: str, title: str, better: Better, form: str, *, log: bool = False) -> Metric:
    """The best epoch can be chosen by scores with a better direction. Precision and density have
    none: noise, blur and equal images can score above real images (docs/metrics.md).
    """
    role: Role = "measured_quality" if better else ""
    return Metric(f"{QUALITY}_{score}", title, title, NOT_DRAWN, role, True, log, better, form)


def _of_features(name: str, network: str) -> tuple[Metric, ...]:
    """Scores of the features of another network than the classifier of the data set."""
    return (
        _quality(f"{name}_precision", f"Precision ({network})", "", ".1%"),
        _quality(f"{name}_recall", f"Recall ({network})", "higher", ".1%"),
        _quality(f"{name}_density", f"Density ({network})", "", ".2f"),
        _quality(f"{name}_coverage", f"Coverage ({network})", "higher", ".1%"),
    )


QUALITY_METRICS = (
    # The first score is the quality of a run, since it is unbiased for few images with any
    # features.
    _quality("kcd", "KCD", "lower", ".3~g", log=True),
    _quality("fcd_infinite", "FCD∞", "lower", ".3~g", log=True),
    _quality("fcd", "FCD", "lower", ".3~g", log=True),
    _quality("classifier_score", "Classifier score", "higher", ".2f"),
    _quality("precision", "Precision", "", ".1%"),
    _quality("recall", "Recall", "higher", ".1%"),
    _quality("density", "Density", "", ".2f"),
    _quality("coverage", "Coverage", "higher", ".1%"),
    _quality("sure", "Classifier confidence", "higher", ".1%"),
    _quality("class_distance", "Class distance", "lower", ".1%"),
    _quality("rarest_class", "Rarest class", "", ".0%"),
    _quality("modes", "Modes", "higher", ",.0f"),
    _quality("copies", "Copies", "", ".1%"),
    _quality("nearest_training", "Distance to training images", "", ".2f"),  # protocols 1 to 3
    # with features that need no labels
    _quality("imagenet_kcd", "KCD (ImageNet)", "lower", ".3~g", log=True),
    *_of_features("imagenet", "ImageNet"),
    _quality("fid", "FID", "lower", ".3~g", log=True),
    _quality("kid", "KID", "lower", ".3~g", log=True),
    *_of_features("inception", "Inception"),
)
