"""DCGAN for images of 28 to 128 pixels: its options, fields and size."""

from __future__ import annotations

from typing import Literal, get_args

from gan_runtime.base.fields import CLASS_IMAGES, IMAGES, LABELS, Fields, needed
from gan_runtime.base.options import option
from gan_runtime.catalog.entries import Picture, Size
from gan_runtime.catalog.pairs import PairOptions

Labels = Literal["used", "ignored"]
Norm = Literal["none", "batch"]

KERNEL = 5
MOST_CHANNELS = 8  # of the innermost layers, in multiples of base_channels
# Sides in pixels that halve down to 4, 5, 6 or 7, the first size of the generator.
SIDES = (28, 32, 40, 48, 56, 64, 80, 96, 112, 128)


class DcganOptions(PairOptions):
    """Options of every pair, and the size of the networks."""

    base_channels: int = option(
        64,
        label="Width",
        unit="channels",
        ge=4,
        le=512,
        help=(
            "Channels of D's first and G's last hidden layer. They double with each halving of the"
            " image, up to 8-fold."
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
        help="Random numbers from which the generator makes one image.",
        source="Radford et al. 2016: 100",
        error="use a whole number, such as 100.",
    )
    labels: Labels = option(
        "used",
        label="Labels",
        choices=get_args(Labels),
        help=(
            "'used': both networks are conditional if the data set has labels, so images of one"
            " class can be generated."
        ),
        source="Miyato and Koyama 2018: projection discriminator",
        error="pick one of the listed values.",
    )
    discriminator_norm: Norm = option(
        "none",
        label="Batch norm in D",
        choices=get_args(Norm),
        help=(
            "'batch': as in Radford et al. 'none': D scores each image independently, which saves"
            " one backward pass per step."
        ),
        source="Radford et al. 2016: batch; Miyato and Koyama 2018: none",
        error="pick one of the listed values.",
    )


PICTURES = (
    Picture(
        "by_class",
        "Generated images, a row for each class",
        "labelled_grid",
        (CLASS_IMAGES, LABELS),
    ),
    Picture("samples", "Generated images", "rgb_grid", ("images",)),
)


def reads(options: DcganOptions, offered: Fields) -> Fields:
    """Square images, grayscale or RGB, and labels if the options use them.

    Raises:
        DatasetError: no images, a side that is not in SIDES, or other channels.
    """
    needed(
        offered,
        IMAGES,
        lambda shape: (
            len(shape) == 3 and shape[0] == shape[1] and shape[0] in SIDES and shape[2] in (1, 3)
        ),
        f"a square of {', '.join(map(str, SIDES))} pixels in 1 or 3 channels",
        "prepare the images in one of these sizes, in grayscale or RGB",
    )
    names = (IMAGES, LABELS) if options.labels == "used" else (IMAGES,)
    return {name: offered[name] for name in names if name in offered}


def channels(options: DcganOptions, side: int) -> tuple[int, ...]:
    """Channels of the discriminator's convolutions, outermost first: 64 pixels and base_channels
    64 give (64, 128, 256, 512).
    """
    halvings = next(halvings for halvings in range(1, 6) if side >> halvings in range(4, 8))
    return tuple(options.base_channels * min(2**place, MOST_CHANNELS) for place in range(halvings))


def size(options: DcganOptions, fields: Fields) -> Size:
    """Exact weights of both networks, and approximate activations of one image."""
    side, _, colors = fields[IMAGES].shape
    classes = len(fields[LABELS].classes) if LABELS in fields else 0
    widths = channels(options, side)
    innermost = (side >> len(widths)) ** 2 * widths[-1]
    generator = options.latent_size * innermost + _norm_weights(widths[-1], classes)
    discriminator = innermost + 1 + classes * widths[-1]
    activations = 4 * innermost + 2 * side * side * colors
    for place, (outer, inner) in enumerate(zip((colors, *widths), widths, strict=False)):
        pixels = (side >> place) ** 2  # of the outer, larger image
        has_norm = options.discriminator_norm == "batch" and place > 0
        generator += KERNEL**2 * inner * outer + (_norm_weights(outer, classes) if place else 0)
        bias = _norm_weights(inner, 0) if has_norm else inner
        discriminator += KERNEL**2 * outer * inner + bias
        activations += 3 * pixels * outer if place else 0
        activations += 2 * (3 if has_norm else 2) * pixels // 4 * inner
    return Size(generator + discriminator, activations)


def _norm_weights(channels: int, classes: int) -> int:
    """Scale and offset of each channel, or of each class and channel, and two statistics."""
    return 2 * channels * (classes or 1) + 2 * channels
