"""What the verdict says of generators whose images are known, compared with the table in
docs/metrics.md. A third of the digits is training data; the reference and the generators are made
of the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from gan_runtime.base.fields import IMAGES, LABELS
from gan_runtime.data import loading
from gan_runtime.data.contract import ArraySet, picture_set
from gan_runtime.engines.inputs import host_value
from gan_runtime.evaluation import image_classifier, sample_scores
from gan_runtime.evaluation.image_classifier import ImageClassifier, RealImages
from gan_runtime.evaluation.sample_scores import ImageSample
from gan_runtime.records.answer import Score
from gan_runtime.records.home import Home
from gan_runtime.training import verdict
from gan_runtime.training.verdict import MeasuredAnswer
from tests.support.verdict_table import COLUMNS, TOLERANCES, rows_of_document

Images = NDArray[np.float64]  # (N, 28, 28, 1), -1 is black
TRAINING = 597
EIGHT = 8


@pytest.fixture(scope="module")
def digits() -> ArraySet:
    """The digits in random order; TRAINING of them are training data."""
    data = loading.load("digits")
    rows = data.read(np.random.RandomState(0).permutation(data.rows))
    images, labels = rows[IMAGES], rows[LABELS]
    return picture_set(
        "digits",
        images[:TRAINING],
        "test",
        labels=labels[:TRAINING],
        classes=tuple("0123456789"),
        kept_back={IMAGES: images[TRAINING:], LABELS: labels[TRAINING:]},
    )


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> ImageClassifier:
    home = Home(tmp_path_factory.mktemp("home")).prepare()
    return image_classifier.classifier_of(loading.load("digits"), (10,), home, lambda *_: None)


def generators(real: Images, classes: NDArray[np.int64], training: Images) -> dict[str, Images]:
    """Images by the name of their generator in the document, from `real` ones and `training`."""
    random = np.random.RandomState(1)
    count, places = len(real), np.arange(len(real))[:, np.newaxis, np.newaxis, np.newaxis]
    others = real[random.permutation(count)]
    without, weights = np.flatnonzero(classes != EIGHT), np.where(classes == EIGHT, 0.2, 1.0)
    copied = training[random.choice(len(training), count)]
    draws = random.standard_normal(real.shape)
    return {
        "other real images": real,
        "one digit missing": real[random.choice(without, count)],
        "one digit at a fifth of its share": real[
            random.choice(count, count, p=weights / weights.sum())
        ],
        "70% two digits on top of each other": np.where(
            places < 0.7 * count, np.maximum(real, others), real
        ),
        "means of two digits": (real + others) / 2.0,
        "copies of training images": copied,
        "30% copies of training images": np.where(places < 0.3 * count, copied, real),
        "noise of σ 0.25 of the range": np.clip(real + 0.5 * draws, -1.0, 1.0),
        "noise of σ 0.1 of the range": np.clip(real + 0.2 * draws, -1.0, 1.0),
        "black images": np.full_like(real, -1.0),
        "uniform noise": random.uniform(-1.0, 1.0, real.shape),
    }


def sample_of(
    classifier: ImageClassifier, real: RealImages, images: Images, *, are_real: bool = False
) -> ImageSample:
    nearest = image_classifier.nearest_training(images, real, lambda *_: None, are_real=are_real)
    return ImageSample(*classifier.read(images), nearest)


def test_verdict_on_known_generators_is_that_of_the_document(
    digits: ArraySet, classifier: ImageClassifier
) -> None:
    real = image_classifier.real_images(digits, 600, seed=0)
    held_out = digits.read_held_out(digits.held_out)
    stored = host_value(held_out[IMAGES], digits.fields[IMAGES])
    place_of = {image.tobytes(): place for place, image in enumerate(stored)}
    classes = np.array([held_out[LABELS][place_of[image.tobytes()]] for image in real.others])
    sample: Callable[..., ImageSample] = partial(sample_of, classifier, real)
    reference = sample(real.reference, are_real=True)
    training = host_value(digits.read(np.arange(digits.rows))[IMAGES], digits.fields[IMAGES])
    made = generators(real.others.astype(np.float64), classes.astype(np.int64), training)
    measured = {
        name: sample_scores.measured(reference, sample(images), seed=0)
        for name, images in made.items()
    }
    floor, ceiling = measured["other real images"], measured["uniform noise"]
    documented = rows_of_document()
    assert list(documented) == list(made)
    for name, estimates in measured.items():
        scores = {}
        for score, estimate in estimates.items():
            low, high = estimate.interval(score)
            scores[score] = Score(
                name=score,
                value=estimate.value,
                low=low,
                high=high,
                floor=floor[score].value,
                ceiling=ceiling[score].value,
            )
        judged = verdict.of_answer(MeasuredAnswer("quality", 1, scores))
        by_kcd = {score: value for score, value in scores.items() if score != "fcd_infinite"}
        said = verdict.of_answer(MeasuredAnswer("quality", 1, by_kcd))
        assert said is not None
        is_healthy = documented[name].finding == verdict.Finding.HEALTHY.value
        assert (said.finding is verdict.Finding.HEALTHY) == is_healthy, (name, said)
        cells = {column: round(scores[column].value, 4) for column in COLUMNS}
        print(name, cells, judged)
        assert judged is not None
        assert judged.finding.value == documented[name].finding, (name, judged, cells)
        for column, tolerance in TOLERANCES.items():
            stated = documented[name].scores[column]
            assert cells[column] == pytest.approx(stated, abs=tolerance, rel=0.15), (name, cells)
