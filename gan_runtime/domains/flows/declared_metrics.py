"""The numbers, histograms and pictures of Pix2Pix, and how Live draws them. Differences are of values from -1 to 1."""

from __future__ import annotations

from gan_runtime.base.fields import SOURCE, TARGET
from gan_runtime.base.metrics import LOSSES, NOT_DRAWN, SCORES, Metric, Network, Panel
from gan_runtime.catalog.entries import Judgement, Picture
from gan_runtime.domains.flows import score_metrics

G, D = "generator", "discriminator"
NETWORKS = (Network(G, "Generator", "G"), Network(D, "Discriminator", "D"))

_SCORE, _SHARE = "D's score (1 = real)", "Share of patches judged correctly"
_REAL, _GENERATED = "Real images", "Generated images"
_LOSS, _NATS, _DIFFERENCE = "Weighted loss", "Cross-entropy (nats)", "Mean difference"

_OF_A_STEP = (
    Metric("loss_generator", "Generator loss", _LOSS, LOSSES, "loss", log=True, format=".3f", network=G, label="Generator"),
    Metric("loss_discriminator", "Discriminator loss", _LOSS, LOSSES, "loss", log=True, format=".3f", network=D, label="Discriminator"),
    Metric("d_real", "D's score of real images, in training", _SCORE, SCORES, "score_of_real", format=".3f", network=D, label=_REAL),
    Metric("d_fake", "D's score of generated images, in training", _SCORE, SCORES, "score_of_generated", format=".3f", network=D, label=_GENERATED),
    Metric("bce_generator", "Cross-entropy of the generator", _NATS, "Cross-entropy", format=".3f", network=G, label="G"),
    Metric("l1_difference", "Difference to the target, in training", _DIFFERENCE, "Difference", log=True, better="lower", network=G),
)  # fmt: skip
_OF_AN_EPOCH = (
    Metric("d_accuracy_real", "D's accuracy on real images", _SHARE, "Accuracy", "accuracy_on_real", per_epoch=True, format=".1%", network=D, label=_REAL),
    Metric("d_accuracy_fake", "D's accuracy on generated images", _SHARE, "Accuracy", "accuracy_on_generated", per_epoch=True, format=".1%", network=D, label=_GENERATED),
    Metric("probe_score_real", "D's score of real images, after each epoch", _SCORE, NOT_DRAWN, "judged_real", per_epoch=True, format=".3f", network=D, label=_REAL),
    Metric("probe_score_fake", "D's score of generated images, after each epoch", _SCORE, NOT_DRAWN, "judged_generated", per_epoch=True, format=".3f", network=D, label=_GENERATED),
    Metric("spread_real", "Spread of real images", "Variance of a value", "Spread", "spread_of_real", per_epoch=True, format=".3~g", label=_REAL),
    Metric("spread_fake", "Spread of generated images", "Variance of a value", "Spread", "spread_of_generated", per_epoch=True, format=".3~g", network=G, label=_GENERATED),
    Metric("tile_error", "Difference to the target, after each epoch", _DIFFERENCE, "Difference, after each epoch", "quality", per_epoch=True, log=True, better="lower", network=G, label="Output"),
    Metric("unchanged_error", "Difference between source and target", _DIFFERENCE, "Difference, after each epoch", per_epoch=True, log=True, label="Source, unchanged"),
)  # fmt: skip
METRICS = (*_OF_A_STEP, *_OF_AN_EPOCH, *score_metrics.METRICS)
PANELS = (
    Panel(LOSSES, "Generator and discriminator loss", "The generator's holds the difference, times its weight.", series="Network",
          help="Weighted losses of the newest step: generator, then discriminator."),
    Panel(SCORES, "Can the discriminator tell?", awaits="D's mean scores of real and generated images", series="Images", domain=(0.0, 1.0)),
    Panel("Cross-entropy", "Does the generator deceive it?", "0.69: D guesses."),
    Panel("Difference", "How far are the outputs from their targets?", "Of values from -1 to 1, with dropout."),
    Panel("Accuracy", "How often is the discriminator right?", "100 % on both: it wins. 50 % (dotted): it guesses.", "how often D is right", domain=(0.0, 1.0), usual=(0.5, 0.5)),
    Panel("Spread", "Do the outputs vary?", "Far below the real ones: all the same image.", "how much the images vary"),
    Panel("Difference, after each epoch", "Better than leaving the source as it is?", "The best checkpoint is where the outputs differ least.", series="Taken for the target"),
)  # fmt: skip
JUDGEMENTS = (
    Judgement("real", "Scores of real images", _SCORE, 0.0, 1.0, "real", _REAL),
    Judgement("fake", "Scores of generated images", _SCORE, 0.0, 1.0, "generated", _GENERATED),
)
GENERATED = "generated"  # beside source and target: what the generator makes of the source
PICTURES = (Picture("triplets", "Source, output and target", "triplets", (SOURCE, GENERATED, TARGET)),)
