"""What the two networks of a pair are trained towards: a table by the option `loss`, from D's
logits of real and generated pictures.

A workload of its own adds a row: a wider choice in its options record, and `losses={**LOSSES,
"mine": PairLoss(…)}` on its pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from keras import ops

from gan_runtime.catalog.pairs import PairOptions
from gan_runtime.workloads.contract import Tensor
from gan_runtime.workloads.losses import (
    bce_fake,
    bce_fake_for_both,
    bce_real,
    generator_over_discriminator,
    minimax_generator,
    probability_real,
)

Loss = Callable[[Tensor, Tensor, PairOptions], Tensor]


def each_alone(real: Tensor, fake: Tensor) -> tuple[Tensor, Tensor]:
    """D's belief in each picture by its own logit: float32 (B,) for real and for generated
    ones, 0 to 1.
    """
    return probability_real(real), probability_real(fake)


@dataclass(frozen=True)
class OnePass:
    """How both networks share one way back through D, where D judges each picture alone and its
    gradient vanishes nowhere.

    `discriminator`: D's loss for that. `ratio(fake, options)`: (B, 1), by generated picture G's
    gradient over D's, by D's logit.
    """

    discriminator: Loss
    ratio: Callable[[Tensor, PairOptions], Tensor]


@dataclass(frozen=True)
class PairLoss:
    """Losses `(real, fake, options)` → float32 scalar, means over the rows; `real`, `fake`: D's
    logits (B, 1), in the rows' order.

    `reads_real`: whether G's loss reads D's logits of real pictures too, which cost a pass of their
    own in turn. `scores`: D's belief that real and generated pictures are real.
    """

    discriminator: Loss
    generator: Loss
    reads_real: bool = False
    scores: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = each_alone
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


def _ahead(one: Tensor, other: Tensor) -> Tensor:
    return ops.cast(one, "float32") - ops.cast(other, "float32")


def _relativistic_of_d(real: Tensor, fake: Tensor, _options: PairOptions) -> Tensor:
    """E[-log s(D(x) - D(G(z)))], pair by pair (Jolicoeur-Martineau 2018; Huang et al.

    2024, arXiv:2501.05441, R3GAN).
    """
    return bce_real(_ahead(real, fake))


def _relativistic_of_g(real: Tensor, fake: Tensor, _options: PairOptions) -> Tensor:
    """E[-log s(D(G(z)) - D(x))]."""
    return bce_real(_ahead(fake, real))


def _against_the_other(real: Tensor, fake: Tensor) -> tuple[Tensor, Tensor]:
    """Only differences of logits mean something: D's belief that a picture is the real one of
    its pair.
    """
    return probability_real(_ahead(real, fake)), probability_real(_ahead(fake, real))


LOSSES: Mapping[str, PairLoss] = {
    "cross_entropy": PairLoss(
        _cross_entropy_of_d,
        _cross_entropy_of_g,
        one_pass=OnePass(
            _cross_entropy_for_both,
            lambda fake, options: generator_over_discriminator(fake, options.generator_loss),
        ),
    ),
    "hinge": PairLoss(_hinge_of_d, _hinge_of_g),
    "relativistic": PairLoss(
        _relativistic_of_d, _relativistic_of_g, reads_real=True, scores=_against_the_other
    ),
}
