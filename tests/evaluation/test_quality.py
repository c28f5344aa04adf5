"""Quality evaluation of generated images: eligible runs, the split of real images, and where scores
are stored.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gan_runtime.base.errors import DatasetError, JobError
from gan_runtime.base.fields import IMAGES
from gan_runtime.catalog.evaluations import evaluation
from gan_runtime.cli.app import app
from gan_runtime.data.contract import ArraySet, picture_set
from gan_runtime.engines.task import workload_of
from gan_runtime.evaluation import (
    image_classifier,
    image_features,
    jobs,
    quality,
    quality_measurement,
    sample_scores,
)
from gan_runtime.evaluation.catalog import report_of_scores
from gan_runtime.evaluation.quality_scores import QUALITY_METRICS
from gan_runtime.evaluation.sample_scores import ImageSample
from gan_runtime.records import journal
from gan_runtime.records.answer import Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.store import ingest, queries
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.inference import TrainedNetworks
from tests.support.measured_images import answer

NewRun = Callable[..., RunDir]
DECLARED = evaluation("quality")


def images(rows: int, held_out: int = 0) -> ArraySet:
    """Returns unique images: image i is black except for its number in two pixels."""
    numbered = np.zeros((rows + held_out, 8, 8, 1), np.uint8)
    numbers = np.arange(rows + held_out)
    numbered[:, 0, 0, 0], numbered[:, 0, 1, 0] = numbers // 250, numbers % 250
    return picture_set(
        "numbered",
        numbered[:rows],
        "test",
        kept_back={IMAGES: numbered[rows:]} if held_out else None,
    )


def numbers(values: np.ndarray) -> set[tuple[float, float]]:
    return set(zip(values[:, 0, 0, 0].tolist(), values[:, 0, 1, 0].tolist(), strict=True))


def test_quality_applies_only_to_runs_that_generate_images(home: Home, new_run: NewRun) -> None:
    assert jobs.why_never(home, new_run("quick-0001"), DECLARED) == ""
    showers = new_run("quick-0002", workload="shower_3dgan", dataset="showers")
    assert jobs.why_never(home, showers, DECLARED).startswith(
        "Quality needs a data set of images, single or in pairs, but the "
    )


def test_unlabeled_images_default_to_the_imagenet_network(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("quick-0001")
    assert quality.usual(home, run)["features"] == "classifier"
    monkeypatch.setattr(quality.loading, "fields_of", lambda *_: images(9).fields)
    assert quality.usual(home, run)["features"] == "imagenet"
    quality.check(home, run, quality.QualityOptions(features="imagenet"))
    with pytest.raises(DatasetError, match=r"needs labels, .* has none: use features=imagenet"):
        quality.check(home, run, quality.QualityOptions())


def test_fid_is_refused_without_its_weights(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(home.path))
    options = quality.QualityOptions(features="inception")
    with pytest.raises(JobError, match="its weights are not on this machine"):
        quality.check(home, new_run("quick-0001"), options)
    quality.folder_of(home).mkdir()
    (quality.folder_of(home) / image_features.INCEPTION_FILES[0]).touch()
    quality.check(home, new_run("quick-0002"), options)


def test_held_out_images_are_split_into_two_equal_halves() -> None:
    real = image_classifier.real_images(images(500, held_out=300), 1_000, seed=0)
    assert (len(real.reference), len(real.others)) == (150, 150)
    halves = numbers(real.reference), numbers(real.others)
    assert not halves[0] & halves[1]
    assert min(halves[0] | halves[1])[0] > 1.5 / 127.5 - 1.0, "500 or more: no training image"
    assert real.noun == "held-out images"


def test_copies_are_searched_in_all_training_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of the last rows, which a search of a part would miss; blocks of 100 images."""
    monkeypatch.setattr(image_classifier, "MOST_SEARCHED", 100 * 64)
    data = noise_images(1_050, held_out=300)
    real = image_classifier.real_images(data, 150, seed=0)
    copied = data.read(np.arange(1_000, 1_050))[IMAGES] / 127.5 - 1.0
    done: list[int] = []
    nearest = functools.partial(
        image_classifier.nearest_training, real=real, progress=lambda *at: done.append(at[0])
    )
    assert nearest(copied).max() < 1e-3 < 0.1 < nearest(real.others).min()
    assert done[:11] == [100 * block for block in range(11)]
    without = image_classifier.real_images(noise_images(500), 150, seed=0)
    own = image_classifier.nearest_training(
        without.reference, without, lambda *_: None, are_real=True
    )
    assert own.min() > 0.1, "a training image skips itself"
    large = image_classifier.real_images(noise_images(500, side=80), 150, seed=0)
    copied = np.asarray(large.reference[:3])
    assert image_classifier.nearest_training(copied, large, lambda *_: None).max() < 1e-3


