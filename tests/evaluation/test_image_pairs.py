"""Quality of image-to-image networks: which pairs are compared, and the scores of perfect and of
random outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import GENERATED, SOURCE, TARGET, pair_fields
from gan_runtime.catalog.evaluations import evaluation
from gan_runtime.data.contract import ArraySet
from gan_runtime.engines.task import workload_of
from gan_runtime.evaluation import (
    image_features,
    image_pairs,
    jobs,
    quality,
    quality_measurement,
)
from gan_runtime.evaluation.catalog import Subject
from gan_runtime.evaluation.mobilenet_file import MOBILENET
from gan_runtime.evaluation.quality import QualityOptions
from gan_runtime.evaluation.training_requests import SWITCH, is_measured_while_training
from gan_runtime.records import journal
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.store import ingest, queries
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.checkpoints import Checkpoint
from gan_runtime.training.inference import TrainedNetworks
from tests.support.stored_films import stored_flows, stored_pairs

pytestmark = pytest.mark.usefixtures("cores")  # before TensorFlow starts its devices
NewRun = Callable[..., RunDir]
DECLARED = evaluation("quality")
WEIGHTS = {"weight": np.zeros(2, np.float32)}
SIDE, TILE, TRAINED, HELD_OUT = 32, 16, 300, 120


def pairs() -> ArraySet:
    """Pairs of a color pattern and its negative. In each row of pixels the level rises by one; the
    first channel has the number of the pair.
    """
    random = np.random.RandomState(0)
    count = TRAINED + HELD_OUT
    source = np.empty((count, SIDE, SIDE, 3), np.uint8)
    source[..., 0] = (np.arange(count) % 200)[:, np.newaxis, np.newaxis]
    source[..., 1:] = random.randint(0, 200, (count, 1, 1, 2))
    source += np.arange(SIDE, dtype=np.uint8)[:, np.newaxis, np.newaxis]
    arrays = {SOURCE: source, TARGET: 255 - source}
    return ArraySet(
        "negatives",
        pair_fields(SIDE, SIDE),
        {name: rows[:TRAINED] for name, rows in arrays.items()},
        "test",
        kept_back={name: rows[TRAINED:] for name, rows in arrays.items()},
    )


@dataclass
class Negatives:
    """Replaces an engine that has learned the pairs perfectly, or (`is_random`) nothing."""

    is_random: bool = False
    rows: list[int] = field(default_factory=list)

    def load(self, arrays: Mapping[str, Any]) -> None:
        pass

    def generate(self, inputs: dict[str, np.ndarray], seed: int = 0) -> dict[str, np.ndarray]:
        self.rows.append(len(inputs[SOURCE]))
        images = -inputs[SOURCE]
        if self.is_random:
            images = np.random.RandomState(seed).uniform(-1.0, 1.0, images.shape)
        return {**inputs, GENERATED: images}


class Means:
    """Replaces a network that reads images: means of each channel, and the contrast."""

    parts, facts, warning = (), {"weights": "toy"}, ""

    def read(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means, contrasts = images.mean(axis=(1, 2)), images.std(axis=(1, 2))
        return np.concatenate([means, contrasts], axis=1), np.empty((len(images), 0))


def networks(engine: Negatives) -> TrainedNetworks:
    spec = RunSpec.parse({"workload": "pix2pix", "dataset": "negatives", "tile": TILE})
    checkpoint = Checkpoint(WEIGHTS, 20, 1.0, Path("step-20"))
    return TrainedNetworks(spec, workload_of(spec), pairs(), engine, checkpoint)  # type: ignore[arg-type]


def new_pairs(new_run: NewRun, dataset: str = "edges", **options: Any) -> RunDir:
    return new_run("quick-0001", workload="pix2pix", dataset=dataset, tile=TILE, **options)


def test_quality_applies_to_pairs_of_images_but_not_to_frames_of_a_flow(
    home: Home, new_run: NewRun
) -> None:
    stored_pairs(home, pairs=106, held_out=100)
    stored_flows(home)
    run = new_pairs(new_run)
    assert jobs.why_never(home, run, DECLARED) == ""
    assert quality.usual(home, run)["features"] == "imagenet"
    quality.check(home, run, QualityOptions(features="imagenet"))
    flows = new_run("quick-0002", workload="pix2pix", dataset="street", tile=TILE)
    assert jobs.why_never(home, flows, DECLARED) == (
        "Quality needs a data set of images, single or in pairs, but the source and target of this"
        " run's are not images. Pick a run on images."
    )


def test_too_few_held_out_pairs_are_refused(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(SWITCH)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / MOBILENET).touch()
    stored_pairs(home, pairs=106, held_out=99)
    stored_pairs(home, "enough", pairs=106, held_out=100)
    run = new_pairs(new_run)
    with pytest.raises(DatasetError, match="data set edges has 99: prepare it so that 100 or more"):
        quality.check(home, run, QualityOptions(features="imagenet"))
    assert not is_measured_while_training(home, run)
    other = new_run("quick-0002", workload="pix2pix", dataset="enough", tile=TILE)
    assert is_measured_while_training(home, other)


def test_reference_is_of_training_pairs_and_inputs_are_of_held_out_ones() -> None:
    real, inputs = image_pairs.samples(networks(Negatives()), 200, seed=0)
    assert (real.reference.shape, real.is_whole) == ((200, TILE, TILE, 3), False)
    assert (real.others.shape, real.searched) == ((HELD_OUT, TILE, TILE, 3), None)
    np.testing.assert_allclose(inputs[TARGET], -inputs[SOURCE], atol=1e-6)
    # The level rises along a column from the number of the pair.
    tops = np.rint((inputs[SOURCE][:, 0, 0, 0] + 1.0) * 127.5).astype(int)
    cuts = tops - np.arange(TRAINED, TRAINED + HELD_OUT) % 200
    assert (cuts.min() >= 0, cuts.max() <= SIDE - TILE) == (True, True)
    assert len(np.unique(cuts)) > 10, "tiles are cut at many places"
    assert len(np.unique(cuts[:50] == cuts[50:100])) == 2, "no part repeats the places of another"


@pytest.mark.parametrize("is_random", [False, True], ids=["perfect", "random"])
def test_perfect_outputs_reach_the_floor_and_random_ones_the_ceiling(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch, *, is_random: bool
) -> None:
    run, engine = new_pairs(new_run, "negatives"), Negatives(is_random)
    checkpoints.save(run.checkpoints, WEIGHTS, 20, wall_s=1.0, retained=3)
    monkeypatch.setattr(inference, "of_run", lambda *_: networks(engine))
    monkeypatch.setattr(quality_measurement.loading, "load", lambda *_: pairs())
    monkeypatch.setattr(image_features, "imagenet_network", lambda _: Means())

    def publish(answer: Answer) -> None:
        journal.append(run.evaluations_journal, 1, answer)

    options = QualityOptions(features="imagenet", samples=200)
    subject = Subject(home, run, options, "key", home.path, lambda *_: None, publish)
    result = quality_measurement.measure(subject)
    assert result.result["warnings"] == []
    assert engine.rows == [50, 50, 20], "one output for each held-out pair"
    scores = scores_of(home, run)
    assert set(scores) == {f"imagenet_{name}" for name in ("kcd", *NEIGHBORS)}
    coverage, kcd = scores["imagenet_coverage"], scores["imagenet_kcd"]
    assert (coverage.floor > 0.5, coverage.ceiling < 0.1) == (True, True)
    if is_random:
        assert coverage.value < 0.1
    else:
        assert (coverage.value, kcd.value) == pytest.approx(
            (coverage.floor, kcd.floor), rel=1e-4, abs=1e-6
        )


NEIGHBORS = ("precision", "recall", "density", "coverage")


def scores_of(home: Home, run: RunDir) -> dict[str, Score]:
    """The scores in the run's journal. Their KCD is its quality, but training chooses the best
    checkpoint, by its own number.
    """
    [answer] = [
        record for record in journal.read_all(run.evaluations_journal) if isinstance(record, Answer)
    ]
    assert answer.facts["reference"] == "training images"
    assert answer.facts["copies_searched"] is False
    rows = queries.qualities(ingest.store_of(home), [run.run_id])
    assert rows["metric"].tolist() == ["quality_imagenet_kcd"]
    assert "best" not in checkpoints.steps(run.checkpoints)
    return {score.name: score for score in answer.scores}
