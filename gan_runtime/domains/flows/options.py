"""The options of Pix2Pix: the authors' constants, sizes of the networks, and measures against drift
and overfitting.
"""

from __future__ import annotations

from typing import Literal, get_args

from gan_runtime.base.errors import FieldError
from gan_runtime.base.options import OptionRecord, option

LEAST_TILE, MOST_TILE = 16, 512
NetworkSize = Literal["small", "full"]
Flip = Literal["none", "vertical", "horizontal"]
Updates = Literal["together", "in_turn"]
Output = Literal["image", "change"]

WIDTHS: dict[NetworkSize, int] = {"small": 16, "full": 64}  # channels of the outermost layers
MOST_CHANNELS = 8  # channels of the innermost layers, in multiples of the width
KERNEL = 4
SMALL_TILE = 64  # the largest tile that was measured
DROPPED_BLOCKS = 3  # innermost blocks of the decoder with dropout
PATCH_HALVINGS = 3  # of the full discriminator, whose patches are 70 pixels wide
OF_THE_AUTHORS = "Isola et al. 2017, arXiv:1611.07004, section 6.2 and phillipi/pix2pix"


class Pix2pixOptions(OptionRecord):
    """The authors' constants, sizes of the networks, and measures against drift and overfitting."""

    size: NetworkSize = option(
        "small",
        label="Network size",
        choices=get_args(NetworkSize),
        help=(
            "'full' has the authors' channels, 64 to 512; 'small' has a quarter of them and a"
            " sixteenth of the operations."
        ),
        source=f"{OF_THE_AUTHORS}: full",
        error="use small on a CPU, full on an accelerator.",
        phrase="{} networks",
    )
    tile: int = option(
        64,
        label="Tile",
        unit="pixels",
        ge=LEAST_TILE,
        le=MOST_TILE,
        help=(
            "Side of the square that the networks read of each image, at a new place in each step."
            " The generator halves it down to one pixel."
        ),
        source="Isola et al. 2017: 256",
        error="use 64 on a CPU, 256 as the authors have it.",
        phrase="tiles of {}",
    )
    learning_rate_generator: float = option(
        2e-4,
        label="Learning rate, generator",
        gt=0,
        le=1.0,
        help="Step size of the generator's optimizer.",
        source=f"{OF_THE_AUTHORS}: 2e-4",
        error="use a positive rate, such as 2e-4.",
        phrase="rate of G {}",
    )
    learning_rate_discriminator: float = option(
        2e-4,
        label="Learning rate, discriminator",
        gt=0,
        le=1.0,
        help="Step size of the discriminator's optimizer.",
        source=f"{OF_THE_AUTHORS}: 2e-4",
        error="use a positive rate, such as 2e-4.",
        phrase="rate of D {}",
    )
    updates: Updates = option(
        "together",
        label="Updates",
        choices=get_args(Updates),
        help=(
            "'together' updates both networks from one forward pass; 'in_turn' updates D, then G"
            " on newly generated images."
        ),
        source=(
            "TensorFlow's pix2pix tutorial (together); junyanz/pytorch-CycleGAN-and-pix2pix (in"
            " turn)"
        ),
        error="pick one of the listed orders.",
    )
    weight_l1: float = option(
        100.0,
        label="Weight of the difference",
        ge=0,
        le=10_000,
        help=(
            "Weight of the mean difference to the target in the generator's loss, relative to the"
            " cross-entropy."
        ),
        source="Isola et al. 2017, equation 4: lambda 100",
        error="use a number from 0, such as 100.",
        phrase="L1 weight {}",
    )
    weight_discriminator: float = option(
        0.5,
        label="Weight of D's loss",
        gt=0,
        le=100,
        help=(
            "Weight of the cross-entropies of target and generated images in D's loss. One half"
            " slows D relative to G."
        ),
        source="Isola et al. 2017, section 3.3: divided by 2; phillipi/pix2pix, train.lua: 1",
        error="use a positive number, such as 0.5.",
    )
    dropout: float = option(
        0.5,
        label="Dropout in G",
        ge=0,
        le=0.9,
        help=(
            "Share of values that the three innermost blocks of G's decoder drop in training. It is"
            " the paper's only noise."
        ),
        source="Isola et al. 2017, section 6.1.1: 0.5",
        error="use 0.5, or 0 where an input has one right output.",
        phrase="dropout {}",
    )
    norm_momentum: float = option(
        0.9,
        label="Momentum of batch norm",
        ge=0,
        lt=1,
        help=(
            "Momentum of the stored batch norm statistics, with which all images outside of"
            " training are generated."
        ),
        source="phillipi/pix2pix: 0.9 (Torch's 0.1)",
        error="use 0.9, or 0.99 for steadier statistics.",
    )
    output: Output = option(
        "image",
        label="Output of G",
        choices=get_args(Output),
        help=(
            "'image': the target itself, as in the paper. 'change': its difference to the source;"
            " the source needs all channels of the target."
        ),
        source=(
            "Isola et al. 2017: image; Sanchez-Gonzalez et al. 2020, arXiv:2002.09405, section 3.1:"
            " change"
        ),
        error="pick image or change.",
        phrase="G outputs the {}",
    )
    input_noise: float = option(
        0.0,
        label="Noise on the input",
        ge=0,
        le=1,
        help=(
            "Standard deviation of normal noise on G's input in training. In a rollout G's inputs"
            " have errors too."
        ),
        source="Sanchez-Gonzalez et al. 2020, arXiv:2002.09405, section 4.3",
        error="use 0, or about 0.02.",
        phrase="input noise {}",
    )
    unrolled: int = option(
        1,
        label="Unrolled steps",
        unit="frames",
        ge=1,
        le=8,
        help=(
            "Frames that G predicts in training, each from the last one. Above 1 the data set needs"
            " later frames."
        ),
        source="Brandstetter et al. 2022, arXiv:2202.03376, section 3.1",
        error="use 1, or 2 to 4 against drift.",
        phrase="{} unrolled steps",
    )
    flip: Flip = option(
        "none",
        label="Flips",
        choices=get_args(Flip),
        help=(
            "Flips half of the tiles in training. 'vertical' is upside down, with the signs of uy"
            " and vorticity inverted; 'horizontal' is not for flows."
        ),
        source="Isola et al. 2017, section 6.2: horizontal, for photos",
        error="pick one of the listed flips.",
        phrase="flips {}",
    )


def tile_halves_down_to_one_pixel(tile: int) -> FieldError | None:
    """The generator halves it down to one pixel."""
    below = 1 << (tile.bit_length() - 1)
    if tile == below:
        return None
    return FieldError(
        "tile", f"tile is {tile}, but allowed is a power of two: use {below} or {2 * below}."
    )
