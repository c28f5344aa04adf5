"""GAN losses on logits, each a plain mean over the replica's batch, and the table of losses for a
generator and a discriminator. The engine scales them for replicas.

Keras' loss objects rescale themselves under tf.distribute and are therefore not used. Source:
paper, equations 3 to 5; Goodfellow et al. 2014 for the non-saturating generator loss. To add a
loss, a workload extends the choices in its options record and sets `losses={**LOSSES, "mine":
PairLoss(…)}` on its pair; its entry names it in `in_nats` if it is a cross-entropy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from keras import ops

from gan_runtime.catalog.pairs import PairOptions
from gan_runtime.workloads.contract import Tensor

# Least gradient of D's loss where D is sure, since G's gradient is derived from it. Too small to
# change a float32 sum.
REMAINDER = 1e-20


# ---- terms ---------------------------------------------------------------------------------------


def bce_real(logits: Tensor, target: float = 1.0) -> Tensor:
    """Binary cross-entropy against "real": mean of -t log s - (1 - t) log(1 - s) with s =
    sigmoid(logits), nats, 0 to infinity.

    `target` t below 1 is one-sided label smoothing (Salimans et al. 2016, section 3.4). Logits (B,
    1), any float.
    """
    wide = ops.cast(logits, "float32")
    return ops.mean(ops.softplus(-wide) + (1.0 - target) * wide)


def bce_fake(logits: Tensor) -> Tensor:
    """Binary cross-entropy against "fake": mean of -log(1 - sigmoid(logits)), nats, 0 to
    infinity.
    """
    return ops.mean(ops.softplus(ops.cast(logits, "float32")))


def bce(logits: Tensor, targets: Tensor) -> Tensor:
    """Binary cross-entropy against targets t from 0 to 1, one per logit: mean of -t log s - (1 - t)
    log(1 - s), nats.
    """
    wide = ops.cast(logits, "float32")
    return ops.mean(ops.softplus(wide) - targets * wide)


def mean_percentage_error(values: Tensor, targets: Tensor, least: float = 1e-7) -> Tensor:
    """Mean of 100 |v - t| / max(|t|, least), percent, 0 to infinity (least is 1e-7 in Keras)."""
    return 100.0 * ops.mean(ops.abs(values - targets) / ops.maximum(ops.abs(targets), least))


def mean_absolute_error(values: Tensor, targets: Tensor) -> Tensor:
    """Mean of |v - t|, in the unit of the values."""
    return ops.mean(ops.abs(values - targets))


def minimax_generator(logits: Tensor) -> Tensor:
    """The paper's generator loss, equation 5: mean of log(1 - sigmoid(logits)), nats, minus
    infinity to 0.

    The loss saturates: while D is sure that an image is generated, the gradient is nearly zero.
    """
    return -bce_fake(logits)


def bce_fake_for_both(logits: Tensor) -> Tensor:
    """`bce_fake` with a gradient of at least REMAINDER per logit:
    `generator_over_discriminator` divides by it.
    """
    return bce_fake(logits) + REMAINDER * ops.mean(ops.cast(logits, "float32"))


def generator_over_discriminator(logits: Tensor, generator_loss: str) -> Tensor:
    """For each generated image, the gradient of G's loss with respect to D's logit, divided by that
    of `bce_fake_for_both`: float32 (B, 1), below 0.

    With minimax losses the ratio is -1, the gradient reversal of Ganin and Lempitsky 2015, section
    3.
    """
    belief = ops.sigmoid(ops.cast(logits, "float32"))
    weight = (
        ops.sigmoid(-ops.cast(logits, "float32")) if generator_loss == "non_saturating" else belief
    )
    return -weight / (belief + REMAINDER)


def r1_penalty(gradients: Tensor) -> Tensor:
    """R1 = ½ E[‖∇D(x)‖²] at training images (Mescheder et al. 2018, eq. 9, before its weight γ).

    `gradients`: ∇D(x) of each image, (B, …) such as (32, 28, 28, 1); squared and summed (B,); their
    mean a float32 scalar.
    """
    wide = ops.cast(gradients, "float32")
    return 0.5 * ops.mean(ops.sum(ops.square(wide), axis=tuple(range(1, len(wide.shape)))))


def probability_real(logits: Tensor) -> Tensor:
    """D's probability that each image is real: float32 (B,), 0 to 1. Logits (B, 1)."""
    return ops.sigmoid(ops.cast(ops.reshape(logits, (-1,)), "float32"))


