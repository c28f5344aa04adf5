"""Pictures in tiles, by the JAX engine. Only the process with JAX imports this."""

from __future__ import annotations

from typing import Any

import numpy as np

from gan_runtime.engines.jax.tiles import TileProgram
from gan_runtime.engines.tiles import Painter
from tests.engines import toy_translator


def painted_in_tiles(
    sides: tuple[int, int], precision: str, *ways: tuple[Any, ...]
) -> tuple[list[np.ndarray], list[list[str]]]:
    """The picture of each way (`Painter`'s arguments behind the source), and the stages that took time."""
    source, translator = toy_translator.picture(*sides), toy_translator.translator(precision)
    pictures, stages = [], []
    for way, *division in ways:
        painter = Painter(TileProgram, translator, way, source.shape, *division)
        pictures.append(painter(source))
        stages.append([time.stage for time in painter.stopwatch.times() if time.seconds > 0.0])
    return pictures, stages
