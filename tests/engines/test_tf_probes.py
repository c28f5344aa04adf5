"""The probe after an epoch: histograms, scores, sample grids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from gan_runtime.engines.tf.inputs import TfStepNoise
from gan_runtime.workloads import dcgan_mnist, mlp_gan
from gan_runtime.workloads.contract import Workload
from tests.support.engines.small_engines import (
    BATCH,
    MakeEngine,
    assert_counts_alike,
    assert_equal,
    random_images,
    trained,
)
from tests.support.engines.tiny_gan import TINY_GAN

pytestmark = pytest.mark.usefixtures("cores")


def test_probe_changes_no_variable_and_counts_all_values(make: MakeEngine) -> None:
    engine = make(2, TINY_GAN)
    trained(engine, 2)
    before = engine.state()
    by_name = {histogram.name: histogram for histogram in engine.probe().histograms}
    assert_equal(engine.state(), before)
    weights = {
        "generator": 6 * 128 + 2 * 128 + 5 * 5 * 8,
        "generator/dense": 6 * 128,
        "generator/norm": 2 * 128,
        "generator/up": 5 * 5 * 8,
        "discriminator": 5 * 5 * 8 + 8 + 128 + 1,
        "discriminator/conv": 5 * 5 * 8 + 8,
        "discriminator/logit": 128 + 1,
    }
    assert {name: int(histogram.counts.sum()) for name, histogram in by_name.items()} == {
        **{
            f"{kind}/{name}": size
            for kind in ("gradient", "weight")
            for name, size in weights.items()
        },
        "score/fake": 40,
        "score/real": 40,
    }
    for name, histogram in by_name.items():
        assert (len(histogram.counts), len(histogram.edges)) == (
            (40, 41) if name.startswith("score") else (60, 61)
        )
        assert (np.diff(histogram.edges) > 0).all()


def test_weight_histogram_spans_exactly_the_weights(make: MakeEngine) -> None:
    engine = make(1)
    trained(engine, 2)
    histogram = {entry.name: entry for entry in engine.probe().histograms}["weight/generator"]
    weights = np.concatenate(
        [array.ravel() for name, array in engine.state().items() if name.startswith("generator/")]
    )
    assert (histogram.edges[0], histogram.edges[-1]) == (weights.min(), weights.max())
    assert (
        np.abs(histogram.counts - np.histogram(weights, histogram.edges)[0]).max() <= 2
    )  # rounding at the edges


@pytest.mark.parametrize("certainty", [2.0, -6.0])
def test_scores_are_counted_between_0_and_1(make: MakeEngine, certainty: float) -> None:
    """`certainty` is added to D's logits, which shifts all its scores to one side, and
    with -6 into the first bin.
    """
    engine = make(2)
    state = engine.state()
    bias = "discriminator/discriminator/logit/bias"
    engine.load({**state, bias: state[bias] + np.float32(certainty)})
    probe = engine.probe()
    for name in ("real", "fake"):
        [histogram] = [entry for entry in probe.histograms if entry.name == f"score/{name}"]
        assert histogram.edges == pytest.approx(np.linspace(0.0, 1.0, 41))
        center = (histogram.edges[:-1] + histogram.edges[1:]) / 2
        mean = (histogram.counts * center).sum() / histogram.counts.sum()
        assert mean == pytest.approx(probe.scores[f"probe_score_{name}"], abs=0.5 / 40)
        assert mean > 0.8 if certainty > 0 else mean < 0.2
    right = {True: "real", False: "fake"}[certainty > 0]
    assert probe.scores[f"d_accuracy_{right}"] == 1.0
    assert probe.scores[f"d_accuracy_{'fake' if right == 'real' else 'real'}"] == 0.0


@pytest.mark.parametrize("replicas", [1, 2])
def test_image_spread_is_the_mean_pixel_variance(make: MakeEngine, replicas: int) -> None:
    engine = make(replicas)
    scores = engine.probe().scores
    latents = TfStepNoise(1, tf.constant(0), tf.constant(0), 1).normal(40, mlp_gan.LATENT_SIZE)
    generated = np.asarray(engine.networks["generator"](latents))
    assert scores["spread_real"] == pytest.approx(
        (random_images(40) / 127.5 - 1.0).var(axis=0).mean(), rel=1e-4
    )
    assert scores["spread_fake"] == pytest.approx(generated.var(axis=0).mean(), rel=1e-4)


@pytest.mark.parametrize(
    "options",
    [{"replicas": 2}, {"replicas": 2, "precision": "mixed_float16"}, {"replicas": 4, "xla": "jit"}],
)
def test_probed_gradients_are_unscaled_and_of_the_whole_batch(
    make: MakeEngine, options: dict[str, Any]
) -> None:
    images = random_images(
        BATCH
    )  # one batch, so that the probe uses the same images for any number of replicas
    single, other = make(1, images=images), make(images=images, **options)
    expected, result = (engine.probe() for engine in (single, other))
    half = options.get("precision") == "mixed_float16"
    for name in ("gradient_norm_generator", "gradient_norm_discriminator"):
        assert result.scores[name] == pytest.approx(
            expected.scores[name], rel=0.01 if half else 1e-4
        )
    for mine, other in zip(result.histograms, expected.histograms, strict=True):
        if mine.name.startswith("gradient/"):
            assert_counts_alike(mine, other, 0.03 if half else 1e-3)


@pytest.mark.parametrize("workload", [mlp_gan.WORKLOAD, dcgan_mnist.WORKLOAD], ids=["mlp", "dcgan"])
def test_samples_are_64_images_in_range_on_any_replica_count(
    make: MakeEngine, workload: Workload
) -> None:
    single = make(1, workload, batch_size_global=6)
    expected = single.sample()["images"]
    assert (expected.shape, expected.dtype) == ((64, 28, 28, 1), np.float32)
    assert -1 <= expected.min() < 0 < expected.max() <= 1
    assert len({image.tobytes() for image in expected}) == 64
    for replicas in (2, 3):
        several = make(replicas, workload, batch_size_global=6)
        assert np.abs(several.sample()["images"] - expected).max() < 1e-5


def test_samples_keep_their_latents_during_training(make: MakeEngine) -> None:
    engine = make(1)
    first = engine.sample()["images"]
    assert np.array_equal(engine.sample()["images"], first)
    trained(engine, 1)
    assert 0 < np.abs(engine.sample()["images"] - first).max() < 0.1


def test_samples_of_equal_weights_do_not_depend_on_the_seed(make: MakeEngine) -> None:
    """Otherwise sample grids of several seeds could not be compared image by image."""
    first, second = make(1, seed=1), make(1, seed=2)
    images = first.sample()["images"]
    assert np.abs(second.sample()["images"] - images).max() > 0.01, "other seeds, other weights"
    second.load(first.state())
    assert np.array_equal(second.sample()["images"], images)


@pytest.mark.parametrize("replicas", [1, 3])
def test_any_row_count_is_generated_in_input_order(make: MakeEngine, replicas: int) -> None:
    engine = make(replicas, batch_size_global=6)
    latents = (
        np.random.default_rng(5).standard_normal((150, mlp_gan.LATENT_SIZE)).astype(np.float32)
    )
    generated = engine.generate({"latents": latents})["images"]
    assert generated.shape == (150, 28, 28, 1)
    expected = np.asarray(engine.networks["generator"](latents))
    assert np.abs(generated - expected).max() < 1e-5
    assert engine.generate({"latents": latents[:1]})["images"].shape == (1, 28, 28, 1)


def test_unknown_input_names_are_refused_with_the_needed_ones(
    make: MakeEngine,
) -> None:
    with pytest.raises(ValueError, match="the inputs are frames: use latents"):
        make(1).generate({"frames": np.zeros((2, 3))})


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_samples_are_float32_in_every_precision(make: MakeEngine, precision: str) -> None:
    images = make(2, precision=precision).sample()["images"]
    assert images.dtype == np.float32
    assert -1 <= images.min() < 0 < images.max() <= 1