# ---- losses of a pair, by the option `loss` ------------------------------------------------------

Loss = Callable[[Tensor, Tensor, PairOptions], Tensor]


def independent_scores(real: Tensor, fake: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of images by their own logits: float32 (B,) each, 0 to 1."""
    return probability_real(real), probability_real(fake)


@dataclass(frozen=True)
class OnePass:
    """How both networks share one backward pass through D; requires that D scores each image
    independently.

    `discriminator`: D's loss, whose gradient is nowhere 0. `ratio(fake, options)`: (B, 1), G's
    gradient divided by D's for each generated image.
    """

    discriminator: Loss
    ratio: Callable[[Tensor, PairOptions], Tensor]


@dataclass(frozen=True)
class PairLoss:
    """The losses of both networks, `(real, fake, options)` → float32 scalar, means over the rows.
    `real`, `fake`: D's logits (B, 1).

    `reads_real`: whether G's loss also reads D's logits of training images, which costs another
    pass if the networks are updated in turn. `scores`: D's probabilities that real and generated
    images are real; None for a loss whose outputs are none, such as least squares.
    """

    discriminator: Loss
    generator: Loss
    reads_real: bool = False
    scores: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None
    one_pass: OnePass | None = None


def _cross_entropy_of_d(real: Tensor, fake: Tensor, options: PairOptions) -> Tensor:
    return bce_real(real, 1.0 - options.label_smoothing) + bce_fake(fake)


def _cross_entropy_for_both(real: Tensor, fake: Tensor, options: PairOptions) -> Tensor:
    return bce_real(real, 1.0 - options.label_smoothing) + bce_fake_for_both(fake)


def _cross_entropy_of_g(_real: Tensor, fake: Tensor, options: PairOptions) -> Tensor:
    return bce_real(fake) if options.generator_loss == "non_saturating" else minimax_generator(fake)


def _hinge_of_d(real: Tensor, fake: Tensor, _options: PairOptions) -> Tensor:
    """E[max(0, 1 - D(x))] + E[max(0, 1 + D(G(z)))] (Lim and Ye 2017, arXiv:1705.02894)."""
    wide = [ops.cast(logits, "float32") for logits in (real, fake)]
    return ops.mean(ops.relu(1.0 - wide[0])) + ops.mean(ops.relu(1.0 + wide[1]))


def _hinge_of_g(_real: Tensor, fake: Tensor, _options: PairOptions) -> Tensor:
    """-E[D(G(z))]."""
    return -ops.mean(ops.cast(fake, "float32"))


def _difference(first: Tensor, second: Tensor) -> Tensor:
    return ops.cast(first, "float32") - ops.cast(second, "float32")


def _relativistic_of_d(real: Tensor, fake: Tensor, _options: PairOptions) -> Tensor:
    """E[-log s(D(x) - D(G(z)))] over pairs of images (Jolicoeur-Martineau 2018; Huang et al. 2024,
    arXiv:2501.05441, R3GAN).
    """
    return bce_real(_difference(real, fake))


def _relativistic_of_g(real: Tensor, fake: Tensor, _options: PairOptions) -> Tensor:
    """E[-log s(D(G(z)) - D(x))]."""
    return bce_real(_difference(fake, real))


def _relative_scores(real: Tensor, fake: Tensor) -> tuple[Tensor, Tensor]:
    """D's probability that an image is the real one of a pair, since only differences of logits
    have a meaning.
    """
    return probability_real(_difference(real, fake)), probability_real(_difference(fake, real))


LOSSES: Mapping[str, PairLoss] = {
    "cross_entropy": PairLoss(
        _cross_entropy_of_d,
        _cross_entropy_of_g,
        scores=independent_scores,
        one_pass=OnePass(
            _cross_entropy_for_both,
            lambda fake, options: generator_over_discriminator(fake, options.generator_loss),
        ),
    ),
    # D decides by the sign of a logit, as with cross-entropy.
    "hinge": PairLoss(_hinge_of_d, _hinge_of_g, scores=independent_scores),
    "relativistic": PairLoss(
        _relativistic_of_d, _relativistic_of_g, reads_real=True, scores=_relative_scores
    ),
}
