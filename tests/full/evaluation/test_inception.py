"""The Inception network of FID with random weights: its features are those of torch-fidelity."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gan_runtime.base.errors import JobError
from gan_runtime.evaluation import image_features
from tests.full.evaluation.inception_reference import FIGURES, SIDES, images, random_tensors

if TYPE_CHECKING:
    import keras

CLOSE = 1e-4


@pytest.fixture(scope="module")
def model() -> keras.Model:
    """With the weights that the reference has had."""
    from gan_runtime.evaluation import inception

    network = inception.network()
    inception.load(network, random_tensors(shapes(network)))
    return network


def shapes(network: keras.Model) -> dict[str, tuple[int, ...]]:
    """By PyTorch's names."""
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
def test_features_equal_those_of_the_reference_implementation(
    model: keras.Model, height: int, width: int
) -> None:
    features = features_of(model, height, width)
    assert np.abs(features - reference(height, width)).max() < CLOSE
    assert np.abs(features).max() > 1.0


def test_features_are_the_same_with_jax(tmp_path: Path) -> None:
    """In a child, because Keras has one backend in a process."""
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


def test_a_weight_that_does_not_fit_is_named(model: keras.Model) -> None:
    from gan_runtime.evaluation import inception

    tensors: dict[str, Any] = random_tensors(shapes(model))
    del tensors["Mixed_6a.branch3x3.bn.bias"]
    with pytest.raises(JobError, match=r"weights of Mixed_6a\.branch3x3\.bn do not fit Inception"):
        inception.load(model, tensors)


def test_a_file_with_other_weights_is_refused(tmp_path: Path) -> None:
    path = tmp_path / image_features.INCEPTION_FILES[0]
    path.write_bytes(b"other weights")
    assert image_features.inception_file(tmp_path) == path
    with pytest.raises(JobError, match=r"has the SHA-256 .*, but the weights of the FID paper"):
        image_features.inception_network(path, lambda *_: None)
