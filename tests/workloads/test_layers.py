"""Layers refuse settings that an engine would ignore, and can be saved and loaded."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gan_runtime.workloads import layers
from gan_runtime.workloads.step_context import step_scope

pytestmark = pytest.mark.usefixtures("cores")
OWN_LOSS = "no step adds a layer's own losses; add the term to the loss of its phase."
LAST = "values are (B, …, channels); use data_format='channels_last'."


@pytest.mark.parametrize(
    ("layer", "arguments", "sentence"),
    [
        (
            "Convolution",
            {"zeros": ((1, 1), (0, 2)), "padding": "same"},
            (
                "zeros are ((1, 1), (0, 2)) and padding is 'same', but allowed are 'valid' and"
                " 2 pairs of whole numbers from 0: use either zeros or another padding."
            ),
        ),
        (
            "Convolution3D",
            {"zeros": ((1, 1),)},
            (
                "zeros are ((1, 1),) and padding is 'valid', but allowed are 'valid' and 3 pairs of"
                " whole numbers from 0: use either zeros or another padding."
            ),
        ),
        (
            "Convolution",
            {"data_format": "channels_first"},
            f"data_format is 'channels_first', but allowed is 'channels_last': {LAST}",
        ),
        (
            "TransposedConvolution3D",
            {"data_format": "channels_first"},
            f"data_format is 'channels_first', but allowed is 'channels_last': {LAST}",
        ),
        (
            "Convolution1D",
            {"kernel_regularizer": "l2"},
            f"kernel_regularizer is L2, but allowed is None: {OWN_LOSS}",
        ),
        (
            "BatchNorm",
            {"gamma_regularizer": "l1"},
            f"gamma_regularizer is L1, but allowed is None: {OWN_LOSS}",
        ),
        (
            "BatchNorm",
            {"axis": 1},
            (
                "axis is 1, but allowed is -1: values are (B, …, channels), and each channel has"
                " its own statistics; leave axis out."
            ),
        ),
        (
            "BatchNorm",
            {"renorm": True},
            "renorm is True, but allowed is False: no engine has it; leave it out.",
        ),
        (
            "BatchNorm",
            {"synchronized": True},
            (
                "synchronized is True, but allowed is False: the run's option batch_norm says"
                " whether replicas share their statistics; leave it out."
            ),
        ),
        (
            "ConditionalBatchNorm",
            {"classes": 0},
            "classes is 0, but allowed is 1 or more: use BatchNorm without labels.",
        ),
        (
            "ReplicaDropout",
            {"rate": 0.001},
            "rate is 0.001, but allowed is 0 or 0.002 to 0.998: masks are rounded to 256ths.",
        ),
        (
            "ReplicaDropout",
            {"rate": 1.0},
            "rate is 1.0, but allowed is 0 or 0.002 to 0.998: masks are rounded to 256ths.",
        ),
        (
            "ReplicaDropout",
            {"rate": -0.1},
            "rate is -0.1, but allowed is 0 or 0.002 to 0.998: masks are rounded to 256ths.",
        ),
        (
            "ReplicaDropout",
            {"rate": 0.5, "activity_regularizer": "l2"},
            f"activity_regularizer is L2, but allowed is None: {OWN_LOSS}",
        ),
    ],
)
def test_layer_refuses_unsupported_settings(
    layer: str, arguments: dict[str, Any], sentence: str
) -> None:
    convolution = {"filters": 3, "kernel_size": 3} if "Convolution" in layer else {}
    with pytest.raises(ValueError, match=f"^{re.escape(f'own: {sentence}')}$"):
        getattr(layers, layer)(name="own", **convolution, **arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"factors": (2, 2)},
            "factors are (2, 2), but allowed are whole numbers from 1, one for each of 3 axes.",
        ),
        (
            {"factors": (2, 0, 2)},
            "factors are (2, 0, 2), but allowed are whole numbers from 1, one for each of 3 axes.",
        ),
        (
            {"factors": (2, 2, 2), "strides": 2},
            (
                "strides are (2, 2, 2), padding is 'valid' and zeros are (), but allowed are 1,"
                " 'valid' and (): use UpSampling and a convolution."
            ),
        ),
        (
            {"factors": (2, 2, 2), "padding": "same"},
            (
                "strides are (1, 1, 1), padding is 'same' and zeros are (), but allowed are 1,"
                " 'valid' and (): use UpSampling and a convolution."
            ),
        ),
    ],
)
def test_enlarged_convolution_refuses_unsupported_settings(
    arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'own: {sentence}')}$"):
        layers.EnlargedConvolution3D(3, 3, name="own", **arguments)


def test_labels_must_be_one_number_per_row() -> None:
    layer = layers.ConditionalBatchNorm(3, name="own")
    with pytest.raises(
        ValueError, match=r"own: labels have the shape \(5, 1\), but allowed is \(B,\)"
    ):
        layer([np.zeros((5, 4), np.float32), np.zeros((5, 1), np.int32)])


def test_masks_are_refused_within_a_step() -> None:
    layer, rows = layers.BatchNorm(name="own"), np.ones((5, 4, 2), np.float32)
    layer.build(rows.shape)
    with (
        step_scope(SimpleNamespace(kernels=object())),  # type: ignore[arg-type]
        pytest.raises(ValueError, match="own: engines normalize all values and take no mask"),
    ):
        layer(rows, training=True, mask=rows[..., 0] > 0)


@pytest.mark.parametrize(
    ("layer", "arguments", "shape"),
    [
        (
            "Convolution",
            {"kernel_size": (3, 2), "padding": "same", "activation": "relu"},
            (7, 5, 2),
        ),
        ("Convolution1D", {"kernel_size": 3, "strides": 2}, (7, 2)),
        ("Convolution3D", {"kernel_size": 2, "dilation_rate": 2}, (7, 5, 4, 2)),
        ("Convolution3D", {"kernel_size": 2, "zeros": ((1, 2), (0, 0), (2, 0))}, (7, 5, 4, 2)),
        ("TransposedConvolution", {"kernel_size": 4, "strides": (1, 2)}, (7, 5, 2)),
        ("TransposedConvolution1D", {"kernel_size": 4, "strides": 2, "output_padding": 1}, (7, 2)),
        ("TransposedConvolution3D", {"kernel_size": 2, "padding": "same"}, (3, 5, 4, 2)),
        ("EnlargedConvolution3D", {"kernel_size": (4, 3, 2), "factors": (3, 1, 2)}, (3, 5, 4, 2)),
    ],
)
def test_a_convolution_can_be_saved_and_loaded(
    layer: str, arguments: dict[str, Any], shape: tuple[int, ...]
) -> None:
    import keras

    network = keras.Sequential([keras.Input(shape), getattr(layers, layer)(filters=3, **arguments)])
    again = keras.models.model_from_json(network.to_json())
    assert again.output_shape == network.output_shape
    again.set_weights(network.get_weights())
    values = np.random.default_rng(1).standard_normal((2, *shape)).astype(np.float32)
    assert np.array_equal(np.asarray(again(values)), np.asarray(network(values)))


def test_a_loaded_conditional_batch_norm_scales_each_row_by_its_class() -> None:
    import keras

    values, labels = keras.Input((4, 2)), keras.Input((), dtype="int32")
    norm = layers.ConditionalBatchNorm(3, momentum=0.9, epsilon=0.0, name="norm")
    network = keras.Model([values, labels], norm([values, labels]))
    again = keras.models.model_from_json(network.to_json())
    scales, offsets = np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([[0, 0], [0, 1], [2, 0]])
    again.set_weights([scales, offsets, np.float32([0, 0]), np.float32([1, 1])])
    outcome = np.asarray(again([np.ones((2, 4, 2), np.float32), np.int32([2, 1])]))
    assert outcome.tolist() == [[[7, 6]] * 4, [[3, 5]] * 4]
    assert [variable.path for variable in norm.variables] == [
        "norm/gamma",
        "norm/beta",
        "norm/norm/moving_mean",
        "norm/norm/moving_variance",
    ]
    assert (again.layers[-1].norm.momentum, again.layers[-1].norm.epsilon) == (0.9, 0.0)
