"""The numbers and histograms that every pair of a generator and a discriminator gives
whatever its options, and how Live draws them.
"""

from __future__ import annotations

from gan_runtime.base.metrics import LOSSES, NOT_DRAWN, SCORES, Metric, Network, Panel
from gan_runtime.catalog.entries import Judgement

G, D = "generator", "discriminator"
NETWORKS = (Network(G, "Generator", "G"), Network(D, "Discriminator", "D"))

_SCORE = "D's score (1 = real)"
_LOSS, _SHARE, _SPREAD = "Loss (nats)", "Share judged correctly", "Variance of a pixel"
_REAL, _GENERATED = "Real images", "Generated images"
METRICS = (
    Metric(
        "loss_generator",
        "Generator loss",
        _LOSS,
        LOSSES,
        "loss",
        format=".3f",
        network=G,
        label="Generator",
    ),
    Metric(
        "loss_discriminator",
        "Discriminator loss",
        _LOSS,
        LOSSES,
        "loss",
        format=".3f",
        network=D,
        label="Discriminator",
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
    Metric(
        "probe_score_real",
        "D's score of real images, after each epoch",
        _SCORE,
        NOT_DRAWN,  # its histogram is
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
    Metric(
        "r1_penalty",
        "R1 penalty, before its weight",
        "Half the squared slope",
        "Penalty",
        network=D,
    ),
    Metric(
        "r2_penalty",
        "R2 penalty, before its weight",
        "Half the squared slope",
        "Penalty",
        network=D,
    ),
    Metric(
        "penalty_factor", "Factor on the weights of the penalties", "Factor", NOT_DRAWN, network=D
    ),
)
PANELS = (
    Panel(
        LOSSES,
        "Generator and discriminator loss",
        series="Network",
        help=(
            "Losses of the newest step: generator, then discriminator. In nats where they are"
            " cross-entropies."
        ),
    ),
    Panel(
        SCORES,
        "Can the discriminator tell?",
        awaits="D's mean scores of real and generated images",
        series="Images",
        domain=(0.0, 1.0),
    ),
    Panel(
        "Accuracy",
        "How often is the discriminator right?",
        "100 % on both: it wins. 50 % (dotted): it guesses.",
        "how often D is right",
        domain=(0.0, 1.0),
        usual=(0.5, 0.5),
    ),
    Panel(
        "Spread",
        "Do the generated images vary?",
        "Far below the real ones: all the same image.",
        "how much the images vary",
    ),
    Panel(
        "Penalty",
        "How steep is the discriminator?",
        "At real images (R1) and generated ones (R2): what the penalties keep small.",
    ),
)
JUDGEMENTS = (
    Judgement("real", "Scores of real images", _SCORE, 0.0, 1.0, "real", _REAL),
    Judgement("fake", "Scores of generated images", _SCORE, 0.0, 1.0, "generated", _GENERATED),
)
