"""What the recorded numbers are called, and how they are drawn, on Live and Compare. Definitions: docs/metrics.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """`axis`: title of its axis, with the unit. `log`: its values span decades. `per_epoch`: one value an epoch, not a step."""

    title: str
    axis: str
    log: bool = False
    per_epoch: bool = True
    format: str = ".3f"


def _of_steps(title: str, axis: str, log: bool = False, form: str = ".3f") -> Metric:
    return Metric(title, axis, log, per_epoch=False, format=form)


METRICS: dict[str, Metric] = {
    "loss_generator": _of_steps("Generator loss", "Loss (nats)"),
    "loss_discriminator": _of_steps("Discriminator loss", "Loss (nats)"),
    "d_real": _of_steps("D's score of real images, in training", "D's score (1 = real)"),
    "d_fake": _of_steps("D's score of generated images, in training", "D's score (1 = real)"),
    "d_accuracy_real": Metric("D's accuracy on real images", "Share judged correctly", format=".1%"),
    "d_accuracy_fake": Metric("D's accuracy on generated images", "Share judged correctly", format=".1%"),
    "probe_score_real": Metric("D's score of real images, after each epoch", "D's score (1 = real)"),
    "probe_score_fake": Metric("D's score of generated images, after each epoch", "D's score (1 = real)"),
    "spread_real": Metric("Spread of real images", "Variance of a pixel"),
    "spread_fake": Metric("Spread of generated images", "Variance of a pixel"),
    "gradient_norm_generator": Metric(
        "Gradient norm of the generator", "Norm (log)", log=True, format=".3~g"
    ),
    "gradient_norm_discriminator": Metric(
        "Gradient norm of the discriminator", "Norm (log)", log=True, format=".3~g"
    ),
    "update_ratio_generator": Metric(
        "Update size of the generator", "Update / weights (log)", log=True, format=".2~e"
    ),
    "update_ratio_discriminator": Metric(
        "Update size of the discriminator", "Update / weights (log)", log=True, format=".2~e"
    ),
    "learning_rate_generator": _of_steps("Learning rate of the generator", "Learning rate", form=".3~e"),
    "learning_rate_discriminator": _of_steps(
        "Learning rate of the discriminator", "Learning rate", form=".3~e"
    ),
    "loss_scale_generator": _of_steps(
        "Loss scale of the generator (float16)", "Loss scale (log)", log=True, form=",.0f"
    ),
    "loss_scale_discriminator": _of_steps(
        "Loss scale of the discriminator (float16)", "Loss scale (log)", log=True, form=",.0f"
    ),
    "r1_penalty": _of_steps("R1 penalty, before its weight", "Half the squared slope", form=".3~g"),
}
