"""The TPU's kernels compute the same mathematics as the plain layers."""

from __future__ import annotations

import pytest

from gan_runtime.tpu import plan as planning
from tests.support.engines.jax_process import JaxProcess

LARGEST = 2e-6  # of the largest value, in float32
KINDS = ("convolution", "transposed_convolution")


@pytest.fixture(scope="module")
def differences(jax: JaxProcess) -> dict[str, dict[str, float]]:
    """Largest differences by case, from the process with JAX."""
    return dict(jax("tests.tpu.kernel_differences:of_all"))


@pytest.mark.skipif(bool(planning.missing_library()), reason=planning.missing_library())
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "case", ["to_one_channel", "with_stride", "plain", "odd_block", "in_blocks"]
)
def test_values_and_gradients_match_the_plain_kernels(
    differences: dict[str, dict[str, float]], case: str, kind: str
) -> None:
    assert_same(differences[f"{case}, {kind}"])


@pytest.mark.skipif(bool(planning.missing_library()), reason=planning.missing_library())
@pytest.mark.parametrize("channels", ["one channel", "two channels"])
@pytest.mark.parametrize(
    "case",
    [
        "same, chosen",
        "valid, chosen",
        "zeros, chosen",
        "same, single",
        "same, with_rests",
        "same, whole",
    ],
)
def test_volumes_in_blocks_of_two_axes_match_the_plain_convolution(
    differences: dict[str, dict[str, float]], case: str, channels: str
) -> None:
    assert_same(differences[f"{channels}, {case}"])


@pytest.mark.skipif(bool(planning.missing_library()), reason=planning.missing_library())
@pytest.mark.parametrize("what", ["bias", "scale and offset", "batch norm"])
def test_passes_over_volumes_match_those_over_their_cells(
    differences: dict[str, dict[str, float]], what: str
) -> None:
    assert_same(differences[what])


def assert_same(differences: dict[str, float]) -> None:
    assert set(differences) == {"values", "by_first", "by_second", "second_order"}
    assert max(differences.values()) < LARGEST