def noise_images(rows: int, held_out: int = 0, side: int = 8) -> ArraySet:
    drawn = np.random.RandomState(0).randint(0, 256, (rows + held_out, side, side, 1), np.uint8)
    kept_back = {IMAGES: drawn[rows:]} if held_out else None
    return picture_set("noise", drawn[:rows], "test", kept_back=kept_back)


def test_training_images_are_split_without_held_out_ones() -> None:
    real = image_classifier.real_images(images(500), 120, seed=0)
    assert (len(real.reference), len(real.others), real.noun) == (120, 120, "training images")
    assert not numbers(real.reference) & numbers(real.others)
    other_seed = image_classifier.real_images(images(500), 120, seed=1)
    assert numbers(real.reference) != numbers(other_seed.reference)


def test_fid_compares_generated_with_training_images() -> None:
    real = image_classifier.images_of_fid(images(500, held_out=300), 400, seed=0)
    assert (len(real.reference), len(real.others), real.searched) == (400, 300, None)
    assert not numbers(real.reference) & numbers(real.others)
    assert (real.is_whole, real.noun) == (False, "training images")
    assert image_classifier.images_of_fid(images(500, held_out=300), 900, seed=0).is_whole
    real = image_classifier.images_of_fid(images(500), 900, seed=0)
    assert (len(real.reference), len(real.others), real.is_whole) == (500, 0, True)
    assert [image_classifier.images_to_generate(real, 900, is_fid) for is_fid in (0, 1)] == [
        500,
        900,
    ]


def test_missing_fid_of_large_images_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_classifier, "MOST_NUMBERS_OF_FID", 64 * 400)
    real = image_classifier.images_of_fid(images(500), 50_000, seed=0)
    assert (len(real.reference), real.is_whole) == (400, False)
    assert image_classifier.images_to_generate(real, 50_000, is_fid=True) == 400
    requested = quality.QualityOptions(features="inception", samples=50_000)
    assert quality_measurement.fid_obstacle(real, requested).startswith(
        "No FID: of training images this large, only 400 are read"
    )
    assert (
        quality_measurement.fid_obstacle(real, quality.QualityOptions(features="inception")) == ""
    )


class Echo:
    """An engine that returns its inputs."""

    def generate(self, inputs: dict[str, np.ndarray], seed: int = 0) -> dict[str, np.ndarray]:
        return {**inputs, "seed": np.array([seed])}


def test_generated_classes_are_as_frequent_as_in_training_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """40 classes, one of which has half of the rows; a request without a class shows only 20."""
    labels = np.concatenate([np.repeat(np.arange(40), 10), np.full(400, 7)]).astype(np.int32)
    classes = tuple(map(str, range(40)))
    black = np.zeros((800, 28, 28, 1), np.uint8)
    data = picture_set("many", black, "test", labels=labels, classes=classes)
    spec = RunSpec.parse({"workload": "dcgan", "dataset": "digits"})
    checkpoint = checkpoints.Checkpoint({}, 20, 1.0, Path("step-20"))
    networks = TrainedNetworks(spec, workload_of(spec), data, Echo(), checkpoint)  # type: ignore[arg-type]
    monkeypatch.setattr(inference, "CHUNK", 300)
    chunks = list(networks.representative(800, seed=3))
    assert [len(chunk["labels"]) for chunk in chunks] == [300, 300, 200]
    generated = np.concatenate([chunk["labels"] for chunk in chunks])
    assert np.bincount(generated).tolist() == np.bincount(labels).tolist()
    assert 0.3 < np.mean(generated[:100] == 7) < 0.7, "in random order"
    latents = np.concatenate([chunk["latents"] for chunk in chunks])
    assert len(np.unique(latents[:, 0])) == 800, "no latent is repeated"
    again = next(networks.representative(800, seed=3))
    np.testing.assert_array_equal(again["latents"], chunks[0]["latents"])


def test_distance_is_fid_only_from_50000_images_and_all_training_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.RandomState(0)
    reference, generated = _sample(random, 300), _shifted(random, 500)
    assert math.isnan(sample_scores.fid(reference, generated, is_whole=True, seed=0).value)
    monkeypatch.setattr(sample_scores, "IMAGES_OF_FID", 500)
    distance = sample_scores.frechet_distance(reference.features, generated.features)
    fid = sample_scores.fid(reference, generated, is_whole=True, seed=0)
    assert fid.value == distance
    assert math.isnan(sample_scores.fid(reference, generated, is_whole=False, seed=0).value)
    others = [
        sample_scores.frechet_distance(
            _sample(random, 300).features, _shifted(random, 500).features
        )
        for _ in range(100)
    ]
    assert 0.6 < fid.error / np.std(others) < 1.6


