"""What every pair of a generator G and a discriminator D declares: options, numbers, charts,
rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from gan_runtime.base.errors import FieldError
from gan_runtime.base.fields import IMAGES, Fields, needed
from gan_runtime.base.metrics import LOSSES, NOT_DRAWN, SCORES, Metric, Network, Panel
from gan_runtime.base.options import Above, OneOf, OptionRecord, option
from gan_runtime.catalog.entries import (
    Judgement,
    Options,
    Picture,
    Size,
    WorkloadEntry,
    refused,
)

GeneratorLoss = Literal["non_saturating", "minimax"]
Loss = Literal["cross_entropy", "hinge", "relativistic"]
LOSSES_IN_NATS = frozenset({"cross_entropy", "relativistic"})  # others have no unit
Updates = Literal["together", "in_turn"]
Augmentation = Literal[
    "none",
    "translation",
    "color_translation",
    "translation_cutout",
    "color_translation_cutout",
]
CROSS_ENTROPY = OneOf("loss", ("cross_entropy",), "cross-entropy")


def _learning_rate(network: str, letter: str) -> Any:
    return option(
        1e-4,
        label=f"Learning rate, {network}",
        gt=0,
        le=1.0,
        help=f"Learning rate of the {network}, before schedule and scaling.",
        source="paper, Table 1: Adam(1e-4)",
        error="use a positive rate, such as 1e-4.",
        phrase=f"rate of {letter} {{}}",
    )


class PairOptions(OptionRecord):
    """Learning rates, loss, updates, penalties and augmentation of the two networks."""

    learning_rate_generator: float = _learning_rate("generator", "G")
    learning_rate_discriminator: float = _learning_rate("discriminator", "D")
    loss: Loss = option(
        "cross_entropy",
        label="Loss",
        choices=get_args(Loss),
        help=(
            "'cross_entropy' is usual. 'hinge' limits D by a margin. 'relativistic' compares real"
            " and generated images, as R3GAN (use both penalties)."
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
            "'non_saturating' is usual for DCGANs. 'minimax' is the paper's equation; its gradient"
            " vanishes while D is sure."
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
            "'together' updates both networks from one forward pass. 'in_turn' updates D, then G"
            " against the new D."
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
            "Updates of D per update of G, each on another batch of real images, so an epoch has"
            " fewer steps."
        ),
        source="Goodfellow et al. 2014, algorithm 1: k",
        error="use a whole number from 1 to 10.",
        phrase="{} steps of D",
        needs=OneOf("updates", ("in_turn",), "updates in turn"),
    )
    label_smoothing: float = option(
        0.0,
        label="Label smoothing",
        ge=0,
        le=0.5,
        help="D's target for real images is 1 minus this, which keeps D less certain. 0: none.",
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
            "Weight gamma of the penalty on D's slope at real images. Adds about half a step of"
            " time. 0: none."
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
            "Weight gamma of the penalty on D's slope at generated images. Adds about half a step"
            " of time. 0: none."
        ),
        source="Mescheder et al. 2018, section 4.1; Huang et al. 2024, R3GAN: as R1",
        error="use 0, or the weight of R1.",
    )
    penalty_end: float = option(
        1.0,
        label="Final penalties",
        unit="of their weights",
        ge=0,
        le=1,
        help=(
            "Share of both penalty weights that is left at the end, along a cosine. 1: constant"
            " weights."
        ),
        source="Huang et al. 2024, R3GAN: a tenth",
        error="use 1, or about 0.1.",
        needs=Above(("r1_weight", "r2_weight"), 0.0, "a penalty"),
    )
    augmentation: Augmentation = option(
        "none",
        label="Augmentation",
        choices=get_args(Augmentation),
        help=(
            "Random changes of real and generated images before D sees them, for sets of few"
            " images. Color, shifts by up to an eighth, a gray rectangle."
        ),
        source="Zhao et al. 2020, DiffAugment: color_translation_cutout",
        error="pick one of the listed values.",
    )


G, D = "generator", "discriminator"
NETWORKS = (Network(G, "Generator", "G"), Network(D, "Discriminator", "D"))

_SLOPE = "Half the squared slope"
_SCORE = "D's score (1 = real)"
_SHARE, _SPREAD = "Share classified correctly", "Variance of a pixel"
_REAL, _GENERATED = "Real images", "Generated images"
METRICS = (
    *(
        Metric(
            f"loss_{network.name}",
            f"{network.title} loss",
            "Loss (nats)",
            LOSSES,
            "loss",
            format=".3f",
            network=network.name,
            label=network.title,
        )
        for network in NETWORKS
    ),
    Metric(
        "d_real",
        "D's score of real images, in training",
        _SCORE,
        SCORES,
        "score_of_real",
        format=".3f",
        network=D,
        label=_REAL,
    ),
    Metric(
        "d_fake",
        "D's score of generated images, in training",
        _SCORE,
        SCORES,
        "score_of_generated",
        format=".3f",
        network=D,
        label=_GENERATED,
    ),
    Metric(
        "d_accuracy_real",
        "D's accuracy on real images",
        _SHARE,
        "Accuracy",
        "accuracy_on_real",
        per_epoch=True,
        format=".1%",
        network=D,
        label=_REAL,
    ),
    Metric(
        "d_accuracy_fake",
        "D's accuracy on generated images",
        _SHARE,
        "Accuracy",
        "accuracy_on_generated",
        per_epoch=True,
        format=".1%",
        network=D,
        label=_GENERATED,
    ),
    # Pages draw the histograms instead.
    Metric(
        "probe_score_real",
        "D's score of real images, after each epoch",
        _SCORE,
        NOT_DRAWN,
        "judged_real",
        per_epoch=True,
        format=".3f",
        network=D,
        label=_REAL,
    ),
    Metric(
        "probe_score_fake",
        "D's score of generated images, after each epoch",
        _SCORE,
        NOT_DRAWN,
        "judged_generated",
        per_epoch=True,
        format=".3f",
        network=D,
        label=_GENERATED,
    ),
    Metric(
        "spread_real",
        "Spread of real images",
        _SPREAD,
        "Spread",
        "spread_of_real",
        per_epoch=True,
        format=".3f",
        label=_REAL,
    ),
    Metric(
        "spread_fake",
        "Spread of generated images",
        _SPREAD,
        "Spread",
        "spread_of_generated",
        per_epoch=True,
        format=".3f",
        network=G,
        label=_GENERATED,
    ),
    Metric("r1_penalty", "R1 penalty, unweighted", _SLOPE, "Penalty", network=D),
    Metric("r2_penalty", "R2 penalty, unweighted", _SLOPE, "Penalty", network=D),
    Metric("penalty_factor", "Factor on the penalty weights", "Factor", NOT_DRAWN, network=D),
)


PANELS = (
    Panel(
        LOSSES,
        "Generator and discriminator loss",
        series="Network",
        help=(
            "Losses of the newest step: generator, discriminator. Cross-entropies are in nats: a"
            " guess between real and generated costs 0.693."
        ),
        meaning="No level is good: watch for a network that runs away from the other.",
    ),
    Panel(
        SCORES,
        "Scores of the discriminator",
        awaits="D's mean scores of real and generated images",
        series="Images",
        domain=(0.0, 1.0),
        meaning="Near 0.5 on both the discriminator guesses; far apart it wins.",
    ),
    Panel(
        "Accuracy",
        "How often is the discriminator right?",
        "100% on both: it wins. 50% (dotted): it guesses.",
        "how often D is right",
        domain=(0.0, 1.0),
        usual=(0.5, 0.5),
        meaning="100% on both means that it wins, 50% (dotted) that it guesses.",
    ),
    Panel(
        "Spread",
        "Do the generated images vary?",
        "Far below the training images: mode collapse.",
        "how much the images vary",
    ),
    Panel(
        "Penalty",
        "How steep is the discriminator?",
        "Slope at training (R1) and generated images (R2); the penalties keep it small.",
    ),
)
JUDGEMENTS = (
    Judgement("real", "Scores of real images", _SCORE, 0.0, 1.0, "real", _REAL),
    Judgement("fake", "Scores of generated images", _SCORE, 0.0, 1.0, "generated", _GENERATED),
)

GREY = (Picture("samples", "Generated images", "grey_grid", ("images",)),)


def cross_entropy_has_its_own_options(
    loss: str, generator_loss: str, label_smoothing: float
) -> FieldError | None:
    """Only cross-entropy has a smoothed target and a saturating generator loss."""
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


RULES = (
    # One forward pass updates both networks, so D cannot be updated more often.
    refused(
        "discriminator_steps",
        lambda updates, discriminator_steps: updates != "in_turn" and discriminator_steps != 1,
        "discriminator_steps is {discriminator_steps}, but updates=together makes one: use"
        " updates=in_turn, or discriminator_steps=1.",
    ),
    cross_entropy_has_its_own_options,
    refused(
        "penalty_end",
        lambda penalty_end, r1_weight, r2_weight: (
            penalty_end != 1.0 and r1_weight <= 0.0 and r2_weight <= 0.0
        ),
        "penalty_end is {penalty_end:g}, but r1_weight and r2_weight are 0: set one of them, or"
        " penalty_end=1.",
    ),
)


def batches(options: PairOptions) -> int:
    """One batch of training images for each update of the discriminator."""
    return options.discriminator_steps


def reads_digits(_: PairOptions, offered: Fields) -> Fields:
    """Selects grayscale images of 28 × 28 pixels, the only size of these networks.

    Raises:
        DatasetError: the data set has no images, or others.
    """
    images = needed(
        offered,
        IMAGES,
        lambda shape: shape == (28, 28, 1),
        "28 × 28 × 1",
        "use a data set of grayscale images of 28 pixels, or another workload",
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
    in_nats: frozenset[str] = LOSSES_IN_NATS,
) -> WorkloadEntry:
    """The catalog entry of a pair, with the metrics, charts and rules that all pairs share.
    `in_nats`: the losses in nats, if it adds some.
    """
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
        in_nats=in_nats,
    )
