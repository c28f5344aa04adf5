"""Pix2Pix: the authors' layers and constants, and accepted and refused data sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gan_runtime.base.errors import DatasetError, SpecError
from gan_runtime.base.fields import SOURCE, TARGET, Fields, pair_fields
from gan_runtime.base.fields import pictures as picture_field
from gan_runtime.domains.flows import workload
from gan_runtime.domains.flows.entry import ENTRY, halvings, patch_pixels, plan
from gan_runtime.domains.flows.fields import LATER, fitted, flow_fields, reads
from gan_runtime.domains.flows.options import Pix2pixOptions
from gan_runtime.spec import RunSpec

pytestmark = pytest.mark.usefixtures("cores", "plain_float32")
WORKLOAD = workload.WORKLOAD
SMALL = Pix2pixOptions(tile=16)
FLOW = flow_fields(16, 20)


# ---- the authors' networks -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def full() -> dict[str, Any]:
    """The full networks at 256 pixels, RGB to RGB."""
    import keras

    keras.config.set_dtype_policy("float32")
    return WORKLOAD.networks(Pix2pixOptions(size="full", tile=256), pair_fields(256, 256))


def weights(network: Any) -> list[tuple[str, int]]:
    return [(layer.name, layer.count_params()) for layer in network.layers if layer.count_params()]


def test_the_full_generator_matches_the_authors_layer_by_layer(full: dict[str, Any]) -> None:
    assert weights(full["generator"]) == [
        ("down_0", 3_136),
        *(("down_1", 131_072), ("norm_down_1", 512)),
        *(("down_2", 524_288), ("norm_down_2", 1_024)),
        *(("down_3", 2_097_152), ("norm_down_3", 2_048)),
        *(("down_4", 4_194_304), ("norm_down_4", 2_048)),
        *(("down_5", 4_194_304), ("norm_down_5", 2_048)),
        *(("down_6", 4_194_304), ("norm_down_6", 2_048)),
        ("down_7", 4_194_816),
        *(("up_7", 4_194_304), ("norm_up_7", 2_048)),
        *(("up_6", 8_388_608), ("norm_up_6", 2_048)),
        *(("up_5", 8_388_608), ("norm_up_5", 2_048)),
        *(("up_4", 8_388_608), ("norm_up_4", 2_048)),
        *(("up_3", 4_194_304), ("norm_up_3", 1_024)),
        *(("up_2", 1_048_576), ("norm_up_2", 512)),
        *(("up_1", 262_144), ("norm_up_1", 256)),
        ("up_0", 6_147),
    ]
    assert full["generator"].count_params() == 54_424_387


def test_the_full_discriminator_matches_the_authors_layer_by_layer(full: dict[str, Any]) -> None:
    assert weights(full["discriminator"]) == [
        ("conv_0", 6_208),
        *(("conv_1", 131_072), ("norm_1", 512)),
        *(("conv_2", 524_288), ("norm_2", 1_024)),
        *(("conv_3", 2_097_152), ("norm_3", 2_048)),
        ("logits", 8_193),
    ]
    assert full["discriminator"].count_params() == 2_770_497
    strides = [full["discriminator"].get_layer(f"conv_{place}").strides[0] for place in range(4)]
    assert strides == [2, 2, 2, 1]
    assert full["discriminator"].get_layer("logits").compute_output_shape((1, 31, 31, 512)) == (
        1,
        30,
        30,
        1,
    )


def test_slopes_dropout_and_initial_weights_match_the_authors(full: dict[str, Any]) -> None:
    layers = {
        f"{name}/{layer.name}": layer for name, network in full.items() for layer in network.layers
    }
    slopes = {layer.negative_slope for name, layer in layers.items() if "leaky" in name}
    dropped = {name: layer.rate for name, layer in layers.items() if "dropout" in name}
    norms = [layer for name, layer in layers.items() if "/norm" in name]
    convolutions = [layer for name, layer in layers.items() if hasattr(layer, "kernel")]
    assert slopes == {0.2}
    assert dropped == {f"generator/dropout_{block}": 0.5 for block in (1, 2, 3)}
    assert {(norm.momentum, norm.epsilon) for norm in norms} == {(0.9, 1e-5)}
    assert {layer.kernel.shape[:2] for layer in convolutions} == {(4, 4)}
    gamma = np.concatenate([np.asarray(norm.gamma) for norm in norms])
    assert (gamma.mean(), gamma.std()) == pytest.approx((1.0, 0.02), rel=0.05)
    assert {round(float(np.std(layer.kernel)), 3) for layer in convolutions} == {0.02}


def test_a_logit_has_a_70_pixel_receptive_field_on_large_tiles(full: dict[str, Any]) -> None:
    assert [patch_pixels(count) for count in (1, 2, 3)] == [16, 34, 70]
    assert [halvings(tile) for tile in (16, 32, 64, 128, 256)] == [1, 1, 2, 3, 3]
    discriminator, (row, column) = full["discriminator"], (15, 12)
    pair = np.random.default_rng(1).uniform(-1, 1, (1, 256, 256, 6)).astype(np.float32)
    far = pair.copy()
    top, first_column = row * 8 - 23, column * 8 - 23  # of this logit's 70 pixels
    far[:, top : top + 70, first_column : first_column + 70] = (
        pair[:, top : top + 70, first_column : first_column + 70] * 0.0
    )
    changed = pair.copy()
    (
        changed[:, :top],
        changed[:, top + 70 :],
        changed[:, :, :first_column],
        changed[:, :, first_column + 70 :],
    ) = (
        0.0,
        0.0,
        0.0,
        0.0,
    )
    logits = [
        np.asarray(discriminator([each[..., :3], each[..., 3:]], training=False))[0, row, column, 0]
        for each in (pair, changed, far)
    ]
    assert logits[1] == pytest.approx(logits[0], abs=1e-6)
    assert abs(logits[2] - logits[0]) > 1e-4


def test_the_defaults_match_the_authors_constants() -> None:
    spec = RunSpec.parse({"workload": "pix2pix"})
    options = spec.of_workload
    assert (spec.optimizer, spec.adam_beta_1) == ("adam", 0.5)
    assert (options.learning_rate_generator, options.learning_rate_discriminator) == (2e-4, 2e-4)
    assert (options.weight_l1, options.weight_discriminator, options.dropout) == (100, 0.5, 0.5)
    assert (options.updates, options.unrolled, options.input_noise, options.flip) == (
        "together",
        1,
        0,
        "none",
    )


SIZES: dict[str, tuple[dict[str, Any], Fields]] = {
    "a flow": ({"tile": 64}, flow_fields(80, 192)),
    "a small tile": ({"tile": 16}, FLOW),
    "drawings in grey to photos": ({"tile": 128}, pair_fields(128, 128, 1, 3)),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_catalog_estimates_weights_and_step_activations(name: str) -> None:
    weights, fields = SIZES[name]
    options = Pix2pixOptions(**weights)
    networks = WORKLOAD.networks(options, fields)
    size = ENTRY.size(options, fields)
    assert sum(network.count_params() for network in networks.values()) == size.parameters
    activations = sum(
        np.prod(np.shape(output))
        for network, times in ((networks["generator"], 1), (networks["discriminator"], 2))
        for output in outputs_of_layers(network, options.tile, times)
    )
    assert 0.5 < size.activations_per_row / activations < 2


def outputs_of_layers(network: Any, tile: int, times: int) -> list[np.ndarray]:
    """The outputs of every layer for one tile, repeated `times` times."""
    import keras

    tapped = keras.Model(network.inputs, [layer.output for layer in network.layers])
    tiles = [
        np.zeros((1, tile, tile, network_input.shape[-1]), np.float32)
        for network_input in network.inputs
    ]
    return list(tapped(tiles, training=False)) * times


def test_the_catalog_counts_the_full_size_weights(full: dict[str, Any]) -> None:
    counted = sum(network.count_params() for network in full.values())
    options = Pix2pixOptions(size="full", tile=256)
    assert ENTRY.size(options, pair_fields(256, 256)).parameters == counted == 57_194_884
    assert plan(options).encoder == (64, 128, 256, 512, 512, 512, 512, 512)


# ---- data sets -----------------------------------------------------------------------------------


def test_a_flow_may_only_be_flipped_vertically() -> None:
    assert set(reads(Pix2pixOptions(tile=16, flip="vertical"), FLOW)) == {SOURCE, TARGET}
    with pytest.raises(
        DatasetError, match="a direction from left to right, which flip=horizontal inverts"
    ):
        reads(Pix2pixOptions(tile=16, flip="horizontal"), FLOW)
    assert set(reads(Pix2pixOptions(tile=16, flip="horizontal"), pair_fields(16, 16))) == {
        SOURCE,
        TARGET,
    }


@pytest.mark.parametrize(
    ("options", "offered", "sentence"),
    [
        (
            {},
            FLOW,
            (
                "its source are 16 × 20 × 4, but an image of at least 64 × 64 is needed: use data"
                " set karman"
            ),
        ),
        ({}, {"images": picture_field(28, 28, 1)}, "it has no source, only images"),
        (
            {"tile": 16},
            {**FLOW, TARGET: pair_fields(16, 16)[TARGET]},
            "its target are 16 × 16 × 3, but an image of 16 × 20, as its source is, is needed",
        ),
        ({"tile": 16, "unrolled": 2}, FLOW, "it has no later, only source and target"),
        (
            {"tile": 16, "unrolled": 2},
            pair_fields(16, 16, 1, 3),
            (
                "its target has 3 channels and its source 1, so outputs cannot be"
                " inputs: use unrolled=1"
            ),
        ),
        (
            {"tile": 16, "output": "change"},
            pair_fields(16, 16, 1, 3),
            (
                "its target has 3 channels and its source 1, so output=change is not"
                " possible: use output=image"
            ),
        ),
        (
            {"tile": 16, "unrolled": 4},
            flow_fields(16, 20, 2),
            (
                "its later are 2 × 16 × 20 × 3, but 3 × 16 × 20 × 3, 3 or more frames after the"
                " target, is needed"
            ),
        ),
    ],
)
def test_data_that_does_not_fit_is_refused_with_the_reason(
    options: dict[str, Any], offered: Fields, sentence: str
) -> None:
    with pytest.raises(DatasetError, match=sentence):
        reads(Pix2pixOptions(**options), offered)


def test_later_frames_are_read_only_for_unrolled_steps() -> None:
    offered = flow_fields(16, 20, 2)
    assert set(reads(SMALL, offered)) == {SOURCE, TARGET}
    assert set(reads(Pix2pixOptions(tile=16, unrolled=3), offered)) == {SOURCE, TARGET, LATER}


@pytest.mark.parametrize(
    ("height", "width", "tile"),
    [(40, 96, 32), (200, 150, 128), (16, 16, 16), (8, 8, 16), (600, 1_024, 512)],
)
def test_the_largest_tile_that_fits_the_images_is_offered(
    height: int, width: int, tile: int
) -> None:
    assert fitted(pair_fields(height, width)) == {"tile": tile}
    assert fitted({"images": picture_field(28, 28, 1)}) == {}


def test_a_tile_that_is_not_a_power_of_two_is_refused() -> None:
    with pytest.raises(SpecError, match="tile is 48, but allowed is a power of two: use 32 or 64"):
        RunSpec.parse({"workload": "pix2pix", "tile": 48})
