"""Both engines refuse layers that would train differently per engine or replica, and name a
replacement.
"""

from __future__ import annotations

import pytest

from gan_runtime.engines.task import forbid_weight_assignment
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_engines import MakeEngine, random_images
from tests.support.engines.tiny_gan import REFUSED, networks

pytestmark = pytest.mark.usefixtures("cores")


@pytest.mark.parametrize("layer", list(REFUSED))
def test_both_engines_refuse_the_layer_and_name_a_replacement(
    layer: str, make: MakeEngine, jax: JaxProcess
) -> None:
    workload, advice = REFUSED[layer]
    with pytest.raises(ValueError, match=advice):
        make(1, workload).trace()
    with pytest.raises(AssertionError, match=advice):  # with the error of the other process
        jax("trained", layer, random_images(16, 8), (), {})


def test_weights_are_assignable_again_after_a_forward_pass() -> None:
    pair = networks()
    kernel = pair["generator"].trainable_variables[0]
    with forbid_weight_assignment(pair), pytest.raises(ValueError, match=kernel.path):
        kernel.assign(kernel * 2)
    kernel.assign(kernel * 2)
