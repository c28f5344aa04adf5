"""The classifier of the embedded digits, the sensitivity of its features, and the quality of a
short run in real processes.
"""

from __future__ import annotations

import io
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from gan_runtime.data import loading
from gan_runtime.evaluation import image_classifier, image_features, sample_scores
from gan_runtime.evaluation.quality_scores import QUALITY_METRICS
from gan_runtime.evaluation.training_requests import SWITCH
from gan_runtime.jobs import job_queue
from gan_runtime.records.home import Home
from gan_runtime.store import ingest, queries
from gan_runtime.training import checkpoints
from tests.support.commands_in_processes import Start, starting

if TYPE_CHECKING:
    from gan_runtime.evaluation.image_classifier import ImageClassifier

Images = NDArray[np.float64]  # (N, 28, 28, 1), -1 is black
STRENGTHS = (0.0, 0.25, 0.5, 1.0)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home for the classifier of the digits."""
    return Home(tmp_path_factory.mktemp("home")).prepare()


@pytest.fixture(scope="module")
def classifier(home: Home) -> ImageClassifier:
    """The one that comes with the program."""
    return image_classifier.classifier_of(loading.load("digits"), (10,), home, lambda *_: None)


def refuse(*_: object) -> None:
    raise AssertionError("it is trained again")


def test_a_classifier_trained_here_is_accurate_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_classifier, "SHIPPED", tmp_path)
    monkeypatch.setattr(image_classifier, "FEWEST_SEEN", 10_000)  # a third is enough for digits
    home, digits = Home(tmp_path / "home").prepare(), loading.load("digits")
    classifier = image_classifier.classifier_of(digits, (10,), home, lambda *_: None)
    assert classifier.accuracy >= 0.97
    assert classifier.warning == ""
    again = image_classifier.classifier_of(digits, (10,), home, refuse)
    assert (again.digest, again.accuracy) == (classifier.digest, classifier.accuracy)
    assert [path.suffix for path in (home.path / "classifiers").iterdir()] == [".npz"]


def test_the_classifier_of_the_digits_comes_with_the_program(home: Home) -> None:
    shipped = image_classifier.classifier_of(loading.load("digits"), (10,), home, refuse)
    assert shipped.accuracy >= 0.97
    assert [path.name for path in (home.path / "classifiers").iterdir()] == [
        path.name for path in image_classifier.SHIPPED.iterdir()
    ]


def test_damaged_classifier_is_set_aside_and_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(image_classifier, "SHIPPED", tmp_path)
    monkeypatch.setattr(image_classifier, "FEWEST_SEEN", 64)
    monkeypatch.setattr(image_classifier, "EPOCHS", 1)
    home, digits, sentences = Home(tmp_path).prepare(), loading.load("digits"), set[str]()

    def stored_now() -> ImageClassifier:
        sentences.clear()
        return image_classifier.classifier_of(
            digits, (10,), home, lambda _, __, sentence: sentences.add(sentence)
        )

    first = stored_now()
    [path] = (home.path / "classifiers").glob("*.npz")
    whole = path.read_bytes()
    other = io.BytesIO()
    np.savez(other, accuracy=np.float64(0.9), weight_0=np.zeros(3))
    for damaged in (whole[:-1], other.getvalue()):
        path.write_bytes(damaged)
        again = stored_now()
        assert sentences == {"training the classifier, whose file was damaged"}
        assert path.with_suffix(image_classifier.DAMAGED).read_bytes() == damaged
        assert (again.digest, again.accuracy) == (first.digest, first.accuracy)
        assert stored_now().digest == first.digest
        assert not sentences, "it is trained a third time"
    assert caplog.text.count("The stored classifier is damaged") == 2


def noise(images: Images, strength: float) -> Images:
    drawn = np.random.RandomState(0).standard_normal(images.shape)
    return np.clip(images + 1.2 * strength * drawn, -1.0, 1.0)


def blur(images: Images, strength: float) -> Images:
    width = 3.0 * strength
    return np.asarray(ndimage.gaussian_filter(images, (0.0, width, width, 0.0)))


def black_rectangle(images: Images, strength: float) -> Images:
    side, hidden = round(20 * strength), images.copy()
    hidden[:, 4 : 4 + side, 4 : 4 + side] = -1.0
    return hidden


def swirl(images: Images, strength: float) -> Images:
    rows, columns = np.mgrid[0:28, 0:28] - 13.5
    angle = np.arctan2(rows, columns) + 3.0 * strength * np.exp(-np.hypot(rows, columns) / 8.0)
    radius = np.hypot(rows, columns)
    places = np.stack([radius * np.sin(angle), radius * np.cos(angle)]) + 13.5
    turned = [
        ndimage.map_coordinates(image[..., 0], places, order=1, mode="nearest") for image in images
    ]
    return np.stack(turned)[..., np.newaxis]


def salt_and_pepper(images: Images, strength: float) -> Images:
    random = np.random.RandomState(0)
    is_hit = random.uniform(size=images.shape) < 0.3 * strength
    return np.where(is_hit, random.choice([-1.0, 1.0], size=images.shape), images)


def other_images(images: Images, strength: float) -> Images:
    """Replaces a share of the images with stripes."""
    mixed = images.copy()
    count = round(0.8 * strength * len(images))
    mixed[:count] = np.where(np.arange(28) % 4 < 2, 1.0, -1.0)[:, np.newaxis]
    return mixed


@pytest.mark.parametrize(
    "corrupt",
    [noise, blur, black_rectangle, swirl, salt_and_pepper, other_images],
    ids=lambda corruption: corruption.__name__,
)
def test_distances_rise_with_every_corruption(
    classifier: ImageClassifier, corrupt: Callable[[Images, float], Images]
) -> None:
    """The six corruptions of Heusel et al. 2017, figure 3."""
    real = image_classifier.real_images(loading.load("digits"), 800, seed=0)
    reference, _ = classifier.read(real.reference)
    corrupted = [
        classifier.read(corrupt(real.others.astype(np.float64), strength))[0]
        for strength in STRENGTHS
    ]
    distances = [sample_scores.frechet_distance(reference, features) for features in corrupted]
    discrepancies = [
        sample_scores.squared_discrepancy(reference, features) for features in corrupted
    ]
    assert distances == sorted(distances)
    assert discrepancies == sorted(discrepancies)
    assert distances[-1] > 3.0 * distances[0]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts commands on a home in a temporary folder."""
    with starting(tmp_path) as begin:
        yield begin


