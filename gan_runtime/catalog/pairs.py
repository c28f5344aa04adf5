"""What all pairs of a generator and a discriminator share: options, rules, and what they read.

Their numbers: pair_numbers.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from gan_runtime.base.errors import FieldError
from gan_runtime.base.fields import IMAGES, Fields, needed
from gan_runtime.base.options import Above, OneOf, OptionRecord, option
from gan_runtime.catalog.entries import Options, Picture, Size, WorkloadEntry
from gan_runtime.catalog.pair_numbers import JUDGEMENTS, METRICS, NETWORKS, PANELS, G

GeneratorLoss = Literal["non_saturating", "minimax"]
Loss = Literal["cross_entropy", "hinge", "relativistic"]
Updates = Literal["together", "in_turn"]
CROSS_ENTROPY = OneOf("loss", ("cross_entropy",), "cross-entropy")
TABLE_1_RATE = "paper, Table 1: Adam(1e-4)"


class PairOptions(OptionRecord):
    """What the two networks are trained towards, and how fast."""

    learning_rate_generator: float = option(
        1e-4,
        label="Learning rate, generator",
        gt=0,
        le=1.0,
        help="Step size of the generator's optimizer, before schedule and scaling.",
        source=TABLE_1_RATE,
        error="use a positive rate, such as 1e-4.",
        phrase="rate of G {}",
    )
    learning_rate_discriminator: float = option(
        1e-4,
        label="Learning rate, discriminator",
        gt=0,
        le=1.0,
        help="Step size of the discriminator's optimizer, before schedule and scaling.",
        source=TABLE_1_RATE,
        error="use a positive rate, such as 1e-4.",
        phrase="rate of D {}",
    )
    loss: Loss = option(
        "cross_entropy",
        label="Loss",
        choices=get_args(Loss),
        help=(
            "'cross_entropy' is the usual one. 'hinge' stops pushing D beyond a margin."
            " 'relativistic' compares each real image with a generated one, as R3GAN does, with"
            " both penalties."
        ),
        source=(
            "Goodfellow et al. 2014; Lim and Ye 2017 (hinge); Huang et al. 2024, R3GAN"
            " (relativistic)"
        ),
        error="pick one of the listed losses.",
        phrase="{} loss",
    )
    generator_loss: GeneratorLoss = option(
        "non_saturating",
        label="Generator loss",
        choices=get_args(GeneratorLoss),
        help=(
            "'non_saturating' is what DCGANs use; 'minimax' is the paper's equation, whose gradient"
            " fades while D is sure."
        ),
        source="Goodfellow et al. 2014; paper, equations 3 to 5",
        error="pick one of the listed losses.",
        phrase="{} loss",
        needs=CROSS_ENTROPY,
    )
    updates: Updates = option(
        "together",
        label="Updates",
        choices=get_args(Updates),
        help=(
            "'together' updates both networks from one forward pass; 'in_turn' updates D first,"
            " then G against the new D."
        ),
        source="TensorFlow DCGAN tutorial (together); paper, equations 4 and 5 (in turn)",
        error="pick one of the listed orders.",
    )
    discriminator_steps: int = option(
        1,
        label="Discriminator steps",
        unit="per generator step",
        ge=1,
        le=10,
        help=(
            "How often D is updated before each update of G, each time on other real images, so an"
            " epoch has fewer steps."
        ),
        source="Goodfellow et al. 2014, algorithm 1: k",
        error="use a whole number from 1 to 10.",
        phrase="{} steps of D",
        needs=OneOf("updates", ("in_turn",), "updates in turn"),
    )
    label_smoothing: float = option(
        0.0,
        label="Label smoothing, real side",
        ge=0,
        le=0.5,
        help="D's target for real images is 1 minus this. It keeps D from becoming too sure.",
        source="Salimans et al. 2016, section 3.4: 0.1",
        error="use 0, or about 0.1.",
        phrase="label smoothing {}",
        needs=CROSS_ENTROPY,
    )
    r1_weight: float = option(
        0.0,
        label="R1 penalty",
        ge=0,
        le=1000.0,
        help=(
            "Weight gamma of the penalty on D's slope at real images. 0 leaves it out; it costs"
            " about half a step more."
        ),
        source="Mescheder et al. 2018, equation 9: 10",
        error="use 0, or about 1 to 10.",
    )
    r2_weight: float = option(
        0.0,
        label="R2 penalty",
        ge=0,
        le=1000.0,
        help=(
            "Weight gamma of the penalty on D's slope at generated images. 0 leaves it out; it"
            " costs about half a step more."
        ),
        source="Mescheder et al. 2018, section 4.1; Huang et al. 2024, R3GAN: as R1",
        error="use 0, or the weight of R1.",
    )
    penalty_end: float = option(
        1.0,
        label="Penalties at the end",
        unit="of their weights",
        ge=0,
        le=1,
        help=(
            "Both penalties fall along a cosine from their weights to this share of them at the end"
            " of the training. 1: they stay."
        ),
        source="Huang et al. 2024, R3GAN: a tenth",
        error="use 1, or about 0.1.",
        needs=Above(("r1_weight", "r2_weight"), 0.0, "a penalty"),
    )


GREY = (Picture("samples", "Generated images", "grey_grid", ("images",)),)


def one_pass_has_one_discriminator_step(
    updates: str, discriminator_steps: int
) -> FieldError | None:
    """Both networks are updated from one forward pass, so D cannot be updated more often."""
    if updates == "in_turn" or discriminator_steps == 1:
        return None
    return FieldError(
        "discriminator_steps",
        f"discriminator_steps is {discriminator_steps}, but updates=together makes one: use"
        " updates=in_turn, or discriminator_steps=1.",
    )


def cross_entropy_has_its_own_options(
    loss: str, generator_loss: str, label_smoothing: float
) -> FieldError | None:
    """A smoothed target and a saturating generator loss are of cross-entropy alone."""
    if loss == "cross_entropy" or (generator_loss == "non_saturating" and label_smoothing == 0.0):
        return None
    name, value, use = (
        ("generator_loss", generator_loss, "non_saturating")
        if generator_loss != "non_saturating"
        else ("label_smoothing", f"{label_smoothing:g}", "0")
    )
    return FieldError(
        name,
        f"{name} is {value}, but loss={loss} has none: use {name}={use}, or loss=cross_entropy.",
    )


def a_schedule_needs_a_penalty(
    penalty_end: float, r1_weight: float, r2_weight: float
) -> FieldError | None:
    """Nothing falls where nothing is."""
    if penalty_end == 1.0 or r1_weight > 0.0 or r2_weight > 0.0:
        return None
    return FieldError(
        "penalty_end",
        f"penalty_end is {penalty_end:g}, but r1_weight and r2_weight are 0: set one of them, or"
        " penalty_end=1.",
    )


RULES = (
    one_pass_has_one_discriminator_step,
    cross_entropy_has_its_own_options,
    a_schedule_needs_a_penalty,
)


def batches(options: PairOptions) -> int:
    """A batch of real images for each update of the discriminator."""
    return options.discriminator_steps


def reads_digits(_: PairOptions, offered: Fields) -> Fields:
    """Grey pictures of 28 × 28 pixels, for networks that are made for these alone.

    Raises:
        DatasetError: the data set has no pictures, or others.
    """
    images = needed(
        offered,
        IMAGES,
        lambda shape: shape == (28, 28, 1),
        "28 × 28 × 1",
        "use a data set of grey pictures of 28 pixels, or another workload",
    )
    return {IMAGES: images}


def entry(
    *,
    title: str,
    summary: str,
    source: str,
    module: str,
    options: type[PairOptions],
    pictures: tuple[Picture, ...],
    reads: Callable[[Options, Fields], Fields],
    size: Callable[[Options, Fields], Size],
) -> WorkloadEntry:
    """The entry of one pair, with all that every pair has."""
    return WorkloadEntry(
        title=title,
        summary=summary,
        source=source,
        module=module,
        options=options,
        networks=NETWORKS,
        metrics=METRICS,
        judgements=JUDGEMENTS,
        pictures=pictures,
        averaged=G,
        reads=reads,
        batches=batches,
        size=size,
        panels=PANELS,
        rules=RULES,
    )
