"""Tiled images on the TensorFlow engine."""

from __future__ import annotations

from typing import Any

from gan_runtime.engines.tiles import TiledTranslator
from tests.support.engines import toy_translator
from tests.support.engines.small_engines import new_group

SIDES = (20, 40)  # 6 tiles of 16: rows 0 and 4, columns 0, 16 and 24


def painted_by_tensorflow(sides: tuple[int, int], precision: str, *ways: tuple[Any, ...]) -> Any:
    """Like `jax_tiles.painted_in_tiles`."""
    import keras

    from gan_runtime.engines.tf.tiles import TfTileProgram

    source, translator = toy_translator.picture(*sides), toy_translator.translator(precision)
    images, stages = [], []
    try:
        for way, *division in ways:
            new_group()
            painter = TiledTranslator(TfTileProgram, translator, way, source.shape, *division)
            images.append(painter(source))
            stages.append([time.stage for time in painter.stopwatch.times() if time.seconds > 0.0])
    finally:
        keras.config.set_dtype_policy("float32")
    return images, stages
