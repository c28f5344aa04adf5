"""Differentiable augmentation, compared with plain NumPy, and its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from keras import ops

from gan_runtime.catalog.pairs import Augmentation, PairOptions
from gan_runtime.engines.inputs import HostNoise
from gan_runtime.workloads import augmentation
from gan_runtime.workloads.pair import UnconditionalPair
from gan_runtime.workloads.step_context import step_scope
from tests.support.engines.step_contexts import alone

pytestmark = pytest.mark.usefixtures("cores")
SHAPE = (6, 12, 10, 3)
RANDOM = np.random.default_rng(5)
IMAGES = RANDOM.uniform(-1.0, 1.0, SHAPE).astype(np.float32)


class Given:
    """Noise with given numbers."""

    def __init__(self, draws: np.ndarray) -> None:
        self._draws = draws.astype(np.float32)

    def normal(self, rows: int, *shape: int) -> np.ndarray:
        return np.zeros((rows, *shape), np.float32)

    def uniform(self, rows: int, *shape: int) -> np.ndarray:
        assert self._draws.shape == (rows, *shape)
        return self._draws

    def dropout(self, values: np.ndarray, rate: float) -> np.ndarray:  # noqa: ARG002
        return values


def changed(kinds: str, draws: np.ndarray, images: np.ndarray = IMAGES) -> np.ndarray:
    return np.asarray(augmentation.drawn(kinds, Given(draws), images.shape)(images))


def in_numpy(kinds: str, draws: np.ndarray, image: np.ndarray) -> np.ndarray:
    """Augments one image, pixel by pixel."""
    u, values = list(draws), image.astype(np.float64)
    height, width, _ = image.shape
    for kind in kinds.split("_"):
        own, u = u[: augmentation.DRAWS[kind]], u[augmentation.DRAWS[kind] :]
        if kind == "color":
            values = values + own[0] - 0.5
            gray = values.mean(axis=2, keepdims=True)
            values = (values - gray) * 2 * own[1] + gray
            values = (values - values.mean()) * (own[2] + 0.5) + values.mean()
        elif kind == "translation":
            moved, most = np.zeros_like(values), [int(side / 8 + 0.5) for side in (height, width)]
            down, right = (int(u * (2 * m + 1)) - m for u, m in zip(own, most, strict=True))
            for row in range(height):
                for column in range(width):
                    if 0 <= row - down < height and 0 <= column - right < width:
                        moved[row, column] = values[row - down, column - right]
            values = moved
        else:
            sizes = [int(side / 2 + 0.5) for side in (height, width)]
            first = [
                int(u * (side + 1 - size % 2)) - size // 2
                for u, side, size in zip(own, (height, width), sizes, strict=True)
            ]
            cut = [slice(max(0, f), max(0, f + size)) for f, size in zip(first, sizes, strict=True)]
            values = values.copy()
            values[cut[0], cut[1]] = 0.0
    return values


@pytest.mark.parametrize("kinds", ["color", "cutout", *Augmentation.__args__[1:]])
def test_each_image_is_changed_as_in_numpy(kinds: str) -> None:
    count = sum(augmentation.DRAWS[kind] for kind in kinds.split("_"))
    draws = RANDOM.random((SHAPE[0], count)).astype(np.float32)
    draws[0], draws[1] = 0.0, np.nextafter(np.float32(1.0), np.float32(0.0))  # both ends
    expected = [in_numpy(kinds, *pair) for pair in zip(draws, IMAGES, strict=True)]
    assert np.abs(changed(kinds, draws) - np.stack(expected)).max() < 1e-5
    assert np.abs(np.stack(expected) - IMAGES).max() > 0.1


def test_shifts_and_rectangles_are_uniformly_distributed() -> None:
    """An eighth of 12 and of 10 pixels rounds to 2 and 1; half of the sides is 6 and 5."""
    grid = (np.arange(60, dtype=np.float32) + 0.5) / 60
    images = np.ones((60, 12, 10, 1), np.float32)
    moved = changed("translation", np.stack([grid, grid], axis=1), images)
    empty_rows, empty_columns = (
        (moved.max(axis=axes) == 0).sum(axis=1) for axes in ((2, 3), (1, 3))
    )
    assert np.bincount(empty_rows).tolist() == [12, 24, 24]
    assert np.bincount(empty_columns).tolist() == [20, 40]
    cut = changed("cutout", np.stack([grid, grid], axis=1), images) == 0
    rows, columns = (cut.any(axis=axes).sum(axis=1) for axes in ((2, 3), (1, 3)))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (3, 6, 3, 5)


def test_real_and_generated_images_get_the_same_change_or_none() -> None:
    """The generator returns the real images, so D sees the same images twice for any draws."""
    seen: list[np.ndarray] = []

    def discriminator(images: np.ndarray, training: bool) -> np.ndarray:  # noqa: ARG001
        seen.append(np.asarray(images))
        return ops.mean(images, axis=(1, 2, 3))[:, None]

    networks = {"generator": lambda latents, training: IMAGES, "discriminator": discriminator}  # noqa: ARG005
    for kind, updates in (
        ("none", "together"),
        ("color_translation_cutout", "together"),
        ("color_translation_cutout", "in_turn"),
    ):
        options = PairOptions(augmentation=kind, updates=updates, loss="relativistic")
        for phase in UnconditionalPair(2, dict).program(options, {}).phases:
            seen.clear()
            noise = HostNoise(3)
            with step_scope(alone(noise)):
                phase.forward(networks, {"images": IMAGES}, noise)
            assert len(seen) == 2
            assert np.array_equal(*seen)
            assert np.array_equal(seen[0], IMAGES) == (kind == "none")


def test_generator_gradient_passes_through_every_change() -> None:
    """Compared with finite differences of single pixels; every remaining pixel contributes."""
    import tensorflow as tf

    draws = RANDOM.random((SHAPE[0], 7)).astype(np.float32)
    change = augmentation.drawn("color_translation_cutout", Given(draws), SHAPE)
    weights = RANDOM.standard_normal(SHAPE).astype(np.float32)
    images = tf.constant(IMAGES)
    with tf.GradientTape() as tape:
        tape.watch(images)
        total = tf.reduce_sum(change(images) * weights)
    gradient = tape.gradient(total, images).numpy()
    for pixel in ((0, 5, 5, 1), (3, 0, 9, 0), (5, 11, 2, 2)):
        step = np.zeros(SHAPE, np.float32)
        step[pixel] = 0.5  # T is linear in the image, up to a constant
        up, down = (np.asarray(change(IMAGES + sign * step), np.float64) for sign in (1, -1))
        assert gradient[pixel] == pytest.approx(((up - down) * weights).sum(), abs=2e-4)
    assert (np.abs(gradient).max(axis=(1, 2, 3)) > 0.01).all()
