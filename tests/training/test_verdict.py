"""The verdict on a run: a table of cases, and its stability over epochs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from gan_runtime.base.metrics import Metric
from gan_runtime.catalog.evaluations import evaluation, evaluations
from gan_runtime.evaluation.quality_scores import QUALITY
from gan_runtime.records.answer import Score
from gan_runtime.spec import RunSpec
from gan_runtime.training import verdict
from gan_runtime.training.verdict import (
    AGREEING,
    TITLES,
    TROUBLES,
    EpochNumbers,
    Finding,
    MeasuredAnswer,
    Verdict,
)
from tests.support.verdict_table import rows_of_document

SPEC = RunSpec()
Scores = Mapping[str, float]
FINE: Scores = {
    "probe_score_real": 0.6,
    "probe_score_fake": 0.4,
    "spread_real": 0.2,
    "spread_fake": 0.15,
}
COLLAPSED = {**FINE, "spread_fake": 0.01}
WINS = {**FINE, "probe_score_real": 0.995, "probe_score_fake": 0.002}
NEARLY_WINS = {**FINE, "probe_score_real": 0.97, "probe_score_fake": 0.04}
FOOLED = {**FINE, "probe_score_real": 0.98, "probe_score_fake": 0.93}
NOTHING: Scores = {}


def epochs(*scores: Scores, first: int = 2) -> list[EpochNumbers]:
    """Consecutive epochs from `first`."""
    return [EpochNumbers(first + place, numbers) for place, numbers in enumerate(scores)]


def score(
    name: str, value: float, floor: float, width: float = 0.02, ceiling: float = math.nan
) -> Score:
    ends = {"low": value - width, "high": value + width}
    return Score(name=name, value=value, floor=floor, ceiling=ceiling, **ends)


def answer(
    coverage: float,
    classes: float = 0.05,
    sure: float = 0.95,
    epoch: int = 4,
    width: float = 0.02,
    precision: float = 0.85,
    distance: float = 4.0,
    **more: Score,
) -> MeasuredAnswer:
    """Scores of images, whose precision, distance and classes are those of real ones by default."""
    scores = (
        score("coverage", coverage, 0.97, width),
        score("precision", precision, 0.9),
        score("fcd_infinite", distance, 1.6, 1.0, ceiling=850.0),
        score("class_distance", classes, 0.03, width),
        score("sure", sure, 0.99, width),
    )
    return MeasuredAnswer(QUALITY, epoch, {one.name: one for one in scores} | more)


def rarest(share: float) -> dict[str, Score]:
    return {"rarest_class": score("rarest_class", share, 0.8, 0.05)}


def copies(share: float, floor: float = 0.01) -> dict[str, Score]:
    return {"copies": score("copies", share, floor)}


LIVE, OVER = False, True
HARDLY = {**FINE, "spread_fake": 0.005}
CASES: dict[str, tuple[list[EpochNumbers], list[MeasuredAnswer], bool, str]] = {
    "nothing is stored": ([], [], LIVE, ""),
    "the first epoch": (
        epochs(FINE, first=1),
        [],
        LIVE,
        "Too early for a verdict: it needs epochs 2 to 4.",
    ),
    "only a first epoch, ended": (epochs(FINE, first=1), [], OVER, ""),
    "two epochs that train": (
        epochs(FINE, FINE),
        [],
        LIVE,
        "Too early for a verdict: it needs epochs 2 to 4.",
    ),
    "two epochs, ended": (
        epochs(FINE, FINE),
        [],
        OVER,
        "No alarm: D scores real 0.60, generated 0.40 in epochs 2 to 3;"
        " quality is not measured yet.",
    ),
    "no quality": (
        epochs(FINE, FINE, FINE),
        [],
        LIVE,
        "No alarm: D scores real 0.60, generated 0.40 in epochs 2 to 4;"
        " quality is not measured yet.",
    ),
    "good images": (
        epochs(FINE, FINE, FINE),
        [answer(0.8, **rarest(0.9), **copies(0.02))],
        LIVE,
        "Healthy after epoch 4: generated images cover 80% of the real ones (other real ones 97%);"
        " precision 85% (real ones 90%), FCD∞ 4 (real ones 1.6), no class is rare, copies 2%.",
    ),
    "some of the images": (
        epochs(FINE, FINE, FINE),
        [answer(0.33)],
        LIVE,
        "Partly like the data after epoch 4: generated images cover 33% of the real ones (other"
        " real ones 97%).",
    ),
    "good images without labels": (
        epochs(FINE, FINE, FINE),
        [
            MeasuredAnswer(
                QUALITY,
                4,
                {
                    "imagenet_coverage": score("imagenet_coverage", 0.8, 0.97),
                    "imagenet_precision": score("imagenet_precision", 0.8, 0.8),
                    "imagenet_kcd": score("imagenet_kcd", 0.01, 0.0, 0.005, ceiling=3.0),
                },
            )
        ],
        LIVE,
        "Healthy after epoch 4: generated images cover 80% of the real ones (other real ones 97%);"
        " precision 80% (real ones 80%), KCD 0.01 (real ones 0).",
    ),
    "coverage alone": (
        epochs(FINE, FINE, FINE),
        [MeasuredAnswer(QUALITY, 4, {"coverage": score("coverage", 0.95, 0.97)})],
        LIVE,
        "No alarm: D scores real 0.60, generated 0.40 in epochs 2 to 4; quality was last measured"
        " after epoch 4.",
    ),
    "an interval that reaches below the limit": (
        epochs(FINE, FINE, FINE),
        [answer(0.75, width=0.1)],
        LIVE,
        "Partly like the data after epoch 4: generated images cover 75% of the real ones (other"
        " real ones 97%).",
    ),
    "a class that is nearly missing": (
        epochs(FINE, FINE, FINE),
        [answer(0.87, **rarest(0.02))],
        LIVE,
        "Partly like the data after epoch 4: a class has 2% of its share of real images; generated"
        " images cover 87% of the real ones (other real ones 97%).",
    ),
    "half of the images near no real one, and far by the distance": (
        epochs(FINE, FINE, FINE),
        [answer(0.83, precision=0.6, distance=77.0)],
        LIVE,
        "Partly like the data after epoch 4: 60% are near a real image (of real ones 90%); FCD∞ 77"
        " (real ones 1.6, noise 850).",
    ),
    "copies of training images": (
        epochs(FINE, FINE, FINE),
        [answer(0.98, **copies(0.3))],
        LIVE,
        "Copying training images after epoch 4: 30% are as near to one as the nearest 1% of real"
        " images.",
    ),
    "as many near training images as among real images, which repeat": (
        epochs(FINE, FINE, FINE),
        [answer(0.8, **copies(0.3, floor=0.28))],
        LIVE,
        "Healthy after epoch 4: generated images cover 80% of the real ones (other real ones 97%);"
        " precision 85% (real ones 90%), FCD∞ 4 (real ones 1.6), copies 30%.",
    ),
    "images that are nothing": (
        epochs(FINE, FINE, FINE),
        [answer(0.01, classes=0.8, sure=0.1)],
        LIVE,
        "Unlike the data after epoch 4: generated images cover 1% of the real ones (other real ones"
        " 97%).",
    ),
    "images that are alike by their spread": (
        epochs(COLLAPSED, COLLAPSED, COLLAPSED),
        [answer(0.9)],
        LIVE,
        "Collapsed: generated images vary 5.0% as much as real images in epochs 2 to 4.",
    ),
    "images of a few classes though their spread is that of the data": (
        epochs(FINE, FINE, FINE),
        [answer(0.6, classes=0.7)],
        LIVE,
        "Collapsed after epoch 4: few classes, class distance 70% (real ones 3%).",
    ),
    "images of a few classes, and one collapse among three epochs": (
        epochs(FINE, COLLAPSED, FINE),
        [answer(0.6, classes=0.7)],
        LIVE,
        "Collapsed after epoch 4: few classes, class distance 70% (real ones 3%).",
    ),
    "one collapse among three epochs": (
        epochs(FINE, COLLAPSED, FINE),
        [answer(0.9)],
        LIVE,
        "Not steady: the generator collapsed in 1 of 3 epochs (in epochs 2 to 4).",
    ),
    "one collapse in the only judged epoch of a live run": (
        epochs(COLLAPSED),
        [],
        LIVE,
        "Not steady: the generator collapsed in 1 of 1 epochs (in epoch 2).",
    ),
    "a spread that still rises": (
        epochs({**FINE, "spread_fake": 0.002}, {**FINE, "spread_fake": 0.008}, first=1),
        [],
        OVER,
        "Too early for a verdict: generated images vary little, but more with each epoch.",
    ),
    "a spread that rises after a collapse": (
        epochs({**FINE, "spread_fake": 0.002}, {**FINE, "spread_fake": 0.008}, first=5),
        [],
        OVER,
        "Not steady: the generator collapsed in 1 of 2 epochs (in epochs 5 to 6).",
    ),
    "a judge that wins": (
        epochs(WINS, WINS, WINS),
        [],
        LIVE,
        "The discriminator wins: D scores real 0.99, generated 0.00 in epochs 2 to 4; lower its"
        " learning rate.",
    ),
    "a judge that nearly wins in all epochs": (
        epochs(NEARLY_WINS, NEARLY_WINS, NEARLY_WINS),
        [],
        LIVE,
        "The discriminator wins: D scores real 0.97, generated 0.04 in epochs 2 to 4; lower its"
        " learning rate.",
    ),
    "a judge that nearly wins now and then": (
        epochs(FINE, NEARLY_WINS, FINE),
        [],
        LIVE,
        "No alarm: D scores real 0.72, generated 0.28 in epochs 2 to 4;"
        " quality is not measured yet.",
    ),
    "a judge that takes generated images for real": (
        epochs(FOOLED, FOOLED, FOOLED),
        [],
        LIVE,
        "No alarm: D scores real 0.98, generated 0.93 in epochs 2 to 4; quality is not measured"
        " yet.",
    ),
    "good images long ago": (
        epochs(FINE, FINE, FINE, first=38),
        [answer(0.8, epoch=10)],
        LIVE,
        "No alarm: D scores real 0.60, generated 0.40 in epochs 38 to 40; quality was last measured"
        " after epoch 10.",
    ),
    "good images shortly before the end of a run": (
        epochs(FINE, FINE, FINE, first=38),
        [answer(0.8, epoch=30)],
        OVER,
        "The checkpoint of epoch 30 is healthy: generated images cover 80% of the real ones (other"
        " real ones 97%); precision 85% (real ones 90%), FCD∞ 4 (real ones 1.6); the end was not"
        " measured.",
    ),
    "copies some epochs ago, in training": (
        epochs(FINE, FINE, FINE, first=38),
        [answer(0.9, epoch=35, **copies(0.9))],
        LIVE,
        "The checkpoint of epoch 35 is copying training images: 90% are as near to one as the"
        " nearest 1% of real images; later epochs are not measured yet.",
    ),
    "quality of a run without scores": (
        [],
        [answer(0.33, epoch=1)],
        OVER,
        "Partly like the data after epoch 1: generated images cover 33% of the real ones (other"
        " real ones 97%).",
    ),
    "numbers without a role": (epochs(NOTHING, NOTHING, NOTHING), [], LIVE, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_each_case_has_the_expected_sentence(case: str) -> None:
    numbers, quality, is_over, sentence = CASES[case]
    assert verdict.verdict(SPEC, numbers, quality, is_over).sentence == sentence
    assert len(sentence.split()) <= 34


def test_every_finding_has_a_case() -> None:
    found = {verdict.verdict(SPEC, *arguments[:3]).finding for arguments in CASES.values()}
    others = {Finding.EMPTY, Finding.WRONG_RESPONSE, Finding.MEASURED}  # other workloads, below
    assert found | others == set(Finding)
    assert set(TITLES) == set(Finding)


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        (
            {"energy_response": 2.3, "empty_showers": 0.0},
            "Wrong response: generated showers have 2.3 times the true size in epochs 2 to 4.",
        ),
        (
            {"energy_response": 1.0, "empty_showers": 0.3},
            "Empty outputs: 30% of all in epochs 2 to 4.",
        ),
    ],
)
def test_other_workloads_have_their_own_findings(numbers: Scores, sentence: str) -> None:
    spec = RunSpec(workload="shower_3dgan", dataset="showers_tiny")
    assert verdict.verdict(spec, epochs(numbers, numbers, numbers)).sentence == sentence


def test_a_conditional_pair_shows_its_metric_of_quality_and_no_scores_of_its_judge() -> None:
    """Pix2Pix: after an epoch D scores other frames than in training, where it wins."""
    spec = RunSpec(workload="pix2pix", dataset="karman_small")
    for generated in (0.001, 0.5, 0.93):
        scores = {"probe_score_real": 0.999, "probe_score_fake": generated, "tile_error": 0.00512}
        scores |= {"spread_real": 0.2, "spread_fake": 0.2}
        assert verdict.verdict(spec, epochs(scores, scores, scores)).sentence == (
            "No alarm: difference to the target 0.00512."
        )


def test_another_evaluation_says_how_far_its_median_score_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = RunSpec(workload="shower_3dgan", dataset="showers_tiny")
    numbers = epochs({"probe_score_real": 0.5, "probe_score_fake": 0.5, "energy_response": 1.0})
    declared = tuple(
        Metric(f"near_{name}", name, name, better=better, format=".2f")
        for name, better in (("error", "lower"), ("share", "higher"))
    )
    nearness = replace(evaluation(QUALITY), name="nearness", scores=declared, verdict="")
    monkeypatch.setitem(evaluations(), "nearness", nearness)  # type: ignore[arg-type]

    def judged(epoch: int, **scores: Score) -> Verdict:
        answer = MeasuredAnswer("nearness", epoch, scores)
        return verdict.verdict(spec, numbers, [answer], is_over=True)

    share = score("share", 0.9, 0.9)
    far = judged(2, error=score("error", 4.2, 0.1), share=share)
    assert (far.finding, far.is_trouble) == (Finding.UNLIKE, True)
    assert far.sentence == (
        "Unlike the data after epoch 2: the median score is 42 times that of ground truth against"
        " itself."
    )
    assert judged(2, error=score("error", 0.4, 0.1), share=share).finding is Finding.PARTIAL
    few = judged(2, error=score("error", 0.11, 0.1, 0.001), share=score("share", 0.3, 0.9, 0.01))
    assert few.sentence == (
        "Unlike the data after epoch 2: the median score is 33% of that of ground truth against"
        " itself."
    )
    near = judged(2, error=score("error", 0.15, 0.1, 0.0), share=share)
    assert (near.finding, near.is_trouble) == (Finding.MEASURED, False)
    assert near.sentence == (
        "Measured after epoch 2: close to the ground truth; the median score is 1.5 times that of"
        " ground truth against itself."
    )
    assert judged(2, error=Score(name="error", value=0.07)).sentence == (
        "Measured after epoch 2: error 0.07."
    )
    numbers = epochs(*[{"energy_response": 1.0}] * 9)
    assert judged(9, error=share).sentence.endswith("; the end was not measured.")
    assert judged(2, error=share).finding is Finding.NONE, "it has expired"


def test_the_worst_of_several_evaluations_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = (Metric("near_error", "error", "error", better="lower"),)
    nearness = replace(evaluation(QUALITY), name="nearness", scores=declared, verdict="")
    monkeypatch.setitem(evaluations(), "nearness", nearness)  # type: ignore[arg-type]
    numbers, good = epochs(FINE, FINE, FINE), answer(0.95, **rarest(0.8), **copies(0.02))
    for error, finding in ((4.2, Finding.UNLIKE), (0.1, Finding.HEALTHY)):
        other = MeasuredAnswer("nearness", 4, {"error": score("error", error, 0.1)})
        assert verdict.verdict(SPEC, numbers, [good, other]).finding is finding
    unknown = MeasuredAnswer("of_another_version", 4, {"error": score("error", 9.0, 0.1)})
    assert verdict.verdict(SPEC, numbers, [good, unknown]).finding is Finding.HEALTHY


def test_scores_that_are_no_probabilities_are_not_judged() -> None:
    """A loss without `scores`, such as least squares, records the spread alone."""
    spread = {"spread_real": 0.2, "spread_fake": 0.15}
    assert verdict.verdict(SPEC, epochs(spread, spread, spread)).sentence == (
        "No alarm: quality is not measured yet."
    )


def test_workload_unknown_to_this_version_has_no_verdict() -> None:
    class Limits:
        workload, collapse_share, d_wins_score = "removed_gan", 0.1, 0.01

    assert verdict.verdict(Limits(), epochs(FINE, FINE, FINE)) == Verdict()


# ---- stability -----------------------------------------------------------------------------------

ALIKE = (COLLAPSED, HARDLY)
KINDS: tuple[Scores, ...] = (FINE, COLLAPSED, WINS, NEARLY_WINS, FOOLED)


def over_time(scores: Iterable[Scores], *quality: MeasuredAnswer) -> list[Verdict]:
    """The verdict after each epoch, as a live page shows it."""
    numbers = epochs(*scores)
    return [
        verdict.verdict(SPEC, numbers[: place + 1], list(quality)) for place in range(len(numbers))
    ]


def test_no_training_finding_appears_and_disappears_within_an_epoch() -> None:
    """For all sequences of six epochs of three kinds: a finding lasts, or changes only after the
    epochs that it takes to agree.
    """
    for scores in itertools.product((FINE, COLLAPSED, WINS), repeat=6):
        findings = [found.finding for found in over_time(scores)][AGREEING - 1 :]
        agreed = [place for place, found in enumerate(findings) if found is not Finding.UNSTEADY]
        for before, after in pairwise(agreed):
            if findings[before] is not findings[after]:
                assert after - before >= AGREEING, (findings, scores)


def test_run_with_nearly_identical_images_is_never_healthy() -> None:
    good = [answer(0.9, epoch=epoch) for epoch in range(2, 8)]
    for scores in itertools.product(KINDS, repeat=4):
        for place, found in enumerate(over_time(scores, *good)):
            last = scores[max(0, place - AGREEING + 1) : place + 1]
            if any(one in ALIKE for one in last):
                assert found.finding is not Finding.HEALTHY
                assert found.is_trouble


@pytest.mark.parametrize("classes", [0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("sure", [0.1, 0.9])
def test_images_of_few_classes_are_never_healthy(classes: float, sure: float) -> None:
    quality = [answer(0.95, classes=classes, sure=sure)]
    assert verdict.verdict(SPEC, epochs(FINE, FINE, FINE), quality).finding in (
        Finding.COLLAPSED,
        Finding.PARTIAL,
    )


def test_the_worst_of_the_newest_answers_counts() -> None:
    numbers = epochs(FINE, FINE, FINE, first=10)
    answers = [answer(0.9, epoch=9), answer(0.3, epoch=10), answer(0.9, epoch=12)]
    assert verdict.verdict(SPEC, numbers, answers).finding is Finding.PARTIAL
    assert verdict.verdict(SPEC, numbers, answers[::2]).finding is Finding.HEALTHY


def test_troubles_are_the_findings_that_need_attention() -> None:
    assert Finding.HEALTHY not in TROUBLES
    assert {Finding.COLLAPSED, Finding.UNLIKE, Finding.COPIES, Finding.UNSTEADY} < TROUBLES


@pytest.mark.parametrize("generator", rows_of_document())
def test_the_document_shows_the_verdict_that_its_numbers_give(generator: str) -> None:
    """The numbers are measured in tests/full/evaluation/test_verdicts.py."""
    rows = rows_of_document()
    real, noise = rows["other real images"].scores, rows["uniform noise"].scores
    scores = {
        name: score(name, value, real[name], 0.0, noise[name])
        for name, value in rows[generator].scores.items()
    }
    judged = verdict.of_answer(MeasuredAnswer(QUALITY, 1, scores))
    assert judged is not None
    assert judged.finding.value == rows[generator].finding
