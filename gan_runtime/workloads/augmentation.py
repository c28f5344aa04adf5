"""Differentiable augmentation: random changes T of all images that D sees, real and generated, so
that D cannot memorize a small set of images. G's gradient passes through T.

    L_D = E[f(-D(T(x)))] + E[f(D(T(G(z))))],  L_G = E[f(-D(T(G(z))))]    (Zhao et al. 2020,
    arXiv:2006.10738, equations 6 and 7)

Images x: float32 (B, height, width, channels) in [-1, 1]; a changed image can leave this range. The
real and the generated image at one index of the batch get the same change, from uniform draws u in
[0, 1). The constants are those of the authors' code (DiffAugment_tf.py):

    color        brightness x + u - ½; saturation m + 2u (x - m), m the mean over the channels;
                 contrast m + (u + ½) (x - m), m the mean over the image
    translation  by whole pixels, at most an eighth of each side; 0 moves in
    cutout       0 in a rectangle of half of each side, whose middle is anywhere in the image

Where a layer of D sees only zeros and its biases are 0, as before the first step, the slope of a
LeakyReLU at 0 is 0.2 in TensorFlow and 1 in JAX, so the first penalties of the engines differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from keras import ops

from gan_runtime.workloads.contract import Noise, Tensor

MOST_MOVED, CUT = 0.125, 0.5  # shares of a side
DRAWS = {"color": 3, "translation": 2, "cutout": 2}  # random numbers per image
Change = Callable[[Tensor], Tensor]


def drawn(kinds: str, noise: Noise, shape: tuple[int, ...]) -> Change:
    """Draws one random change for each image of a batch of shape (B, height, width, channels).

    `kinds`: names of DRAWS, joined by "_", in the order in which they are applied.
    """
    names = kinds.split("_")
    draws = noise.uniform(shape[0], sum(DRAWS[name] for name in names))  # (B, 3 + 2 + 2)
    changes, first = [], 0
    for name in names:
        changes.append(_CHANGES[name](draws[:, first : first + DRAWS[name]], shape))
        first += DRAWS[name]

    def changed(images: Tensor) -> Tensor:
        for change in changes:
            images = change(images)
        return images

    return changed


def color(draws: Tensor, shape: tuple[int, ...]) -> Change:
    """Brightness, saturation and contrast; `draws`: (B, 3)."""
    brightness, saturation, contrast = (
        ops.reshape(draws[:, place], (shape[0], 1, 1, 1)) for place in range(3)
    )

    def changed(images: Tensor) -> Tensor:
        images = images + (brightness - 0.5)
        gray = ops.mean(images, axis=3, keepdims=True)  # (B, height, width, 1)
        images = (images - gray) * (2.0 * saturation) + gray
        mean = ops.mean(images, axis=(1, 2, 3), keepdims=True)  # (B, 1, 1, 1)
        return (images - mean) * (contrast + 0.5) + mean

    return changed


def translation(draws: Tensor, shape: tuple[int, ...]) -> Change:
    """Down and right by -s to s pixels, s = ⌊side / 8 + ½⌋; `draws`: (B, 2).

    Computed as products with 0/1 matrices, whose gradients every engine compiles well: y = V x Wᵀ
    for each channel, with V (B, height, height) and W (B, width, width).
    """
    height, width = shape[1:3]
    rows, columns = (
        _moved_places(draws[:, place], side) for place, side in enumerate((height, width))
    )

    def changed(images: Tensor) -> Tensor:
        moved = ops.einsum("bij,bjwc->biwc", rows, images)
        return ops.einsum("bkw,biwc->bikc", columns, moved)

    return changed


def _moved_places(draws: Tensor, side: int) -> Tensor:
    """Float32 (B, side, side): 1 where pixel i of the result is pixel j = i - shift of
    the input.
    """
    most = math.floor(side * MOST_MOVED + 0.5)
    shift = _whole(draws, 2 * most + 1) - most
    places = ops.arange(side, dtype="float32")
    source = ops.reshape(places, (1, side, 1)) - ops.reshape(shift, (-1, 1, 1))
    return ops.cast(ops.equal(ops.reshape(places, (1, 1, side)), source), "float32")


def cutout(draws: Tensor, shape: tuple[int, ...]) -> Change:
    """Zeros in a rectangle; `draws`: (B, 2)."""
    height, width = shape[1:3]
    rows = ops.reshape(_cut_places(draws[:, 0], height), (shape[0], height, 1, 1))
    columns = ops.reshape(_cut_places(draws[:, 1], width), (shape[0], 1, width, 1))
    mask = 1.0 - rows * columns  # (B, height, width, 1)
    return lambda images: images * mask


def _cut_places(draws: Tensor, side: int) -> Tensor:
    """Float32 (B, side): 1 for `size` pixels from middle - ⌊size / 2⌋ on, clipped at the image.

    The middle is from 0 to side - 1, and to side for an even size.
    """
    size = math.floor(side * CUT + 0.5)
    first = ops.reshape(_whole(draws, side + 1 - size % 2) - size // 2, (-1, 1))
    places = ops.reshape(ops.arange(side, dtype="float32"), (1, side))
    return ops.cast((places >= first) & (places < first + size), "float32")


def _whole(draws: Tensor, count: int) -> Tensor:
    """Uniform whole numbers from 0 to count - 1, as float32 (B,)."""
    return ops.minimum(ops.floor(draws * count), count - 1.0)


_CHANGES = {"color": color, "translation": translation, "cutout": cutout}