def output_of(start: Start, *words: str, seconds: float = 280.0) -> str:
    """Runs a command that must succeed; returns its output."""
    process = start(*words)
    output, notes = process.communicate(timeout=seconds)
    assert process.returncode == 0, notes
    return output


def test_quality_of_a_short_run_is_measured(start: Start, tmp_path: Path) -> None:
    options = ("workload=mlp_gan", "dataset=digits", "epochs=2", "weight_snapshots=yes")
    output_of(start, "train", *(part for option in options for part in ("--set", option)))
    document = json.loads(
        output_of(
            start,
            *("evaluate", "run-0001", "quality", "--json"),
            *("--set", "samples=600", "--set", "checkpoint=every"),
        )
    )
    scores = {score["name"]: score for score in document["scores"]}
    assert document["epochs"] == [0, 1, 2]
    assert document["warnings"] == []
    for name, score in scores.items():
        assert score["low"] <= score["value"] <= score["high"], name
        assert math.isfinite(score["floor"]), name
        assert math.isfinite(score["ceiling"]), name
    assert scores["fcd"]["floor"] < scores["fcd"]["value"]
    assert scores["coverage"]["ceiling"] < 0.1 < 0.9 < scores["coverage"]["floor"]
    assert scores["sure"]["floor"] > 0.9

    store = ingest.store_of(Home(tmp_path))
    best = queries.best_epochs(store, "run-0001", QUALITY_METRICS, [0, 1, 2])
    assert best["quality_fcd_infinite"][1] <= scores["fcd_infinite"]["value"]
    assert best["quality_sure"][1] >= scores["sure"]["value"]
    [(digest, accuracy)] = store.rows(
        "SELECT DISTINCT facts->>'classifier', CAST(facts->>'accuracy' AS DOUBLE) FROM evaluations"
    )
    assert len(digest) == 16
    assert accuracy >= 0.97


