"""Signs that a GAN training goes wrong, read from the scores of an epoch (docs/metrics.md).

Collapse: the images of a batch hardly differ, while the data's do. D wins: D tells every generated image from every real
one, so G's gradient carries no direction any more. A NaN needs no scores: the recorder finds it in the step's numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gan_runtime.spec import RunSpec

FIRST_EPOCH = 1  # an untrained generator makes one grey image for every latent: that is no collapse


@dataclass(frozen=True)
class Alarm:
    """`topic`: alarm_collapse, alarm_d_wins or alarm_not_finite. `message`: the evidence in words and numbers."""

    topic: str
    message: str


def raised(spec: RunSpec, scores: Mapping[str, float], epoch: int) -> list[Alarm]:
    """The alarms of one epoch; empty when all is well."""
    if epoch <= FIRST_EPOCH:
        return []
    return [
        alarm for alarm in (_collapse(spec, scores, epoch), _d_wins(spec, scores, epoch)) if alarm is not None
    ]


def _collapse(spec: RunSpec, scores: Mapping[str, float], epoch: int) -> Alarm | None:
    real, fake = scores["spread_real"], scores["spread_fake"]
    if not fake < spec.collapse_share * real:
        return None
    return Alarm(
        "alarm_collapse",
        f"The generator has collapsed in epoch {epoch}: its images vary by {fake:.2g}, the data by {real:.2g} "
        f"(share {fake / real:.1%}, alarm below {spec.collapse_share:.1%}).",
    )


def _d_wins(spec: RunSpec, scores: Mapping[str, float], epoch: int) -> Alarm | None:
    real, fake = scores["probe_score_real"], scores["probe_score_fake"]
    if not (fake < spec.d_wins_score and real > 1.0 - spec.d_wins_score):
        return None
    return Alarm(
        "alarm_d_wins",
        f"The discriminator has won in epoch {epoch}: its mean score is {fake:.2g} for generated and {real:.2g} for real images "
        f"(alarm below {spec.d_wins_score:g} and above {1.0 - spec.d_wins_score:g}).",
    )
