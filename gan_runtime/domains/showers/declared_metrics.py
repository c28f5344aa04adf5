"""The numbers, histograms and pictures of 3DGAN, and how Live draws them. Errors are in the units that the authors tell them in."""

from __future__ import annotations

from gan_runtime.base.metrics import LOSSES, NOT_DRAWN, SCORES, Metric, Network, Panel
from gan_runtime.catalog.entries import Judgement, Picture
from gan_runtime.domains.showers import score_metrics

G, D = "generator", "discriminator"
NETWORKS = (Network(G, "Generator", "G"), Network(D, "Discriminator", "D"))

_SCORE, _SHARE = "D's score (1 = real)", "Share judged correctly"
_REAL, _GENERATED = "Real showers", "Generated showers"
_LOSS, _NATS, _PERCENT = "Weighted loss", "Cross-entropy (nats)", "Error (%)"
_PROFILE = "Error of the profile"
_SAMPLED = "Deposited / incident energy (%)"

_LOSSES = (
    Metric("loss_generator_1", "Loss of the generator, first update", _LOSS, LOSSES, "loss", log=True, network=G, label="G, first"),
    Metric("loss_generator_2", "Loss of the generator, second update", _LOSS, LOSSES, "loss", log=True, network=G, label="G, second"),
    Metric("loss_discriminator_real", "Loss of the discriminator, real showers", _LOSS, LOSSES, "loss", log=True, network=D, label="D, real"),
    Metric("loss_discriminator_fake", "Loss of the discriminator, generated showers", _LOSS, LOSSES, "loss", log=True, network=D, label="D, generated"),
)  # fmt: skip
# What the losses weigh, in their own units. Those of G are of its second update.
_TERMS = (
    Metric("d_real", "D's score of real showers, in training", _SCORE, SCORES, "score_of_real", format=".3f", network=D, label=_REAL),
    Metric("d_fake", "D's score of generated showers, in training", _SCORE, SCORES, "score_of_generated", format=".3f", network=D, label=_GENERATED),
    Metric("bce_real", "Cross-entropy of real showers", _NATS, "Cross-entropy", format=".3f", network=D, label="D, real"),
    Metric("bce_fake", "Cross-entropy of generated showers", _NATS, "Cross-entropy", format=".3f", network=D, label="D, generated"),
    Metric("bce_generator", "Cross-entropy of the generator", _NATS, "Cross-entropy", format=".3f", network=G, label="G"),
    Metric("energy_error_real", "Error of the energy that D reads from real showers", _PERCENT, "Energy", log=True, network=D, label=_REAL),
    Metric("energy_error_fake", "Error of the energy that D reads from generated showers", _PERCENT, "Energy", log=True, network=G, label=_GENERATED),
    Metric("angle_error", "Error of the measured angle, in training", "Error (rad)", "Angle", log=True, better="lower", network=G),
    Metric("deposit_error", "Error of the deposited energy, in training", _PERCENT, "Deposited energy", log=True, better="lower", network=G),
)  # fmt: skip
_OF_AN_EPOCH = (
    Metric("d_accuracy_real", "D's accuracy on real showers", _SHARE, "Accuracy", "accuracy_on_real", per_epoch=True, format=".1%", network=D, label=_REAL),
    Metric("d_accuracy_fake", "D's accuracy on generated showers", _SHARE, "Accuracy", "accuracy_on_generated", per_epoch=True, format=".1%", network=D, label=_GENERATED),
    Metric("probe_score_real", "D's score of real showers, after each epoch", _SCORE, NOT_DRAWN, "judged_real", per_epoch=True, format=".3f", network=D, label=_REAL),
    Metric("probe_score_fake", "D's score of generated showers, after each epoch", _SCORE, NOT_DRAWN, "judged_generated", per_epoch=True, format=".3f", network=D, label=_GENERATED),
    Metric("spread_real", "Spread of real showers", "Variance of a cell", "Spread", "spread_of_real", per_epoch=True, format=".3~g", label=_REAL),
    Metric("spread_fake", "Spread of generated showers", "Variance of a cell", "Spread", "spread_of_generated", per_epoch=True, format=".3~g", network=G, label=_GENERATED),
    Metric("sampling_fraction_error", "Error of the sampling fraction", "Error of the sampling fraction", "Sampling fraction", "quality", per_epoch=True, better="lower", format=".1%", network=G),
    Metric("energy_response", "Energy response", "Generated / real deposit", "Response", "response", per_epoch=True, format=".3f", network=G, label=_GENERATED),
    Metric("empty_showers", "Empty showers", "Share of the generated", "Empty", "empty_rows", per_epoch=True, better="lower", format=".1%", network=G, label=_GENERATED),
    Metric("profile_error", "Error of the profiles, mean of x, y and z", _PROFILE, NOT_DRAWN, per_epoch=True, better="lower", format=".1%", network=G),
    *(Metric(f"profile_error_{axis}", f"Error of the profile along {axis}", _PROFILE, "Profiles", per_epoch=True, format=".1%", label=axis) for axis in "xyz"),
    Metric("probe_angle_error", "Error of the measured angle, after each epoch", "Error (rad)", "Angle, after each epoch", per_epoch=True, better="lower", network=G),
)  # fmt: skip
METRICS = (*_LOSSES, *_TERMS, *_OF_AN_EPOCH, *score_metrics.METRICS)
PANELS = (
    Panel(LOSSES, "Losses of the four updates", "Weighted sums: 3, 0.1, 25 and 0.1 unless the run says otherwise.", series="Update",
          help="Weighted losses of the newest step: the generator's two updates, then the discriminator's on real and on generated showers."),
    Panel(SCORES, "Can the discriminator tell?", awaits="D's mean scores of real and generated showers", series="Showers", domain=(0.0, 1.0)),
    Panel("Cross-entropy", "Real or generated: how sure is D?", "0.69: it guesses."),
    Panel("Energy", "How well does D read the energy?", "Also what the generator is told."),
    Panel("Angle", "How far is the angle off?", "Measured on the generated image, against the one asked for."),
    Panel("Deposited energy", "How far is the sum over the cells off?", "100 %: empty showers."),
    Panel("Accuracy", "How often is the discriminator right?", "100 % on both: it wins. 50 % (dotted): it guesses.", "how often D is right", domain=(0.0, 1.0), usual=(0.5, 0.5)),
    Panel("Spread", "Do the generated showers vary?", "Far below the real ones: all the same shower.", "how much the showers vary"),
    Panel("Sampling fraction", "Is as much energy deposited as should be?", "Mean over bins of the energy; the best checkpoint is where this is smallest."),
    Panel("Response", "How much energy do the generated showers deposit?", "Beside real ones of the same energy and angle; dotted: as much.", usual=(1.0, 1.0)),
    Panel("Empty", "How many generated showers are empty?", "Below a hundredth of the real deposit.", domain=(0.0, 1.0)),
    Panel("Profiles", "Do the showers have the right shape?", "Energy in the wrong place along x, y and z, over all energy.", series="Axis"),
)  # fmt: skip
JUDGEMENTS = (
    Judgement("real", "Scores of real showers", _SCORE, 0.0, 1.0, "real", _REAL),
    Judgement("fake", "Scores of generated showers", _SCORE, 0.0, 1.0, "generated", _GENERATED),
    Judgement("sampled_real", "Sampling fractions of real showers", _SAMPLED, side="real", label=_REAL),
    Judgement(
        "sampled_fake",
        "Sampling fractions of generated showers",
        _SAMPLED,
        side="generated",
        label=_GENERATED,
    ),
)
PICTURES = (
    Picture("projections", "Showers from three sides", "shower_projections", ("showers",)),
    Picture("slices", "Showers, layer by layer", "shower_slices", ("showers",)),
)
