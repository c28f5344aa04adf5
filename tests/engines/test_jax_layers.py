"""Layers on JAX match Keras' own: series, images and volumes, values and gradients, float32."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.engines.jax_process import JaxProcess

LARGEST = 1e-5  # relative to the largest number


def assert_same(values: dict[str, dict[str, float]]) -> None:
    assert {
        case: apart for case, apart in values.items() if not max(apart.values()) <= LARGEST
    } == {}


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("kind", ["convolution", "transposed"])
def test_convolutions_match_keras(kind: str, axes: int, jax: JaxProcess) -> None:
    assert_same(jax("layer_differences", kind, axes))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_enlarged_convolution_matches_keras_upsampling(axes: int, jax: JaxProcess) -> None:
    assert_same(jax("layer_differences", "enlarged", axes))


def test_options_without_a_kernel_match_keras(jax: JaxProcess) -> None:
    assert_same(jax("layer_differences", "other options", 0))


@pytest.mark.parametrize("axes", [0, 1, 2, 3])
def test_batch_norm_matches_keras_in_any_dimension(axes: int, jax: JaxProcess) -> None:
    assert_same(jax("layer_differences", "norms", axes))


@pytest.mark.parametrize("shape", [(), (3, 2)])
def test_conditional_batch_norm_on_two_devices_is_whole_batch(
    shape: tuple[int, ...], jax: JaxProcess
) -> None:
    values, upstream = (
        np.random.default_rng(1).standard_normal((2, 2, 3, *shape, 4)).astype(np.float32)
    )
    labels = np.int32([[0, 2, 2], [1, 0, 2]])
    two, single = jax("conditional_norm_on_two_devices", values, labels, upstream, 3)
    for result, expected in zip(two, single, strict=True):
        assert np.abs(result.reshape(expected.shape) - expected).max() <= LARGEST * max(
            1.0, np.abs(expected).max()
        )
