"""Pix2Pix, image to image: sizes of its layers, and its declaration as a workload."""

from __future__ import annotations

from dataclasses import dataclass

from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.catalog.entries import Size, WorkloadEntry
from gan_runtime.domains.flows.fields import fitted, reads
from gan_runtime.domains.flows.options import (
    KERNEL,
    MOST_CHANNELS,
    PATCH_HALVINGS,
    SMALL_TILE,
    WIDTHS,
    Pix2pixOptions,
    tile_halves_down_to_one_pixel,
)
from gan_runtime.domains.flows.score_metrics import (
    JUDGEMENTS,
    NETWORKS,
    PANELS,
    PICTURES,
    WORKLOAD_METRICS,
    G,
)

# ---- layers and size -----------------------------------------------------------------------------


@dataclass(frozen=True)
class UnetPlan:
    """The channels of the layers. `encoder`: per halving, outermost first; the decoder has them in
    reverse. `patches`: per halving of the discriminator, then of the layer before the logits.
    """

    encoder: tuple[int, ...]
    patches: tuple[int, ...]


def plan(options: Pix2pixOptions) -> UnetPlan:
    """The plan of the options. At tile 256 and full size: encoder 64, 128, 256, 512, 512, 512, 512,
    512; patches 64, 128, 256, 512.
    """
    width, levels = WIDTHS[options.size], options.tile.bit_length() - 1
    channels = [width * min(2**place, MOST_CHANNELS) for place in range(levels)]
    return UnetPlan(tuple(channels), tuple(channels[: halvings(options.tile) + 1]))


def halvings(tile: int) -> int:
    """The halvings of the discriminator: 3, for which a logit reads 70 pixels; fewer for smaller
    tiles, at least 1.
    """
    return next((count for count in range(PATCH_HALVINGS, 1, -1) if patch_pixels(count) <= tile), 1)


def patch_pixels(count: int) -> int:
    """The receptive field of one logit: 16, 34 and 70 pixels with 1, 2 and 3 halvings.

    A layer without a stride adds 3 pixels; a halving reads 2 p + 2 for p of its outputs.
    """
    pixels = 1 + 2 * (KERNEL - 1)
    for _ in range(count):
        pixels = 2 * pixels + KERNEL - 2
    return pixels


def size(options: Pix2pixOptions, fields: Fields) -> Size:
    """Exact weights of both networks, and about the activations of a row in a step."""
    (*_, source), (*_, target) = fields[SOURCE].shape, fields[TARGET].shape
    planned = plan(options)
    generator, activations = _generator_size(planned.encoder, options.tile, source, target)
    discriminator, scores = _discriminator_size(planned.patches, options.tile, source + target)
    return Size(generator + discriminator, options.unrolled * activations + 2 * scores)


def _generator_size(
    channels: tuple[int, ...], tile: int, source: int, target: int
) -> tuple[int, int]:
    innermost = len(channels) - 1
    weights = activations = 0
    for place, (outer, inner) in enumerate(zip((source, *channels), channels, strict=False)):
        pixels = (tile >> (place + 1)) ** 2
        normed = place not in (0, innermost)
        weights += KERNEL**2 * outer * inner + (4 * inner if normed else inner)
        activations += pixels * inner * (3 if normed else 2)
    for place in range(
        innermost, -1, -1
    ):  # up again, from twice the channels but for the innermost block
        inner = channels[place] * (1 if place == innermost else 2)
        outer = channels[place - 1] if place else target
        weights += KERNEL**2 * inner * outer + (4 * outer if place else outer)
        activations += (tile >> place) ** 2 * outer * (4 if place else 2)
    return weights, activations


def _discriminator_size(patches: tuple[int, ...], tile: int, channels: int) -> tuple[int, int]:
    weights, activations, side = 0, tile**2 * channels, tile
    for place, (outer, inner) in enumerate(zip((channels, *patches), patches, strict=False)):
        side = side // 2 if place < len(patches) - 1 else side - 1
        weights += KERNEL**2 * outer * inner + (4 * inner if place else inner)
        activations += side**2 * inner * (3 if place else 2)
    return weights + KERNEL**2 * patches[-1] + 1, activations


ENTRY = WorkloadEntry(
    title="Pix2Pix (KIT)",
    summary=(
        "Image to image: the next frame of a flow, or a photo from a drawing. A U-Net against a"
        " PatchGAN."
    ),
    source="Isola et al. 2017, arXiv:1611.07004; Lehmann et al. 2024, dl.gi.de 20.500.12116/44645",
    module="gan_runtime.domains.flows.workload",
    options=Pix2pixOptions,
    networks=NETWORKS,
    metrics=WORKLOAD_METRICS,
    judgements=JUDGEMENTS,
    pictures=PICTURES,
    averaged=G,
    reads=reads,
    fitted=fitted,
    tile=lambda options: options.tile,
    batches=lambda _options: 1,
    small_layers=lambda options: options.size == "small" and options.tile <= SMALL_TILE,
    size=size,
    panels=PANELS,
    rules=(tile_halves_down_to_one_pixel,),
    defaults={"adam_beta_1": 0.5},
    has_latents=False,
)
