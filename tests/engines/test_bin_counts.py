"""Counting and storage of histograms: exact counts, equal bins, and layers by name."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from gan_runtime.engines.probes import probe_result, variables_by_layer
from gan_runtime.engines.tf import inference as tf_inference
from tests.support.engines import tiny_gan

pytestmark = pytest.mark.usefixtures("cores")


def test_outliers_are_counted_in_the_outermost_bins() -> None:
    values = tf.constant([[0.0, 0.24], [0.26, 0.5], [0.99, 1.0], [-3.0, 7.0]])
    assert tf_inference.bin_counts(values, 0.0, 1.0, 4).numpy().tolist() == [3, 1, 1, 3]
    assert tf_inference.bin_counts(values, -4.0, 12.0, 4).numpy().tolist() == [1, 6, 1, 0]


def test_range_counts_span_lowest_to_highest_value() -> None:
    counts, low_high = tf_inference.range_counts(
        [tf.constant([[1.0, 5.0]]), tf.constant([2.0, 2.9, 3.1])], 4
    )
    assert (counts.numpy().tolist(), low_high.numpy().tolist()) == ([1, 2, 1, 1], [1.0, 5.0])


@pytest.mark.parametrize("value", [0.0, -3.0, 1e6])
def test_equal_values_are_counted_in_one_bin_of_nonzero_width(value: float) -> None:
    counts, (low, high) = tf_inference.range_counts([tf.fill([7], value)], 4)
    assert counts.numpy().tolist() == [7, 0, 0, 0]
    assert 0.0 < float(high) - float(low) <= max(1e-12, 1.1e-5 * abs(value))


def test_stored_counts_get_equally_spaced_edges() -> None:
    counted = np.array([1, 0, 2, 4], np.int32), np.array([-1.0, 3.0], np.float32)
    [histogram] = probe_result({"weight/generator": counted}, {}, loss_scaled=False).histograms
    assert (histogram.name, histogram.edges.tolist(), histogram.counts.tolist()) == (
        "weight/generator",
        [-1, 0, 1, 2, 3],
        [1, 0, 2, 4],
    )
    assert histogram.counts.dtype == np.int64


def test_variables_are_grouped_by_network_and_layer() -> None:
    networks = tiny_gan.networks()
    assert variables_by_layer("generator", networks["generator"]) == {
        "generator": [0, 1, 2, 3],
        "generator/dense": [0],
        "generator/norm": [1, 2],
        "generator/up": [3],
    }
    assert variables_by_layer("discriminator", networks["discriminator"]) == {
        "discriminator": [0, 1, 2, 3],
        "discriminator/conv": [0, 1],
        "discriminator/logit": [2, 3],
    }