def test_run_is_measured_during_training_and_its_averages_afterward(
    start: Start,
    tmp_path: Path,
    home: Home,
    classifier: ImageClassifier,
    wait_until: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(SWITCH)  # tests/conftest.py sets it
    assert classifier.accuracy > 0.0  # stored, so the job does not train one
    shutil.copytree(home.path / "classifiers", tmp_path / "classifiers")
    options = (
        *("workload=mlp_gan", "dataset=digits", "epochs=4", "quality_every=1"),
        *("weight_snapshots=yes", "ema_decay=0.9", "samples_from=ema"),
    )
    output_of(start, "train", *(part for option in options for part in ("--set", option)))
    of_test = Home(tmp_path)
    [job] = job_queue.snapshots(of_test, "quality", run_id="run-0001")
    assert (job.request.asker, job.request.options["while_training"]) == ("training", 1)
    end = wait_until(job.job.end, "the last epoch is measured", 280.0)
    assert (end.state, end.result["epochs"][-1]) == ("finished", 4), end
    store = ingest.store_of(of_test)
    rows = queries.qualities(store, ["run-0001"])
    assert rows["epoch"].tolist() == end.result["epochs"]
    assert (rows["low"] <= rows["value"]).all()
    best = queries.best_qualities(store).loc["run-0001"]
    run = of_test.run_dir("run-0001")
    assert checkpoints.load(run.checkpoints, "best").step == best["step"]

    arrays = checkpoints.load_snapshot(run.snapshots, 2)
    next(iter(arrays.values())).flat[0] = np.inf  # overflowed in half precision
    checkpoints.save_snapshot(run.snapshots, arrays, 2, averages=True)
    document = json.loads(
        output_of(
            start,
            *("evaluate", "run-0001", "quality", "--json"),
            *("--set", "samples=200", "--set", "checkpoint=every"),
        )
    )
    assert document["epochs"] == [0, 1, 3, 4], "the snapshots hold the averages"
    assert document["warnings"][0].startswith("epoch 2 was not measured: ")


def test_modes_of_stacked_digits_are_counted(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uses a briefly trained classifier, so that there is a warning."""

    monkeypatch.setattr(image_classifier, "FEWEST_SEEN", 20_000)
    monkeypatch.setattr(image_classifier, "EPOCHS", 1)
    digits = loading.load("stacked_digits")
    home = Home(tmp_path).prepare()
    short = image_classifier.classifier_of(digits, (10, 10, 10), home, lambda *_: None)
    options = ("workload=dcgan", "dataset=stacked_digits", "epochs=1", "base_channels=4")
    options += ("precision=float32", "batch_size_global=256", "replicas=1", "quality_every=0")
    output_of(start, "train", *(part for option in options for part in ("--set", option)))
    words = ("evaluate", "run-0001", "quality", "--json", "--set", "samples=200")
    document = json.loads(output_of(start, *words))
    [modes] = [score for score in document["scores"] if score["name"] == "modes"]
    assert 1 <= modes["value"] <= modes["floor"] <= 1_000
    assert 1 <= modes["ceiling"] < 100, "noise"
    assert (modes["floor"] > 900, modes["samples"]) == (True, 20_000)
    assert 1.0 <= modes["low"] <= modes["value"] <= modes["high"]
    assert modes["error"] > 0.0
    assert document["warnings"] == ([short.warning] if short.accuracy < 0.9 else [])


def test_imagenet_network_in_the_keras_cache_scores_images(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MobileNetV2 with random weights, in the file that Keras would download."""
    models = tmp_path / "keras" / "models"
    models.mkdir(parents=True)
    write_mobilenet(models / image_features.MOBILENET)
    monkeypatch.setenv("KERAS_HOME", str(models.parent))
    options = ("workload=mlp_gan", "dataset=digits", "epochs=1", "quality_every=0")
    output_of(start, "train", *(part for option in options for part in ("--set", option)))
    words = ("evaluate", "run-0001", "quality", "--json", "--set", "features=imagenet")
    document = json.loads(output_of(start, *words, "--set", "samples=100"))
    scores = {score["name"]: score for score in document["scores"]}
    assert set(scores) == set(sample_scores.NAMES["imagenet"].values())
    assert scores["imagenet_coverage"]["value"] < 0.3 < 0.8 < scores["imagenet_coverage"]["floor"]
    program = (
        "import keras; keras.config.set_dtype_policy('mixed_bfloat16');"
        " from gan_runtime.evaluation.image_features import imagenet_network;"
        " model = imagenet_network(lambda *_: None).model;"
        " print({layer.compute_dtype for layer in model.layers}, keras.config.dtype_policy().name)"
    )
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert printed.stdout.split() == [b"{'float32'}", b"mixed_bfloat16"]
    store = ingest.store_of(Home(tmp_path))
    assert store.rows(
        "SELECT DISTINCT metric FROM numbers WHERE metric LIKE 'quality_%' ORDER BY 1"
    ) == [(f"quality_{name}",) for name in sorted(scores)]


def write_mobilenet(path: Path) -> None:
    import h5py
    import keras
    from keras.src.legacy.saving import legacy_h5_format

    keras.utils.set_random_seed(1)
    side = image_features.MOBILENET_SIDE
    network = keras.applications.MobileNetV2((side, side, 3), include_top=False, weights=None)
    with h5py.File(path, "w") as file:
        legacy_h5_format.save_weights_to_hdf5_group(file, network)


@pytest.mark.timeout(900)
def test_quick_preset_generates_digits_of_every_class(start: Start) -> None:
    options = ("--set", "quality_every=0")
    output_of(start, "train", "--preset", "quick", *options, seconds=700.0)
    words = ("evaluate", "quick-0001", "quality", "--json", "--set", "checkpoint=newest")
    scores = {score["name"]: score for score in json.loads(output_of(start, *words))["scores"]}
    assert scores["sure"]["value"] > 0.85, "the preset says 9 in 10"
    assert scores["coverage"]["ceiling"] < 0.6 < scores["coverage"]["value"]
    assert scores["fcd"]["floor"] < scores["fcd"]["value"]
    assert scores["class_distance"]["value"] < 0.1
    assert scores["fcd_infinite"]["value"] < 30.0, "it was 90 with the networks of the paper"
