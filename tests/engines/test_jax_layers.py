"""The layers compute on JAX what those of Keras compute: series, images and volumes, values
and gradients, float32.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.engines.jax_process import JaxProcess

LARGEST = 1e-5  # of the largest number


def assert_same(values: dict[str, dict[str, float]]) -> None:
    assert {
        case: apart for case, apart in values.items() if not max(apart.values()) <= LARGEST
    } == {}


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("kind", ["convolution", "transposed"])
def test_a_convolution_is_that_of_keras_whatever_its_sizes(
    kind: str, axes: int, jax: JaxProcess
) -> None:
    assert_same(jax("layer_differences", kind, axes))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_convolution_of_enlarged_values_is_that_of_keras_after_upsampling(
    axes: int, jax: JaxProcess
) -> None:
    assert_same(jax("layer_differences", "enlarged", axes))


def test_what_no_kernel_covers_is_computed_as_keras_does_it(jax: JaxProcess) -> None:
    assert_same(jax("layer_differences", "other options", 0))


@pytest.mark.parametrize("axes", [0, 1, 2, 3])
def test_a_batch_norm_is_that_of_keras_for_rows_series_images_and_volumes(
    axes: int, jax: JaxProcess
) -> None:
    assert_same(jax("layer_differences", "norms", axes))


@pytest.mark.parametrize("shape", [(), (3, 2)])
def test_a_conditional_batch_norm_on_two_devices_is_that_of_the_whole_batch(
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