def test_score_names_differ_by_feature_network() -> None:
    random = np.random.RandomState(0)
    first, second = _sample(random, 40), _sample(random, 40)
    classifier = sample_scores.numbers_of("classifier")(first, second, 0)
    imagenet, inception = (
        sample_scores.measured(first, second, 0, features) for features in ("imagenet", "inception")
    )
    assert imagenet["imagenet_kcd"].value == inception["kid"].value == classifier["kcd"]
    assert set(classifier) & set(imagenet) == {"copies"}
    assert not set(inception) & {*classifier, *imagenet}


def test_too_few_images_are_refused() -> None:
    with pytest.raises(DatasetError, match="has 199 images, but quality needs 200: prepare more"):
        image_classifier.real_images(images(199), 1_000, seed=0)


def test_infinite_sample_distance_needs_four_images_per_feature() -> None:
    random = np.random.RandomState(0)
    few, enough = (
        sample_scores.measured(*(_sample(random, rows) for _ in range(2)), seed=0)["fcd_infinite"]
        for rows in (31, 32)
    )
    assert math.isnan(few.value)
    assert math.isfinite(enough.value)


def _sample(random: np.random.RandomState, rows: int) -> ImageSample:
    return ImageSample(random.standard_normal((rows, 8)), np.full((rows, 2), 0.5), np.ones(rows))


def _shifted(random: np.random.RandomState, rows: int) -> ImageSample:
    sample = _sample(random, rows)
    return ImageSample(sample.features + 1.0, sample.probabilities, sample.nearest)


def test_every_score_is_declared_and_directed_ones_pick_best_epochs() -> None:
    random = np.random.RandomState(0)
    scores = sample_scores.compared(_sample(random, 40), _sample(random, 40), seed=0, draws=1)
    declared = {metric.name.removeprefix("quality_"): metric for metric in QUALITY_METRICS}
    others = {name for names in sample_scores.NAMES.values() for name in names.values()}
    earlier = {"nearest_training"}  # of stored answers
    assert set(declared) == {*scores, *others, *earlier, "modes", "fid", "rarest_class"}
    for metric in QUALITY_METRICS:
        assert (metric.role == "measured_quality") == bool(metric.better), metric.name


