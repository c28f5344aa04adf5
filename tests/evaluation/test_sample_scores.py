"""Scores of two feature samples against other packages and known distributions, and their intervals
against the observed spread.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from gan_runtime.evaluation import sample_scores
from gan_runtime.evaluation.quality_scores import QUALITY_METRICS
from gan_runtime.evaluation.sample_scores import ImageSample
from tests.evaluation.torch_fidelity_reference import FIGURES, features, logits

REFERENCE = json.loads(FIGURES.read_text())
EQUAL = 1e-9


def normal(
    random: np.random.RandomState, rows: int, columns: int, shift: float = 0.0
) -> ImageSample:
    """Returns normally distributed features and four class probabilities that depend on them."""
    drawn = random.standard_normal((rows, columns)) + shift
    weights = np.exp(3.0 * drawn[:, :4])
    return ImageSample(
        drawn, weights / weights.sum(axis=1, keepdims=True), 1.0 + np.abs(drawn[:, 0])
    )


def of_reference() -> dict[str, float]:
    first, second = features()
    shifted = np.exp(logits() - logits().max(axis=1, keepdims=True))
    probabilities = shifted / shifted.sum(axis=1, keepdims=True)
    nearest = np.ones(len(first))
    samples = (ImageSample(each, probabilities, nearest) for each in (first, second))
    return sample_scores.compared(*samples, seed=0, draws=1)


def test_scores_match_torch_fidelity_and_prdc() -> None:
    own = of_reference()
    assert {name: own[name] for name in REFERENCE} == pytest.approx(REFERENCE, rel=EQUAL)


def test_samples_of_one_distribution_show_only_small_sample_bias() -> None:
    random = np.random.RandomState(0)
    numbers = sample_scores.compared(normal(random, 1_000, 64), normal(random, 1_000, 64), seed=0)
    assert 1.5 < numbers["fcd"] < 3.0
    assert abs(numbers["fcd_infinite"]) < 0.15
    assert abs(numbers["kcd"]) < 0.005
    assert numbers["precision"] == pytest.approx(numbers["recall"], abs=0.08)
    assert numbers["density"] == pytest.approx(1.0, abs=0.2)
    assert numbers["coverage"] == pytest.approx(0.97, abs=0.02)


def test_extrapolated_frechet_matches_two_known_distributions() -> None:
    """Means differ by 0.5 in each of 16 features, covariances are equal: 16 × 0.25."""
    random = np.random.RandomState(1)
    first, second = (normal(random, 1_500, 16, shift).features for shift in (0.0, 0.5))
    assert sample_scores.extrapolated_frechet(first, second, random) == pytest.approx(4.0, abs=0.25)


def test_kernel_distance_blocks_cover_all_rows_once() -> None:
    rows = np.arange(5_000.0)[:, np.newaxis]
    blocks = list(sample_scores.blocks_of(rows, 4, np.random.RandomState(0)))
    assert [len(block) for block in blocks] == [1_250] * 4
    assert sorted(np.concatenate(blocks)[:, 0]) == list(range(5_000))


def test_errors_match_the_spread_of_scores_between_samples() -> None:
    random, values, errors = np.random.RandomState(2), [], []
    for seed in range(40):
        first, second = normal(random, 120, 4), normal(random, 120, 4, 0.3)

        def numbers(
            rows: np.ndarray,
            others: np.ndarray,
            first: ImageSample = first,
            second: ImageSample = second,
        ) -> dict[str, float]:
            return sample_scores.compared(first.rows(rows), second.rows(others), 0, draws=1)

        whole = sample_scores.compared(first, second, 0, draws=1)
        found = sample_scores.estimates(numbers, whole, (120, 120), seed, repeats=6)
        values.append([estimate.value for estimate in found.values()])
        errors.append([estimate.error for estimate in found.values()])
    ratios = np.mean(errors, axis=0) / np.std(values, axis=0, ddof=1)
    ratio = {name: float(value) for name, value in zip(whole, ratios, strict=True)}
    assert 1.0 < ratio.pop("fcd_infinite") < 3.5  # conservative, never too narrow
    assert {name: round(value, 2) for name, value in ratio.items() if not 0.65 < value < 1.7} == {}


def test_interval_is_two_standard_deviations_on_each_side() -> None:
    assert sample_scores.ScoreEstimate(1.0, 0.5).interval("kcd") == pytest.approx((0.02, 1.98))


@pytest.mark.parametrize(
    ("score", "value", "interval"),
    [
        ("precision", 0.9, (0.704, 1.0)),
        ("imagenet_recall", 0.1, (0.0, 0.296)),
        ("fcd", 0.1, (0.0, 0.296)),
        ("fcd_infinite", 0.1, (-0.096, 0.296)),
        ("classifier_score", 1.1, (1.0, 1.296)),
        ("inception_density", 0.1, (0.0, 0.296)),
        ("fid", 0.1, (0.0, 0.296)),
        ("modes", 1.1, (1.0, 1.296)),
    ],
)
def test_interval_is_clipped_to_the_range_of_its_score(
    score: str, value: float, interval: tuple[float, float]
) -> None:
    assert sample_scores.ScoreEstimate(value, 0.1).interval(score) == pytest.approx(interval)


@pytest.mark.parametrize("score", ["fid", "fcd_infinite"])
def test_a_score_that_was_not_measured_has_no_interval(score: str) -> None:
    interval = sample_scores.ScoreEstimate(math.nan, math.nan).interval(score)
    assert all(map(math.isnan, interval))


def test_class_scores_separate_certain_from_uncertain_images() -> None:
    sure, undecided = np.eye(4)[[0, 1, 2, 3]], np.full((4, 4), 0.25)
    assert sample_scores.classifier_score(sure) == pytest.approx(4.0)
    assert sample_scores.classifier_score(undecided) == pytest.approx(1.0)
    assert sample_scores.share_of_sure(np.array([[0.9, 0.1], [0.89, 0.11]])) == 0.5
    one_class = np.eye(4)[[0, 0, 0, 0]]
    assert sample_scores.class_distance(sure, one_class) == pytest.approx(0.75)
    assert sample_scores.class_distance(sure, sure) == 0.0
    assert [sample_scores.classes_present(each) for each in (sure, one_class)] == [4, 1]


def test_mode_count_error_matches_its_spread() -> None:
    """500 common classes, and 500 rare ones of which 20,000 images contain about half."""
    random = np.random.RandomState(0)
    shares = np.repeat([1.0, 0.02], 500) / 510.0
    classes = np.eye(1_000, dtype=np.float32)
    labels = random.choice(1_000, 20_000, p=shares)
    modes = sample_scores.modes(classes[labels], seed=0)
    assert modes.value == len(np.unique(labels))
    others = [np.count_nonzero(random.multinomial(20_000, shares)) for _ in range(200)]
    assert 0.5 < modes.error / np.std(others) < 1.3
    alike = sample_scores.modes(np.eye(3)[[1] * 40], seed=0)
    assert (alike.value, alike.error) == (1.0, 0.0)


def test_joint_class_probability_is_the_product_of_its_parts() -> None:
    hundreds, tens = np.array([[0.25, 0.75]]), np.array([[0.5, 0.5, 0.0]])
    joint = sample_scores.joint([hundreds, tens])
    assert joint.tolist() == [[0.125, 0.125, 0.0, 0.375, 0.375, 0.0]]


def test_copies_are_nearest_and_training_images_skip_themselves() -> None:
    training = np.array([0.0, 1.0, 4.0, 9.0]).reshape(4, 1, 1, 1) * np.ones((4, 2, 2, 1))
    for blocks in ([training], [training[:1], training[1:]], list(training[:, np.newaxis])):
        copies = sample_scores.nearest_distances(training[1:2] + 0.5, blocks)
        assert copies.tolist() == pytest.approx([0.5])
        among = sample_scores.nearest_distances(training, blocks, are_among=True)
        assert among.tolist() == pytest.approx([1.0, 1.0, 3.0, 5.0])


def test_share_of_copies_shows_few_copies_which_a_median_hides() -> None:
    real = np.random.RandomState(0).uniform(1.0, 2.0, 1_000)
    half_copied = np.where(np.arange(500) < 150, 0.0, 1.5)
    assert sample_scores.share_of_copies(real, half_copied) == 0.3
    assert sample_scores.share_of_copies(real, real) == 0.01
    repeated = np.where(np.arange(1_000) < 50, 0.0, real)  # the data set has equal images
    assert sample_scores.share_of_copies(repeated, repeated) == 0.05


def test_rarest_class_is_that_of_the_lowest_share_among_common_ones() -> None:
    def classes(*counts: int) -> np.ndarray:
        return np.eye(3)[np.repeat(np.arange(3), counts)]

    real = classes(500, 480, 20)  # the third is too rare for a share
    rare = sample_scores.rarest_class(real, classes(880, 120, 0), seed=0)
    assert rare.value == pytest.approx(0.12 / 0.48)
    assert 0.01 < rare.error < 0.05
    missing = sample_scores.rarest_class(real, classes(1_000, 0, 0), seed=0)
    assert (missing.value, missing.error) == (0.0, 0.0)
    assert math.isnan(sample_scores.rarest_class(classes(40, 40, 20), real, seed=0).value)


@pytest.mark.parametrize("images", ["near their mean", "equal"])
def test_scores_that_put_bad_images_above_real_ones_rank_no_epoch(images: str) -> None:
    """Gray, blurred or black images lie within the balls around real ones."""
    random = np.random.RandomState(0)
    reference, real = random.standard_normal((2, 800, 32))
    bad = (0.05 if images == "near their mean" else 0.0) * random.standard_normal((800, 32))
    of_real, of_bad = (sample_scores.neighbor_scores(reference, sample) for sample in (real, bad))
    misleading = {name for name, value in of_bad.items() if value > of_real[name]}
    assert misleading == {"precision", "density"}
    for metric in QUALITY_METRICS:
        if metric.name.rpartition("_")[2] in misleading:
            assert (metric.better, metric.role) == ("", ""), metric.name
