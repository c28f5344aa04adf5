"""The real images that generated ones are compared with, as networks receive them: two disjoint
samples, and training images among which copies are searched for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import IMAGES, LABELS, Fields
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.inputs import host_value

FEWEST_IMAGES = 100  # on each side
MOST_TRAINING = 10_000  # images among which the nearest one is searched
MOST_NUMBERS = 2**26  # pixels of one set of images, times channels: half a gigabyte
MOST_NUMBERS_OF_FID = 2**28  # a gigabyte of single precision; 50,000 images of 42 × 42 × 3 pixels
IMAGES_OF_FID = 50_000  # from which a Fréchet distance of 2,048 features means something


@dataclass(frozen=True)
class RealImages:
    """Two halves of real images, values (N, height, width, channels), and training images (M, …).

    `are_held_out`: else the reference is of training images. `is_whole`: it is all of them, or as
    many as an FID needs.
    """

    reference: NDArray[np.float32]
    others: NDArray[np.float32]
    training: NDArray[np.float32]
    are_held_out: bool
    is_whole: bool = False

    @property
    def noun(self) -> str:
        """In sentences."""
        return "held-out images" if self.are_held_out else "training images"


def real_images(data: DataSet, count: int, seed: int) -> RealImages:
    """Random halves of the held-out images, or of the training images where too few are held out.

    Raises:
        DatasetError: there are fewer than 200.
    """
    random = np.random.RandomState(seed)
    are_held_out = data.held_out >= 2 * FEWEST_IMAGES
    available = data.held_out if are_held_out else data.rows
    most = MOST_NUMBERS // math.prod(data.fields[IMAGES].shape)
    half = min(count, available // 2, most)
    if half < FEWEST_IMAGES:
        raise DatasetError(
            f"data set {data.name} has {data.rows:,} images, but quality needs"
            f" {2 * FEWEST_IMAGES}: prepare more."
        )
    rows = random.permutation(available)[: 2 * half]
    if are_held_out:
        images = data.read_held_out(available)[IMAGES][rows]
    else:
        images = data.read(rows)[IMAGES]
    training = np.sort(random.permutation(data.rows)[: min(MOST_TRAINING, most)])
    if not are_held_out:  # so that each image finds itself, and skips it
        training = np.union1d(training, rows)
    value = partial(host_value, field=data.fields[IMAGES])
    return RealImages(
        value(images[:half]),
        value(images[half:]),
        value(data.read(training)[IMAGES]),
        are_held_out,
    )


def images_of_fid(data: DataSet, count: int, seed: int) -> RealImages:
    """As published FIDs: the reference is training images; the others are held out, if there are
    enough. No training images, so that no copies are searched for.
    """
    if min(data.rows, data.held_out) < FEWEST_IMAGES:
        return replace(real_images(data, count, seed), training=_nothing(data))
    random = np.random.RandomState(seed)
    most = min(count, most_images_of_fid(data.fields[IMAGES].shape))
    rows = np.sort(random.permutation(data.rows)[:most])
    other_rows = np.sort(random.permutation(data.held_out)[:most])
    value = partial(host_value, field=data.fields[IMAGES])
    return RealImages(
        value(data.read(rows)[IMAGES]),
        value(data.read_held_out(data.held_out)[IMAGES][other_rows]),
        _nothing(data),
        are_held_out=False,
        is_whole=len(rows) >= min(data.rows, IMAGES_OF_FID),
    )


def images_to_generate(real: RealImages, count: int, is_fid: bool) -> int:
    """As many as the reference has; of an FID `count`, even if the data set is smaller."""
    if not is_fid:
        return len(real.reference)
    return min(count, most_images_of_fid(real.reference.shape[1:]))


def most_images_of_fid(shape: tuple[int, ...]) -> int:
    """To limit memory."""
    return MOST_NUMBERS_OF_FID // math.prod(shape)


def _nothing(data: DataSet) -> NDArray[np.float32]:
    return np.empty((0, *data.fields[IMAGES].shape), np.float32)


def label_parts(name: str, fields: Fields) -> tuple[int, ...]:
    """Sizes of the independent parts of a label; one part of K classes for most data sets."""
    declared = catalog.DATASETS[name].label_parts if name in catalog.DATASETS else ()
    return declared or (len(fields[LABELS].classes),)