def test_quality_scores_are_results_of_the_run(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    steps = journal.Scalars(epoch=2, first_step=1, wall_s=[0.8], values={"loss_generator": [0.7]})
    answers = [answer(epoch, 10.0 - epoch, coverage=0.5 - 0.1 * epoch) for epoch in (1, 2, 3)]
    journal.append(run.trainer_journal(), 1, steps, *answers)
    store = ingest.store_of(home)
    [row] = queries.results(store, ["quick-0001"]).to_dict("records")
    assert (row["quality_fcd_best_epoch"], row["quality_fcd_last"]) == (3.0, 7.0)
    assert (row["quality_coverage_best_epoch"], row["quality_coverage_best"]) == (1.0, 0.4)
    assert queries.best_epochs(store, "quick-0001", QUALITY_METRICS, [1, 2]) == {
        "quality_fcd": (2, 8.0),
        "quality_kcd": (1, 0.5),  # tie: the earliest epoch
        "quality_coverage": (1, 0.4),
    }
    assert store.rows(
        "SELECT low, value, high, floor, ceiling FROM evaluation_scores"
        " WHERE score = 'fcd' ORDER BY key"
    )[:2] == [(8.0, 9.0, 10.0, 1.0, 90.0), (7.0, 8.0, 9.0, 1.0, 90.0)]


def test_run_quality_is_the_first_score_by_device_time_of_each_epoch(
    home: Home, new_run: NewRun
) -> None:
    run = new_run("quick-0001", replicas=2)
    done = [
        journal.EpochDone(epoch=epoch, step=10 * epoch, seconds=4.0, images=64, images_per_s=16.0)
        for epoch in (1, 2)
    ]
    of_imagenet = answer(3).model_copy(
        update={"key": "epoch 3 imagenet", "scores": [Score(name="imagenet_kcd", value=1.0)]}
    )
    measured = answer(1, kcd=9.0), answer(2, kcd=5.0), answer(2, kcd=6.0), of_imagenet
    journal.append(run.trainer_journal(), 1, *done)
    journal.append(run.evaluations_journal, 1, *measured)
    new_run("quick-0002", seconds=1)
    store = ingest.store_of(home)
    rows = queries.qualities(store, ["quick-0001", "quick-0002"])
    assert rows["metric"].tolist() == ["quality_kcd"] * 2
    columns = ["epoch", "value", "low", "high", "wall_s", "device_s"]
    assert rows[columns].to_numpy().tolist() == [
        [1.0, 9.0, 8.8, 9.2, 4.0, 8.0],
        [2.0, 6.0, 5.8, 6.2, 8.0, 16.0],
    ]
    unlabeled = new_run("quick-0003", seconds=2)
    journal.append(unlabeled.evaluations_journal, 1, of_imagenet)
    assert queries.qualities(ingest.store_of(home), ["quick-0003"])["metric"].tolist() == [
        "quality_imagenet_kcd"
    ]
    best = queries.best_qualities(store)
    assert best[["epoch", "value"]].to_dict("index") == {"quick-0001": {"epoch": 2, "value": 6.0}}


@pytest.mark.parametrize("others", [{"classifier": "another", "protocol": 2}, {"weights": "new"}])
def test_best_quality_is_among_scores_of_the_newest_network(
    home: Home, new_run: NewRun, others: dict[str, Any]
) -> None:
    first = answer(1, kcd=3.0)
    measured = [
        first,
        *(
            answer(epoch, kcd=kcd).model_copy(update={"facts": first.facts | others})
            for epoch, kcd in ((2, 7.0), (3, 8.0))
        ),
    ]
    journal.append(new_run("quick-0001").evaluations_journal, 1, *measured)
    store = ingest.store_of(home)
    assert queries.qualities(store, ["quick-0001"])["is_current"].tolist() == [False, True, True]
    assert queries.best_qualities(store)["value"].to_dict() == {"quick-0001": 7.0}


@pytest.mark.parametrize(
    ("name", "rows", "least"),
    [
        ("mnist", 60_000, 0.993),
        ("mnist", 8_000, 0.985),
        ("digits", 898, 0.97),
        ("stacked_digits", 25_600, 0.9),
        ("flowers", 60_000, 0.9),
    ],
)
def test_inaccurate_classifier_gives_a_warning(name: str, rows: int, least: float) -> None:
    expected = image_classifier.expected_accuracy(name, rows)
    classifiers = [
        image_classifier.ImageClassifier(None, (10,), "0" * 16, accuracy, expected)
        for accuracy in (least, least - 0.001)
    ]
    assert [bool(each.warning) for each in classifiers] == [False, True]
    assert f"{least:.1%}" in classifiers[1].warning


def test_classifier_that_learned_nothing_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 classes of 3 images of noise, so most held-out images are classified wrongly."""
    monkeypatch.setattr(image_classifier, "FEWEST_SEEN", 300)
    drawn = np.random.RandomState(0).randint(0, 256, (300, 8, 8, 1), np.uint8)
    labels, classes = np.arange(300) % 100, tuple(map(str, range(100)))
    data = picture_set("many", drawn, "test", labels=labels.astype(np.int32), classes=classes)
    with pytest.raises(
        DatasetError,
        match=r"of data set many is right on .*%.* 300 images of 100 classes .*features=imagenet",
    ):
        image_classifier.classifier_of(data, (100,), home, lambda *_: None)


def test_terminal_shows_interval_floor_and_ceiling(new_run: NewRun) -> None:
    run = new_run("quick-0001")
    journal.append(run.evaluations_journal, 1, answer(2, fcd=4.0, warning="Compare with care."))
    report = report_of_scores(DECLARED, run, {})
    _, table, facts = report.parts
    assert table.columns == ("Score", "Value", "Low", "High", "Real", "Noise")
    assert table.rows[0] == ("FCD", "4", "3", "5", "1", "90")
    assert facts == (
        "samples 898, reference training images, seed 0, protocol 1, features classifier,"
        " classifier ce7f46d27d5b3506, accuracy 0.994."
    )
    assert (report.document["facts"]["protocol"], report.document["facts"]["seed"]) == (1, 0)


def test_list_of_runs_shows_the_best_quality(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    new_run("quick-0002", seconds=1)
    journal.append(
        run.evaluations_journal,
        1,
        answer(1, kcd=9.0),
        answer(2, kcd=5.0, warning="is right on 60%"),
    )
    command = functools.partial(CliRunner().invoke, app)
    lines = command(["runs", "--home", str(home.path)]).stdout.splitlines()
    shown = ["KCD 5, inaccurate classifier" in line for line in lines if "quick-" in line]
    assert shown == [False, True]
    rows = json.loads(command(["runs", "--json", "--home", str(home.path)]).stdout)
    assert [(row["quality"], row["quality_metric"]) for row in rows] == [
        (None, None),
        (5.0, "quality_kcd"),
    ]
