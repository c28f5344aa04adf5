"""What is looked at once an epoch: histograms, scores, sample grids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gan_runtime.workloads.contract import Workload
from gan_runtime.workloads.dcgan_mnist import DcganMnist
from gan_runtime.workloads.mlp_gan import MlpGan
from tests.engines.small_engines import (
    BATCH,
    MakeEngine,
    assert_equal,
    random_images,
    trained,
)

pytestmark = pytest.mark.usefixtures("cores")


def test_a_probe_changes_no_variable_and_counts_everything(make: MakeEngine) -> None:
    engine = make(2, DcganMnist())
    trained(engine, 2)
    before = engine.state()
    found = {item.name: item for item in engine.probe().histograms}
    assert_equal(engine.state(), before)
    weights = {
        "generator": 2_330_944 - 2 * 12_736,
        "generator/dense": 100 * 12_544,
        "generator/norm_1": 2 * 12_544,
        "generator/norm_2": 2 * 128,
        "generator/norm_3": 2 * 64,
        "generator/up_1": 5 * 5 * 256 * 128,
        "generator/up_2": 5 * 5 * 128 * 64,
        "generator/up_3": 5 * 5 * 64,
        "discriminator": 212_865,
        "discriminator/conv_1": 5 * 5 * 64 + 64,
        "discriminator/conv_2": 5 * 5 * 64 * 128 + 128,
        "discriminator/logit": 6_272 + 1,
    }
    assert {name: int(item.counts.sum()) for name, item in found.items()} == {
        **{f"{kind}/{name}": size for kind in ("gradient", "weight") for name, size in weights.items()},
        "score/fake": 40,
        "score/real": 40,
    }
    for name, item in found.items():
        assert (len(item.counts), len(item.edges)) == ((40, 41) if name.startswith("score") else (60, 61))
        assert (np.diff(item.edges) > 0).all()


def test_a_probe_spans_exactly_the_weights(make: MakeEngine) -> None:
    engine = make(1)
    trained(engine, 2)
    found = {item.name: item for item in engine.probe().histograms}["weight/generator"]
    weights = np.concatenate([array.ravel() for name, array in engine.state().items() if name.startswith("generator/")])
    assert (found.edges[0], found.edges[-1]) == (weights.min(), weights.max())
    assert np.abs(found.counts - np.histogram(weights, found.edges)[0]).max() <= 2  # rounding at the edges


def test_scores_are_counted_between_zero_and_one(make: MakeEngine) -> None:
    engine = make(2)
    trained(engine, 1)
    scores = [item for item in engine.probe().histograms if item.name.startswith("score/")]
    assert all((item.edges[0], item.edges[-1]) == (0.0, 1.0) for item in scores)


@pytest.mark.parametrize(
    "options", [{"replicas": 2}, {"replicas": 2, "precision": "mixed_float16"}, {"replicas": 4, "xla": "jit"}]
)
def test_probed_gradients_are_those_of_the_whole_batch_unscaled(make: MakeEngine, options: dict[str, Any]) -> None:
    images = random_images(BATCH)  # no more than a batch, so that the probe takes the same ones whatever the replicas
    one, other = make(1, images=images), make(images=images, **options)
    expected, found = ({item.name: item for item in engine.probe().histograms} for engine in (one, other))
    for name in ("gradient/generator", "gradient/discriminator"):
        span = expected[name].edges[[0, -1]]
        assert found[name].edges[[0, -1]] == pytest.approx(span, rel=0.02)


@pytest.mark.parametrize("workload", [MlpGan, DcganMnist])
def test_samples_are_64_images_in_range_whatever_the_replicas(make: MakeEngine, workload: type[Workload]) -> None:
    one = make(1, workload(), batch_size_global=6)
    expected = one.sample()
    assert (expected.shape, expected.dtype) == ((64, 28, 28, 1), np.float32)
    assert -1 <= expected.min() < 0 < expected.max() <= 1
    assert len({image.tobytes() for image in expected}) == 64
    for replicas in (2, 3):
        several = make(replicas, workload(), batch_size_global=6)
        assert np.abs(several.sample() - expected).max() < 1e-5


def test_samples_stay_the_same_latents_while_training_goes_on(make: MakeEngine) -> None:
    engine = make(1)
    first = engine.sample()
    assert np.array_equal(engine.sample(), first)
    trained(engine, 1)
    assert 0 < np.abs(engine.sample() - first).max() < 0.1


def test_samples_of_the_same_weights_are_the_same_whatever_the_seed(make: MakeEngine) -> None:
    """Otherwise the grids of several seeds could not be compared image by image."""
    first, second = make(1, seed=1), make(1, seed=2)
    assert np.abs(second.sample() - first.sample()).max() > 0.01, "other seeds, other weights"
    second.load(first.state())
    assert np.array_equal(second.sample(), first.sample())


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_samples_are_float32_in_every_precision(make: MakeEngine, precision: str) -> None:
    images = make(2, precision=precision).sample()
    assert images.dtype == np.float32
    assert -1 <= images.min() < 0 < images.max() <= 1
