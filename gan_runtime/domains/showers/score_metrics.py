"""The metrics of 3DGAN: scores of generated against held-out showers, metrics of a training, and
their charts. Needs no library.

The evaluation `physics` measures the scores on checkpoints (domains/showers/scores.py), after the
training. Errors are in the units of the authors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from gan_runtime.base.metrics import LOSSES, NOT_DRAWN, Better, Metric, Network, Panel, Role
from gan_runtime.base.metrics import SCORES as SCORES_PANEL
from gan_runtime.catalog.entries import Judgement, Picture

MEASURED = "physics"  # prefix of the scores among the numbers of a run (view `numbers`)
FEWEST_A_FEATURE = 4  # showers for the score `fpd`


@dataclass(frozen=True)
class ShowerScore:
    """`name`: stored name. `format`: Python format for value and error. `better`: "" if the floor,
    the score of two sets of simulated showers, is best, and of a time. `log`: whether its values
    span decades. `quality`: whether it can select the best epoch.
    """

    name: str
    title: str
    format: str
    better: Better = "lower"
    log: bool = False
    quality: bool = True

    @property
    def text(self) -> str:
        """The description, for help on pages."""
        return TEXTS[self.name]

    def words(self, value: float, error: float = math.nan) -> str:
        """A value with its error, "2.10% ± 0.30%"; a dash for NaN."""
        margin = "" if math.isnan(error) else f" ± {error:,{self.format}}"
        return "–" if math.isnan(value) else f"{value:,{self.format}}{margin}"


SCORES = (
    ShowerScore("sampling_fraction", "Error of the sampling fraction", ".2%"),
    ShowerScore("total", "Moments, profiles and angle together", ".3f"),
    ShowerScore("moments", "Error of the moments", ".2%"),
    ShowerScore("profiles", "Error of the profiles", ".1%"),
    ShowerScore("angle", "Error of the angle", ".2%"),
    ShowerScore("profile_x", "Profile along x (KS)", ".3f"),
    ShowerScore("profile_y", "Profile along y (KS)", ".3f"),
    ShowerScore("profile_z", "Profile along z (KS)", ".3f"),
    ShowerScore("correlations", "Error of the correlations", ".4f"),
    ShowerScore("layers", "Error of the layers' correlations", ".3f"),
    ShowerScore("similarity", "Similarity of two showers (SSIM)", ".3f", "", quality=False),
    ShowerScore("challenge_fpd", "FPD × 10³, CaloChallenge", ".1f", log=True),
    ShowerScore("challenge_kpd", "KPD × 10³, CaloChallenge", ".2f"),
    ShowerScore("fpd", "FPD × 10³, layer features", ".1f", log=True),
    ShowerScore("kpd", "KPD × 10³, layer features", ".2f"),
    ShowerScore("separation", "Separation", ".3f"),
    ShowerScore("auc_high", "AUC, high-level", ".3f"),
    ShowerScore("auc_low", "AUC, low-level", ".3f"),
    ShowerScore("ms_single", "Shower time (ms), batch 1", ".2f", "", quality=False),
    ShowerScore("ms_batch", "Shower time (ms), batch 100", ".2f", "", quality=False),
)
TEXTS = {
    "sampling_fraction": "Relative error of the mean visible over incident energy, over bins of the"
    " energy. The authors of 3DGAN select the best epoch by it.",
    "total": "The authors' second score: the sum of the next three.",
    "moments": "Relative error of the mean centers and variances of the energy along x, y and z.",
    "profiles": "Relative error of the mean energy in each place along x, y and z. Faint places at"
    " the border count as much as the core.",
    "angle": "Relative error of the mean measured angle, over bins of the angle.",
    "profile_x": "Kolmogorov-Smirnov distance of the mean profiles: the largest difference of their"
    " cumulative sums, 0 to 1.",
    "profile_y": "As along x.",
    "profile_z": "As along x.",
    "correlations": "Mean squared difference of the correlations of moments, energies, hits and"
    " thirds of the depth.",
    "layers": "Mean squared difference of the correlations of the layer energies over the incident"
    " energy, after artanh.",
    "similarity": "Structural similarity of two unrelated showers. Above that of simulated showers,"
    " the network generates too little variety.",
    "challenge_fpd": "Fréchet physics distance (Kansal et al. 2022) of the CaloChallenge's 2 + 8 Z"
    " features, computed as there. Few showers raise it, and that of real against real.",
    "challenge_kpd": "Kernel physics distance of the same features, computed as there. Few showers"
    " raise it too.",
    "fpd": "Fréchet physics distance of layer energies, centers and widths, extrapolated to"
    " infinitely many showers. It needs four showers a feature.",
    "kpd": "Kernel physics distance of the layer features. For two sets of one distribution it is 0"
    " on average, so it can be negative.",
    "separation": "Mean separation power of the histograms of the layer features: 0 for equal"
    " histograms, 1 for disjoint ones.",
    "auc_high": "Area under the ROC curve of a small classifier on the layer features. 0.5: it"
    " guesses; 1: it is always right.",
    "auc_low": "The same for a classifier on the energies of all cells.",
    "ms_single": "Generation on the processor of this machine, batch 1.",
    "ms_batch": "Generation on the processor of this machine, batch 100.",
}


def fewest_showers(features: int) -> int:
    """The fewest showers for the score `fpd` of so many features: from there on its interval
    covers the true value (docs/metrics.md).
    """
    return FEWEST_A_FEATURE * features


def layer_features(layers: int) -> int:
    """Incident energy; then energy, centers and widths on two axes of each layer."""
    return 1 + 5 * layers


def value_words(score: ShowerScore, value: float, error: float, showers: int, layers: int) -> str:
    """As `ShowerScore.words`; for an `fpd` of too few showers, the number that it needs."""
    fewest = fewest_showers(layer_features(layers))
    if score.name == "fpd" and math.isnan(value) and showers < fewest:
        return f"needs at least {fewest:,} showers"
    return score.words(value, error)


METRICS = tuple(
    Metric(
        f"{MEASURED}_{score.name}",
        f"{score.title}, measured",
        score.title,
        NOT_DRAWN,
        "measured_quality" if score.quality else "",
        per_epoch=True,
        log=score.log,
        better=score.better,
        format=score.format,
    )
    for score in SCORES
)


@dataclass(frozen=True)
class Estimate:
    """A number and its standard deviation, NaN where that is unknown."""

    value: float
    error: float = math.nan


# ---- numbers of a training -----------------------------------------------------------------------

G, D = "generator", "discriminator"
NETWORKS = (Network(G, "Generator", "G"), Network(D, "Discriminator", "D"))

_SCORE, _SHARE = "D's score (1 = simulated)", "Share classified correctly"
_SIMULATED, _GENERATED = "Simulated showers", "Generated showers"
_LOSS, _NATS, _PERCENT = "Weighted loss", "Cross-entropy (nats)", "Error (%)"
_RAD, _VARIANCE, _PROFILE = "Error (rad)", "Variance of a cell", "Error of the profile"
_FRACTION = "Error of the sampling fraction"
_DEPOSIT, _SAMPLED = "Deposited energy", "Deposited / incident energy (%)"
_ANGLE_AFTER_EPOCH = "Angle, after each epoch"

_error = partial(Metric, better="lower", network=G)
_share = partial(_error, format=".1%")


def _both(
    metric: Metric,
    roles: tuple[Role, Role] = ("", ""),
    networks: tuple[str, str] = (D, D),
    labels: tuple[str, str] = (_SIMULATED, _GENERATED),
) -> Iterator[Metric]:
    """The metric for simulated showers, stored as "real", and for generated showers, "fake"."""
    sides = (("real", "simulated"), ("fake", "generated"))
    for (kind, side), role, network, label in zip(sides, roles, networks, labels, strict=True):
        name, title = metric.name.format(kind), metric.title.format(side)
        yield replace(metric, name=name, title=title, role=role, network=network, label=label)


_TRAINING = (
    *(
        Metric(
            f"loss_generator_{number}",
            f"Loss of the generator, {update} update",
            _LOSS,
            LOSSES,
            "loss",
            log=True,
            network=G,
            label=f"G, {update}",
        )
        for number, update in ((1, "first"), (2, "second"))
    ),
    *_both(
        Metric(
            "loss_discriminator_{}",
            "Loss of the discriminator, {} showers",
            _LOSS,
            LOSSES,
            log=True,
        ),
        roles=("loss", "loss"),
        labels=("D, simulated", "D, generated"),
    ),
    # What the losses weigh, in their own units. Those of G are of its second update.
    *_both(
        Metric("d_{}", "D's score of {} showers, in training", _SCORE, SCORES_PANEL, format=".3f"),
        roles=("score_of_real", "score_of_generated"),
    ),
    *_both(
        Metric("bce_{}", "Cross-entropy of {} showers", _NATS, "Cross-entropy", format=".3f"),
        labels=("D, simulated", "D, generated"),
    ),
    Metric(
        "bce_generator",
        "Cross-entropy of the generator",
        _NATS,
        "Cross-entropy",
        format=".3f",
        network=G,
        label="G",
    ),
    *_both(
        Metric(
            "energy_error_{}",
            "Error of the energy that D reads from {} showers",
            _PERCENT,
            "Energy",
            log=True,
        ),
        networks=(D, G),
    ),
    _error("angle_error", "Error of the measured angle, in training", _RAD, "Angle", log=True),
    _error(
        "deposit_error", "Error of the deposited energy, in training", _PERCENT, _DEPOSIT, log=True
    ),
)
_EPOCH = (
    *_both(
        Metric("d_accuracy_{}", "D's accuracy on {} showers", _SHARE, "Accuracy", format=".1%"),
        roles=("accuracy_on_real", "accuracy_on_generated"),
    ),
    *_both(
        Metric(
            "probe_score_{}",
            "D's score of {} showers, after each epoch",
            _SCORE,
            NOT_DRAWN,
            format=".3f",
        ),
        roles=("judged_real", "judged_generated"),
    ),
    *_both(
        Metric("spread_{}", "Spread of {} showers", _VARIANCE, "Spread"),
        roles=("spread_of_real", "spread_of_generated"),
        networks=("", G),
    ),
    _share("sampling_fraction_error", _FRACTION, _FRACTION, "Sampling fraction", "quality"),
    Metric(
        "energy_response",
        "Energy response",
        "Generated / simulated deposit",
        "Response",
        "response",
        format=".3f",
        network=G,
        label=_GENERATED,
    ),
    _share("empty_showers", "Empty showers", "Share of the generated", "Empty", "empty_rows"),
    _share("profile_error", "Error of the profiles, mean of x, y and z", _PROFILE, NOT_DRAWN),
    *(
        Metric(
            f"profile_error_{axis}",
            f"Error of the profile along {axis}",
            _PROFILE,
            "Profiles",
            format=".1%",
            label=axis,
        )
        for axis in "xyz"
    ),
    _error(
        "probe_angle_error",
        "Error of the measured angle, after each epoch",
        _RAD,
        _ANGLE_AFTER_EPOCH,
    ),
)
WORKLOAD_METRICS = (
    *_TRAINING,
    *(replace(metric, per_epoch=True) for metric in _EPOCH),
    *METRICS,
)
PANELS = (
    Panel(
        LOSSES,
        "Losses of the four updates",
        "Weighted sums, by default with the weights 3, 0.1, 25 and 0.1.",
        series="Update",
        help=(
            "Weighted losses of the newest step: both updates of the generator, then the"
            " discriminator on simulated and on generated showers."
        ),
        meaning="No level is good: watch for a network that runs away from the other.",
    ),
    Panel(
        SCORES_PANEL,
        "Scores of the discriminator",
        awaits="D's mean scores of simulated and generated showers",
        series="Showers",
        domain=(0.0, 1.0),
        meaning="Near 0.5 on both the discriminator guesses; far apart it wins.",
    ),
    Panel("Cross-entropy", "How sure is the discriminator?", "At 0.69 it guesses."),
    Panel("Energy", "How well does D read the energy?", "The generator learns from it too."),
    Panel(
        "Angle",
        "How far off is the angle?",
        "Measured on the generated shower, against the requested one.",
    ),
    Panel(
        _ANGLE_AFTER_EPOCH,
        "How far off is the angle after each epoch?",
        "Of the measured showers, against the requested angle.",
    ),
    Panel(_DEPOSIT, "How far off is the sum over the cells?", "100%: empty showers."),
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
        "Do the generated showers vary?",
        "Far below the simulated ones: always the same shower.",
        "how much the showers vary",
    ),
    Panel(
        "Sampling fraction",
        "Is the deposited energy right?",
        "Mean over bins of the energy; smallest at the best checkpoint.",
    ),
    Panel(
        "Response",
        "How much energy do the generated showers deposit?",
        "Relative to simulated ones of the same energy and angle; dotted: equal.",
        usual=(1.0, 1.0),
    ),
    Panel(
        "Empty",
        "How many generated showers are empty?",
        "Below a hundredth of the simulated deposit.",
        domain=(0.0, 1.0),
    ),
    Panel(
        "Profiles",
        "Do the showers have the right shape?",
        "Energy in the wrong place along x, y and z, over all energy.",
        series="Axis",
    ),
)
JUDGEMENTS = (
    Judgement("real", "Scores of simulated showers", _SCORE, 0.0, 1.0, "real", _SIMULATED),
    Judgement("fake", "Scores of generated showers", _SCORE, 0.0, 1.0, "generated", _GENERATED),
    Judgement(
        "sampled_real",
        "Sampling fractions of simulated showers",
        _SAMPLED,
        side="real",
        label=_SIMULATED,
    ),
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
