"""Evaluations made from one number per image: their scores, errors and floors."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.base.fields import IMAGES, LABELS, labels, pictures
from gan_runtime.base.metrics import of_score
from gan_runtime.catalog import WORKLOADS, declarations
from gan_runtime.evaluation.number_per_image import distance, distance_error, per_image, scores
from gan_runtime.spec import RunSpec

BRIGHTNESS = per_image("brightness", "Brightness", lambda images: images.mean(axis=(1, 2, 3)))
RANDOM = np.random.default_rng(0)


def test_it_applies_to_images_alone() -> None:
    entry, options = WORKLOADS["mlp_gan"], RunSpec().of_workload
    assert BRIGHTNESS.applies(entry, options, {IMAGES: pictures(28, 28, 1)}) == ""
    assert "has labels" in BRIGHTNESS.applies(entry, options, {LABELS: labels(("a", "b"))})


def test_the_distance_is_in_standard_deviations_of_real_images() -> None:
    real = RANDOM.normal(0.0, 0.5, 4_000)
    assert distance(real + 1.0, real) == pytest.approx(1.0 / real.std())
    assert distance(np.ones(4), np.zeros(4)) == 1.0, "without a spread, in its own unit"


def test_the_error_of_the_distance_is_the_spread_over_samples() -> None:
    pairs = [(RANDOM.normal(1.0, 0.5, 200), RANDOM.normal(0.0, 0.5, 200)) for _ in range(60)]
    spread = np.std([distance(*pair) for pair in pairs], ddof=1)
    assert distance_error(*pairs[0], seed=0) == pytest.approx(spread, rel=0.35)


def test_floors_are_those_of_real_images() -> None:
    real, training = RANDOM.normal(2.0, 0.5, 400), RANDOM.normal(2.0, 0.5, 400)
    far, mean = scores(RANDOM.normal(4.0, 0.5, 400), real, training, seed=0)
    assert far.value == pytest.approx(4.0, rel=0.1)
    assert far.floor < 0.2
    assert (mean.value, mean.floor) == (pytest.approx(4.0, abs=0.1), pytest.approx(2.0, abs=0.1))
    assert mean.error == pytest.approx(0.5 / 20, rel=0.2)
    assert [of_score(BRIGHTNESS.scores, score.name) for score in (far, mean)] == list(
        BRIGHTNESS.scores
    )


def test_scores_of_an_evaluation_with_an_underscore_in_its_name_are_declared() -> None:
    widths = per_image("edge_width", "Edge width", lambda images: images.mean((1, 2, 3)))
    assert [of_score(widths.scores, name) for name in ("distance", "mean")] == list(widths.scores)
    assert of_score(widths.scores, "stance") is None


def test_the_headline_of_pairs_is_the_quality_of_their_images_before_that_of_rollouts() -> None:
    names = list(declarations.of("pix2pix").table())
    assert names.index("quality_imagenet_kcd") < names.index("flow_mae")
