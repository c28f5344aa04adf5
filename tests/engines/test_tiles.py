"""Images in tiles on both engines: one program on several cores matches one core tile by tile, to
the last bit.
"""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.engines.tile_grid import TileGrid
from gan_runtime.engines.tiles import STAGES, pad_image, translator_of, whole_image_grid
from gan_runtime.spec import RunSpec
from tests.support.engines import tile_places, toy_translator
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_engines import new_group
from tests.support.engines.tf_tiles import SIDES, painted_by_tensorflow


def test_engines_agree_on_tiles_and_two_cores_match_one(
    jax: JaxProcess,
    cores: int,  # noqa: ARG001
) -> None:
    """tests/full/engines/test_tiles.py covers more cores, bfloat16, overlaps, and the whole image
    at once.
    """
    ways = [("naive",), ("map_reduce", 2)]
    (theirs, of_two), _ = jax("painted_in_tiles", SIDES, "float32", *ways)
    (ours, also_of_two), stages = painted_by_tensorflow(SIDES, "float32", *ways)
    assert ours.shape == (*SIDES, toy_translator.CHANNELS_OUT)
    np.testing.assert_array_equal(of_two, theirs)
    np.testing.assert_array_equal(also_of_two, ours)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert np.abs(ours).max() > 0.1, "the network says something"
    assert all(
        set(stage) <= set(STAGES) and {"trace", "execute", "merge"} <= set(stage)
        for stage in stages
    )


@pytest.mark.parametrize("engine", ["tensorflow", "jax"])
def test_tile_output_does_not_depend_on_position_or_neighbors(
    engine: str,
    jax: JaxProcess,
    cores: int,  # noqa: ARG001
) -> None:
    if engine == "jax":
        straight, *rest = jax("painted_by_order", "float32")
    else:
        from gan_runtime.engines.tf.tiles import TfTileProgram

        new_group()
        straight, *rest = tile_places.by_order(TfTileProgram, "float32")
    for order, painted in zip(tile_places.ORDERS[1:], rest, strict=True):
        np.testing.assert_array_equal(painted, straight[list(order)], err_msg=str(order))
    assert len({tile.tobytes() for tile in straight}) == len(straight), "no two tiles are alike"


@pytest.mark.parametrize(
    ("sizes", "taps", "strides", "padding"),
    [
        ((3, 5), (4, 4), (2, 2), "same"),
        ((3, 5), (5, 3), (2, 1), "same"),
        ((3, 5), (2, 3), (3, 3), "same"),
        ((3, 5), (5, 2), (2, 3), "valid"),
        ((1, 1), (4, 4), (2, 2), "same"),
        ((1, 1), (5, 1), (2, 3), "same"),
        ((1, 1), (3, 2), (2, 4), "valid"),
    ],
)
def test_transposed_convolution_matches_a_matrix_product(
    sizes: tuple[int, int],
    taps: tuple[int, int],
    strides: tuple[int, int],
    padding: str,
    jax: JaxProcess,
    cores: int,  # noqa: ARG001
) -> None:
    import tensorflow as tf
    from keras import layers

    from gan_runtime.engines.tf import tiles as products

    random = np.random.default_rng(5)
    values = random.standard_normal((2, *sizes, 4)).astype(np.float32)
    layer = layers.Conv2DTranspose(6, taps, strides, padding=padding, use_bias=False)
    expected = layer(values).numpy()
    kernel = layer.kernel.numpy()
    ours = products.transposed(tf.constant(values), tf.constant(kernel), strides, padding)
    theirs = jax("transposed_as_product", values, kernel, strides, padding)
    for name, outcome in (("tensorflow", ours.numpy()), ("jax", theirs)):
        np.testing.assert_allclose(outcome, expected, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("sizes", "taps", "strides", "padding"),
    [
        ((2, 2), (4, 4), (2, 2), "same"),
        ((1, 3), (4, 5), (2, 3), "same"),
        ((4, 3), (3, 2), (4, 3), "same"),
        ((4, 3), (4, 2), (1, 2), "valid"),
    ],
)
def test_convolution_onto_one_pixel_is_one_matrix_product(
    sizes: tuple[int, int],
    taps: tuple[int, int],
    strides: tuple[int, int],
    padding: str,
    jax: JaxProcess,
    cores: int,  # noqa: ARG001
) -> None:
    import tensorflow as tf
    from keras import layers

    from gan_runtime.engines.tf.tiles import TfProductKernels

    random = np.random.default_rng(7)
    values = random.standard_normal((2, *sizes, 4)).astype(np.float32)
    layer = layers.Conv2D(6, taps, strides, padding=padding, use_bias=False)
    expected = layer(values).numpy()
    kernel = layer.kernel.numpy()
    ours = tf.function(
        lambda values: TfProductKernels().convolution(values, kernel, strides, padding)
    )
    graph = ours.get_concrete_function(tf.constant(values))
    theirs, operations = jax("convolution_as_product", values, kernel, strides, padding)
    for name, outcome in (("tensorflow", ours(values).numpy()), ("jax", theirs)):
        np.testing.assert_allclose(outcome, expected, atol=1e-5, err_msg=name)
    assert not {"Conv2D"} & {operation.type for operation in graph.graph.get_operations()}
    assert "conv_general_dilated" not in operations


def test_weight_only_expressions_are_precomputed_unless_they_grow(jax: JaxProcess) -> None:
    random = np.random.default_rng(6)
    weight, bias, values = (
        random.standard_normal(shape).astype(np.float32) for shape in ((3, 5), (3,), (7, 5))
    )
    outcome, stored, turned = jax("split_product", weight, bias, values)
    np.testing.assert_allclose(outcome, values @ (2.0 * weight).T + bias, rtol=1e-5)
    assert stored == [(1, 3), (5, 3)], "the bias is repeated for each row later"
    assert turned


def test_whole_image_is_padded_with_its_last_rows_and_columns() -> None:
    assert whole_image_grid((80, 192), 64) == TileGrid((128, 192), (128, 192))
    small = np.arange(6, dtype=np.float32).reshape(2, 3, 1)
    assert pad_image(small, (3, 4))[..., 0].tolist() == [[0, 1, 2, 2], [3, 4, 5, 5], [3, 4, 5, 5]]
    assert pad_image(small, (2, 3)) is small


def test_translator_uses_averaged_weights_if_samples_do() -> None:
    arrays = {
        "generator/a/kernel": np.zeros(1),
        "average/a/kernel": np.ones(1),
        "discriminator/a": np.ones(2),
    }
    live = translator_of(RunSpec(), toy_translator.ToyTranslation(), {}, arrays)
    averaged = translator_of(
        RunSpec.parse({"ema_decay": 0.9, "samples_from": "ema"}),
        toy_translator.ToyTranslation(),
        {},
        arrays,
    )
    assert {path: array.tolist() for path, array in live.arrays.items()} == {"a/kernel": [0.0]}
    assert {path: array.tolist() for path, array in averaged.arrays.items()} == {"a/kernel": [1.0]}
