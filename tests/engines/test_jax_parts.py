"""Parts of the JAX engine in isolation: noise, batch norm, and counts."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.base.fields import Field, pictures
from tests.support.engines.jax_process import JaxProcess


def test_latents_do_not_depend_on_replicas_but_dropout_masks_do(jax: JaxProcess) -> None:
    single, four = jax("noise", 1, 0.3), jax("noise", 4, 0.3)
    assert np.array_equal(single["normal"], four["normal"])
    assert len(np.unique(single["normal"])) == 24
    assert abs(single["many"].mean()) < 0.02
    assert abs(single["many"].std() - 1.0) < 0.02
    masks = [single[f"mask {step} {share}"] for step in (1, 2) for share in (0, 1)]
    assert all(np.isclose(np.unique(mask), [0.0, 256 / 179]).all() for mask in masks), (
        "what is kept is scaled up"
    )
    assert all(abs((mask > 0).mean() - 179 / 256) < 0.02 for mask in masks)
    assert len({mask.tobytes() for mask in masks}) == 4


def test_dropout_rate_too_small_for_a_byte_drops_nothing(jax: JaxProcess) -> None:
    assert (jax("noise", 1, 0.001)["mask 1 0"] == 1.0).all()


def test_each_seed_step_phase_and_draw_has_its_own_latents(jax: JaxProcess) -> None:
    draws = [
        draw for key in ((1, 5, 0), (2, 5, 0), (1, 6, 0), (1, 5, 1)) for draw in jax("draws", *key)
    ]
    assert len(np.unique(np.concatenate(draws))) == 8 * 8 * 5


def test_uniform_draws_do_not_depend_on_the_replicas(jax: JaxProcess) -> None:
    alone, four = jax("uniform_in_shares", 1, 400, 3, 2), jax("uniform_in_shares", 4, 400, 3, 2)
    assert np.array_equal(alone, four)
    assert alone.shape == (400, 3, 2)
    assert (alone >= 0.0).all()
    assert (alone < 1.0).all()
    assert (alone.mean(), alone.std()) == (
        pytest.approx(0.5, abs=0.02),
        pytest.approx(12**-0.5, abs=0.02),
    )
    assert jax("uniform_in_shares", 2, 8).shape == (8,)


@pytest.mark.parametrize(
    ("field", "lying"),
    [
        (pictures(28, 28, 1), (3, 2, 896)),  # 784 pixels, padded to seven times 128
        (pictures(8, 16, 1), (3, 2, 128)),
        (Field((2, 3), dtype="float32"), (3, 2, 2, 3)),
        (Field((), dtype="int32"), (3, 2)),
    ],
)
def test_large_rows_are_padded_to_lanes_and_restored(
    field: Field, lying: tuple[int, ...], jax: JaxProcess
) -> None:
    stored = np.random.default_rng(1).integers(0, 99, (3, 2, *field.shape)).astype(field.dtype)
    shape, back = jax("on_the_device", field, stored)
    assert shape == lying
    assert np.array_equal(back, stored)


def test_each_process_reads_only_the_rows_of_its_devices(jax: JaxProcess) -> None:
    """Each reads its share of every batch, in order. tests/full/training/test_jax_runs.py trains
    this way in two processes.
    """
    shares, wholes = zip(*(jax("read_by", process, 2, 1, 3) for process in (0, 1)), strict=True)
    assert [share.shape for share in shares] == [(3, 2, 4), (3, 2, 4)]
    assert np.array_equal(np.concatenate(shares, axis=2), wholes[0])


@pytest.mark.parametrize("shape", [(30, 40), (30, 20, 2), (8, 5, 5, 3, 2)])
def test_dropout_gradient_uses_the_mask_of_the_forward_pass(
    shape: tuple[int, ...], jax: JaxProcess
) -> None:
    values, upstream = np.random.default_rng(1).uniform(1.0, 2.0, (2, *shape)).astype(np.float32)
    outputs, gradient = jax("thinned", values, upstream, 0.3)
    factor = outputs / values
    assert np.isclose(np.unique(factor.round(4)), [0.0, 256 / 179], atol=1e-4).all()
    assert np.abs(gradient - factor * upstream).max() < 1e-6


def test_scores_are_counted_in_40_bins_from_0_to_1(jax: JaxProcess) -> None:
    fixed, _, _ = jax("counted", np.float32([0.0, 0.024, 0.026, 0.5, 0.99, 1.0]))
    assert {place: count for place, count in enumerate(fixed.tolist()) if count} == {
        0: 2,
        1: 1,
        20: 1,
        39: 2,
    }
    assert len(fixed) == 40


def test_values_are_counted_in_60_bins_from_lowest_to_highest(jax: JaxProcess) -> None:
    values = np.random.default_rng(1).gamma(2.0, size=4000).astype(np.float32)
    _, counts, low_high = jax("counted", values)
    assert low_high.tolist() == [values.min(), values.max()]
    assert (
        np.abs(counts - np.histogram(values, np.linspace(*low_high, 61))[0]).max() <= 1
    )  # rounding at the edges
    _, counts, low_high = jax("counted", np.full(10, -3.0, np.float32))
    assert (counts[0], counts.sum()) == (10, 10), "equal values"
    assert low_high[1] > low_high[0]


def test_batch_norm_uses_the_moments_of_its_values(jax: JaxProcess) -> None:
    random = np.random.default_rng(1)
    values = (3.0 + 2.0 * random.standard_normal((6, 4, 4, 5))).astype(np.float32)
    gamma, beta = random.standard_normal((2, 5)).astype(np.float32)
    outputs, mean, variance = jax("batch_norm", values, gamma, beta)
    assert mean == pytest.approx(values.mean((0, 1, 2)), rel=1e-5)
    assert variance == pytest.approx(values.var((0, 1, 2)), rel=1e-4)
    expected = (values - values.mean((0, 1, 2))) / np.sqrt(
        values.var((0, 1, 2)) + 1e-3
    ) * gamma + beta
    assert np.abs(outputs - expected).max() < 1e-4


@pytest.mark.parametrize(
    ("sizes", "taps", "channels", "block"),
    [
        (
            (51, 51, 27),
            (5, 6, 6),
            (16, 8),
            (6, 3),
        ),  # (3 + 5) · 16 = 128 channels in, 6 · 3 · 8 = 144 out
        ((47, 46, 24), (5, 6, 6), (8, 8), (2, 10)),  # (10 + 5) · 8 = 120 in, 160 out
        (
            (55, 56, 30),
            (5, 6, 6),
            (1, 16),
            (1, 13),
        ),  # its window of 6 becomes channels too: 6 · 18 in, 208 out
        ((9, 9, 9), (3, 3, 3), (64, 8), None),  # the units are full without folding
    ],
)
def test_volume_folding_fills_the_matrix_units(
    sizes: tuple[int, ...],
    taps: tuple[int, ...],
    channels: tuple[int, int],
    block: tuple[int, int] | None,
    jax: JaxProcess,
) -> None:
    assert jax("block_of", sizes, taps, channels) == block


@pytest.mark.parametrize("padding", ["same", "valid", ((1, 0), (0, 2), (2, 1))])
def test_bfloat16_volumes_are_summed_in_float32_and_rounded_once(
    padding: str | tuple[tuple[int, int], ...], jax: JaxProcess
) -> None:
    random = np.random.default_rng(1)
    values, kernel = (
        random.standard_normal((2, 5, 4, 7, 3)),
        random.standard_normal((3, 2, 4, 3, 2)),
    )
    narrow, wide, plain = jax("volumes_convolved", values, kernel, padding)
    assert narrow.shape == wide.shape == plain.shape
    assert np.abs(wide - plain).max() < 1e-5, "sums of 72 products near 1"
    assert (
        np.abs(narrow - wide) <= 2.0**-8 * np.abs(wide)
    ).all()  # half a unit in the last of 8 bits
