"""DCGAN for pictures of 28 to 128 pixels: options, what it reads, and how large it is."""

from __future__ import annotations

from typing import Literal, get_args

from gan_runtime.base.fields import IMAGES, LABELS, Fields, needed
from gan_runtime.base.options import option
from gan_runtime.catalog.entries import Picture, Size
from gan_runtime.catalog.pairs import PairOptions

Labels = Literal["used", "ignored"]
Norm = Literal["none", "batch"]

KERNEL = 5
MOST_CHANNELS = 8  # of the innermost layers, in multiples of base_channels
# Sides that halve down to 4, 5, 6 or 7 pixels, where the generator begins and the discriminator
# ends.
SIDES = (28, 32, 40, 48, 56, 64, 80, 96, 112, 128)


class DcganOptions(PairOptions):
    """Those of every pair, and how large the networks are."""

    base_channels: int = option(
        64,
        label="Width",
        unit="channels",
        ge=4,
        le=512,
        help=(
            "Channels of D's first layer and G's last hidden one; they double with each halving of"
            " the picture, up to 8 times."
        ),
        source="Radford et al. 2016, Fig. 1: 128",
        error="use 16 for a CPU, 64 or 128 for an accelerator.",
    )
    latent_size: int = option(
        100,
        label="Latent size",
        unit="numbers",
        ge=1,
        le=4096,
        help="How many random numbers one picture is made from.",
        source="Radford et al. 2016: 100",
        error="use a whole number, such as 100.",
    )
    labels: Labels = option(
        "used",
        label="Labels",
        choices=get_args(Labels),
        help=(
            "'used' makes both networks conditional where the data set has labels: pictures of a"
            " chosen class."
        ),
        source="Miyato and Koyama 2018: projection discriminator",
        error="pick one of the listed values.",
    )
    discriminator_norm: Norm = option(
        "none",
        label="Batch norm in D",
        choices=get_args(Norm),
        help=(
            "'batch' as Radford et al. have it; 'none' judges each picture alone, so that a step"
            " takes one backward pass less."
        ),
        source="Radford et al. 2016: batch; Miyato and Koyama 2018: none",
        error="pick one of the listed values.",
    )


PICTURES = (
    Picture(
        "by_class",
        "Generated pictures, a row for each class",
        "labelled_grid",
        ("class_images", "labels"),
    ),
    Picture("samples", "Generated pictures", "rgb_grid", ("images",)),
)


def reads(options: DcganOptions, offered: Fields) -> Fields:
    """Square pictures, grey or RGB, and the labels where they are to be used.

    Raises:
        DatasetError: no pictures, or of a size that does not halve down to 4 to 7 pixels, or of
            other channels.
    """
    needed(
        offered,
        IMAGES,
        lambda shape: (
            len(shape) == 3 and shape[0] == shape[1] and shape[0] in SIDES and shape[2] in (1, 3)
        ),
        f"a square of {', '.join(map(str, SIDES))} pixels in 1 or 3 channels",
        "prepare the pictures in one of these sizes, as grey or rgb",
    )
    wanted = (IMAGES, LABELS) if options.labels == "used" else (IMAGES,)
    return {name: offered[name] for name in wanted if name in offered}


def channels(options: DcganOptions, side: int) -> tuple[int, ...]:
    """Of the discriminator's convolutions, outermost first: 64 pixels and base_channels 64
    give (64, 128, 256, 512).
    """
    halvings = next(halvings for halvings in range(1, 6) if side >> halvings in range(4, 8))
    return tuple(options.base_channels * min(2**place, MOST_CHANNELS) for place in range(halvings))


def size(options: DcganOptions, fields: Fields) -> Size:
    """Exact weights of both networks (a test counts them), and about what a step keeps of
    each picture.
    """
    side, _, colors = fields[IMAGES].shape
    classes = len(fields[LABELS].classes) if LABELS in fields else 0
    widths = channels(options, side)
    innermost = (side >> len(widths)) ** 2 * widths[-1]
    generator = options.latent_size * innermost + _norm_weights(widths[-1], classes)
    discriminator = innermost + 1 + classes * widths[-1]
    activations = 4 * innermost + 2 * side * side * colors
    for place, (outer, inner) in enumerate(zip((colors, *widths), widths, strict=False)):
        pixels = (side >> place) ** 2  # of the outer, larger picture
        has_norm = options.discriminator_norm == "batch" and place > 0
        generator += KERNEL**2 * inner * outer + (_norm_weights(outer, classes) if place else 0)
        discriminator += KERNEL**2 * outer * inner + (
            _norm_weights(inner, 0) if has_norm else inner
        )
        activations += (3 * pixels * outer if place else 0) + 2 * (
            3 if has_norm else 2
        ) * pixels // 4 * inner
    return Size(generator + discriminator, activations)


def _norm_weights(channels: int, classes: int) -> int:
    """Scale, shift and two statistics of each channel; scale and shift of each class where
    there are classes.
    """
    return 2 * channels * (classes or 1) + 2 * channels
