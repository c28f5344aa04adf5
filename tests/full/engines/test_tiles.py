"""Images in tiles on both engines: any number of cores, bfloat16, overlaps, and the whole
image at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gan_runtime.engines.tiles import STAGES
from tests.support.engines import toy_translator
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.tf_tiles import SIDES, painted_by_tensorflow

Paint = Any
# With 1, 2 and 3 cores: two rounds; one on each core; and an idle third core.
GROUPED = tuple(("map_reduce", cores) for cores in (1, 2, 3))


@pytest.fixture(params=["tensorflow", "jax"])
def paint(request: pytest.FixtureRequest) -> Paint:
    """`paint(sides, precision, *ways)` on either engine."""
    if request.param == "tensorflow":
        request.getfixturevalue("cores")
        return painted_by_tensorflow
    jax: JaxProcess = request.getfixturevalue("jax")
    return lambda *arguments: jax("painted_in_tiles", *arguments)


@pytest.mark.parametrize(
    ("precision", "grouped"), [("float32", GROUPED), ("mixed_bfloat16", GROUPED[2:])]
)
def test_tile_output_does_not_depend_on_grouping_or_core_count(
    paint: Paint, precision: str, grouped: tuple[tuple[str, int], ...]
) -> None:
    (naive, *rest), stages = paint(SIDES, precision, ("naive",), *grouped)
    assert naive.shape == (*SIDES, toy_translator.CHANNELS_OUT)
    assert np.abs(naive).max() > 0.1, "the network says something"
    for way, image in zip(grouped, rest, strict=True):
        np.testing.assert_array_equal(image, naive, err_msg=str(way))
    assert all(
        set(stage) <= set(STAGES) and {"trace", "execute", "merge"} <= set(stage)
        for stage in stages
    )


def test_both_engines_generate_the_same_image(jax: JaxProcess, cores: int) -> None:  # noqa: ARG001
    ways = [("map_reduce", 2, 4, "hann"), ("whole",)]
    theirs, _ = jax("painted_in_tiles", SIDES, "float32", *ways)
    ours, _ = painted_by_tensorflow(SIDES, "float32", *ways)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)
    assert np.abs(ours[0] - ours[1]).max() > 1e-3, "a tile does not see beyond itself"
