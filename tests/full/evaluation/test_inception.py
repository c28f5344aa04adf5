"""FID's Inception network with random weights: its features match those of torch-fidelity."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gan_runtime.base.errors import JobError
from gan_runtime.evaluation import (
    image_features,
    quality,
    quality_measurement,
    sample_scores,
)
from gan_runtime.evaluation.catalog import Subject
from gan_runtime.records.answer import Answer
from gan_runtime.records.home import Home
from tests.full.evaluation.inception_reference import FIGURES, SIDES, images, random_tensors
from tests.support.commands_in_processes import starting

if TYPE_CHECKING:
    import keras

CLOSE = 1e-4


@pytest.fixture(scope="module")
def model() -> keras.Model:
    """The network with the weights of the reference."""
    from gan_runtime.evaluation import inception

    network = inception.network()
    inception.load(network, random_tensors(shapes(network)))
    return network


def shapes(network: keras.Model) -> dict[str, tuple[int, ...]]:
    """Returns weight shapes by PyTorch name."""
    names = {"kernel": "weight", "gamma": "weight", "beta": "bias"}
    names |= {"moving_mean": "running_mean", "moving_variance": "running_var"}
    return {
        f"{layer.name}.{names[weight.name]}": in_torch(tuple(weight.shape))
        for layer in network.layers
        for weight in layer.weights
    }


def in_torch(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[3], shape[2], shape[0], shape[1]) if len(shape) == 4 else shape


def features_of(model: keras.Model, height: int, width: int) -> Any:
    network = image_features.FeatureNetwork(
        "inception", "", model, image_features.inception_input, lambda *_: None
    )
    return network.read(images(height, width) / 127.5 - 1.0)[0]


def reference(height: int, width: int) -> Any:
    with np.load(FIGURES) as stored:
        return stored[f"{height}x{width}"]


@pytest.mark.parametrize(("height", "width"), SIDES)
def test_features_match_the_reference_implementation(
    model: keras.Model, height: int, width: int
) -> None:
    features = features_of(model, height, width)
    assert np.abs(features - reference(height, width)).max() < CLOSE
    assert np.abs(features).max() > 1.0


def test_features_on_jax_match_the_reference(tmp_path: Path) -> None:
    """In a subprocess, because Keras has one backend per process."""
    path = tmp_path / "features.npy"
    code = (
        "import sys, numpy as np; from tests.full.evaluation import test_inception as own;"
        " from gan_runtime.evaluation import inception; network = inception.network();"
        " inception.load(network, own.random_tensors(own.shapes(network)));"
        " np.save(sys.argv[1], own.features_of(network, *own.SIDES[0]))"
    )
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    words = [sys.executable, "-c", code, str(path)]
    child = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    assert np.abs(np.load(path) - reference(*SIDES[0])).max() < CLOSE


def test_ill_fitting_weights_are_refused_by_layer_name(model: keras.Model) -> None:
    from gan_runtime.evaluation import inception

    tensors: dict[str, Any] = random_tensors(shapes(model))
    del tensors["Mixed_6a.branch3x3.bn.bias"]
    with pytest.raises(JobError, match=r"weights of Mixed_6a\.branch3x3\.bn do not fit Inception"):
        inception.load(model, tensors)


def test_file_with_other_weights_is_refused(tmp_path: Path) -> None:
    path = tmp_path / image_features.INCEPTION_FILES[0]
    path.write_bytes(b"other weights")
    assert image_features.inception_file(tmp_path) == path
    with pytest.raises(JobError, match=r"has the SHA-256 .*, but the weights of the FID paper"):
        image_features.inception_network(path, lambda *_: None)


def test_run_is_scored_with_inception_features(tmp_path: Path) -> None:
    """With random weights, in a subprocess, because TensorFlow sets its devices once."""
    options = ("workload=mlp_gan", "dataset=digits", "epochs=1", "quality_every=0")
    with starting(tmp_path) as start:
        training = start("train", *(part for option in options for part in ("--set", option)))
        _, notes = training.communicate(timeout=200)
        assert training.returncode == 0, notes
    code = (
        "import sys; from tests.full.evaluation import test_inception as own;"
        " own.measure_with_random_weights(sys.argv[1])"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    answer = Answer.model_validate_json(child.stdout.splitlines()[-1])
    scores = {score.name: score for score in answer.scores}
    assert set(scores) == {*sample_scores.NAMES["inception"].values(), "fid"}
    assert math.isnan(scores["fid"].value), "24 images are too few"
    assert 0.0 < scores["fid"].floor < scores["fid"].ceiling
    assert scores["kid"].floor < scores["kid"].value
    assert scores["inception_coverage"].value < scores["inception_coverage"].floor
    assert (answer.key, answer.facts["weights"]) == ("epoch 1 inception", "0" * 16)


def measure_with_random_weights(home_path: str) -> None:
    """Prints the answer about run-0001."""
    home = Home(Path(home_path))
    path = quality.folder_of(home) / image_features.INCEPTION_FILES[0]
    path.parent.mkdir(exist_ok=True)
    path.touch()

    def network(file: Path, progress: Any) -> image_features.FeatureNetwork:
        from gan_runtime.evaluation import inception

        assert file == path
        model = inception.network()
        inception.load(model, random_tensors(shapes(model)))
        resize = image_features.inception_input
        return image_features.FeatureNetwork("inception", "0" * 16, model, resize, progress)

    image_features.inception_network = network
    # Fewer than a user may choose: 400 images take minutes on a core.
    options = quality.QualityOptions(features="inception").model_copy(update={"samples": 24})
    run, answers = home.run_dir("run-0001"), []
    quality_measurement.measure(
        Subject(home, run, options, "key", home.path, lambda *_: None, answers.append)
    )
    print(answers[0].model_dump_json())
