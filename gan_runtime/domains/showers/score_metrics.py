"""The numbers of 3DGAN: scores of generated showers beside real ones, what a training stores, and
how Live draws it.

A job measures the scores on checkpoints (domains/showers/scores.py), so they come after the
training. No library is needed for this. Errors are in the units that the authors tell them in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from gan_runtime.base.metrics import LOSSES, NOT_DRAWN, Metric, Network, Panel
from gan_runtime.base.metrics import SCORES as SCORES_PANEL
from gan_runtime.base.metrics import Better as Way
from gan_runtime.catalog.entries import Judgement, Picture

Better = Literal["lower", "floor"]  # "floor": as near to that of real showers as possible
MEASURED = "physics"  # what the names of these numbers begin with (view `numbers` of the store)
FEWEST_A_FEATURE = 4  # showers for the score `fpd`


@dataclass(frozen=True)
class ShowerScore:
    """`name`: as stored.

    `format`: of Python, for value and error. `text`: what it is, in two sentences. `published`:
    whether the CaloChallenge tells it of others. `log`: its values span decades. `quality`: whether
    an epoch may be the best by it.
    """

    name: str
    title: str
    format: str
    text: str
    better: Better = "lower"
    published: bool = False
    log: bool = False
    quality: bool = True

    @property
    def is_share(self) -> bool:
        """Whether it is told in per cent."""
        return self.format.endswith("%")

    def words(self, value: float, error: float = math.nan) -> str:
        """A value and, where one is known, its error: "2.10% ± 0.30%"; a dash where there is
        none.
        """
        known = "" if math.isnan(error) else f" ± {error:,{self.format}}"
        return "–" if math.isnan(value) else f"{value:,{self.format}}{known}"


SCORES = (
    ShowerScore(
        "sampling_fraction",
        "Error of the sampling fraction",
        ".2%",
        "Visible over incident energy: how far its mean is off, over bins of the energy. The"
        " authors of 3DGAN choose the best epoch by it.",
    ),
    ShowerScore(
        "total",
        "Moments, profiles and angle together",
        ".3f",
        "The authors' second score: the sum of the three numbers below.",
    ),
    ShowerScore(
        "moments",
        "Error of the moments",
        ".2%",
        "Mean place and variance of the energy along x, y and z: how far their means are off.",
    ),
    ShowerScore(
        "profiles",
        "Error of the profiles",
        ".1%",
        "Sums of the energy along x, y and z, cell by cell. Cells far outside, with next to no"
        " energy, count as much as the core.",
    ),
    ShowerScore(
        "angle",
        "Error of the angle",
        ".2%",
        "Angle measured on the showers: how far its mean is off, over bins of the angle.",
    ),
    ShowerScore(
        "profile_x",
        "Profile along x (KS)",
        ".3f",
        "Kolmogorov-Smirnov distance of both mean profiles: the largest difference of their running"
        " sums, 0 to 1.",
    ),
    ShowerScore("profile_y", "Profile along y (KS)", ".3f", "As along x."),
    ShowerScore("profile_z", "Profile along z (KS)", ".3f", "As along x."),
    ShowerScore(
        "correlations",
        "Error of the correlations",
        ".4f",
        "Mean squared difference of the correlation matrices of moments, energies, hits and thirds"
        " of the depth.",
    ),
    ShowerScore(
        "layers",
        "Error of the layers' correlations",
        ".3f",
        "Mean squared difference of the correlations of all layer sums over the incident energy,"
        " after artanh.",
    ),
    ShowerScore(
        "similarity",
        "Similarity of two showers (SSIM)",
        ".3f",
        "Structural similarity of two showers that have nothing to do with each other. Above that"
        " of real ones the network makes always the same.",
        "floor",
        quality=False,
    ),
    ShowerScore(
        "challenge_fpd",
        "FPD × 10³, CaloChallenge",
        ".1f",
        "Fréchet physics distance (Kansal et al. 2022) of the CaloChallenge's 2 + 8 Z features,"
        " computed as there. Few showers add to it what real ones have among themselves.",
        published=True,
        log=True,
    ),
    ShowerScore(
        "challenge_kpd",
        "KPD × 10³, CaloChallenge",
        ".2f",
        "Kernel physics distance of the same features, computed as there. Few showers add to it"
        " too.",
        published=True,
    ),
    ShowerScore(
        "fpd",
        "FPD × 10³, layer features",
        ".1f",
        "Fréchet physics distance of layer energies, centers and widths, extrapolated to infinitely"
        " many showers. Too few showers have none.",
        log=True,
    ),
    ShowerScore(
        "kpd",
        "KPD × 10³, layer features",
        ".2f",
        "Kernel physics distance of the layer features. It is 0 on average, and may be below, where"
        " both samples are alike.",
    ),
    ShowerScore(
        "separation",
        "Separation",
        ".3f",
        "Separation power of the histograms of the layer features, their mean: 0 for equal ones, 1"
        " for those that nowhere overlap.",
    ),
    ShowerScore(
        "auc_high",
        "AUC, high-level",
        ".3f",
        "A small network learns to tell real showers from generated ones by the layer features."
        " 0.5: it can only guess; 1: it never errs.",
    ),
    ShowerScore("auc_low", "AUC, low-level", ".3f", "The same from the energies of all cells."),
    ShowerScore(
        "ms_single",
        "Shower time (ms), batch 1",
        ".2f",
        "Generation on the processor of this machine, batch 1.",
        published=True,
        quality=False,
    ),
    ShowerScore(
        "ms_batch",
        "Shower time (ms), batch 100",
        ".2f",
        "Generation on the processor of this machine, batch 100.",
        published=True,
        quality=False,
    ),
)


def fewest_showers(features: int) -> int:
    """From which number on the score `fpd` of so many features is measured: its interval
    holds the truth from there on (docs/metrics.md).
    """
    return FEWEST_A_FEATURE * features


def layer_features(layers: int) -> int:
    """Incident energy; then energy, centers and widths on two axes of each layer."""
    return 1 + 5 * layers


def value_words(score: ShowerScore, value: float, error: float, showers: int, layers: int) -> str:
    """As `ShowerScore.words`; of a score that needs more showers than were compared, how many."""
    fewest = fewest_showers(layer_features(layers))
    if score.name == "fpd" and math.isnan(value) and showers < fewest:
        return f"needs at least {fewest:,} showers"
    return score.words(value, error)


def metric(score: ShowerScore) -> Metric:
    """The score as a number of a run, which Compare, studies and the choice of the best
    checkpoint read: physics_fpd.
    """
    way: Way = "lower" if score.better == "lower" else ""
    return Metric(
        f"{MEASURED}_{score.name}",
        f"{score.title}, measured",
        score.title,
        NOT_DRAWN,
        "measured_quality" if score.quality else "",
        per_epoch=True,
        log=score.log,
        better=way,
        format=score.format,
    )


METRICS = tuple(map(metric, SCORES))


# ---- values --------------------------------------------------------------------------------------
# A number and how sure it is.


@dataclass(frozen=True)
class Value:
    """`error`: one standard deviation; NaN where none is known."""

    value: float
    error: float = math.nan


# ---- curve names ---------------------------------------------------------------------------------
# What curves of showers are called, and how they are read. No library is needed for it. Scores:
# domains/showers/py.

Kind = Literal["profile", "curve", "spectrum", "shares", "matrix", "map"]


@dataclass(frozen=True)
class CurveWords:
    """`title`: the question.

    `axis`, `values`: titles of both axes, with units. `kind`: "profile" over cells, "curve" over
    energies, "spectrum" over energies of cells, "shares" of showers over a number, "matrix" row
    after row, "map" over two numbers. `judged`: whether it is what the judging network reads.
    """

    name: str
    title: str
    axis: str
    values: str
    kind: Kind
    judged: bool = False


_ENERGY, _SHOWERS = "Energy (GeV)", "Share of the showers"
CURVES = (
    CurveWords("along_z", "How deep does the energy go?", "Layer", _ENERGY, "profile"),
    CurveWords("along_y", "How wide is a shower along y?", "Cell along y", _ENERGY, "profile"),
    CurveWords("along_x", "How wide is a shower along x?", "Cell along x", _ENERGY, "profile"),
    CurveWords("layers", "Which layers go together?", "Layer", "Correlation", "matrix"),
    CurveWords(
        "sampling_fraction",
        "Which share of the energy is seen?",
        "Incident energy (GeV)",
        "Visible / incident energy",
        "curve",
    ),
    CurveWords(
        "spectrum",
        "How much energy do cells have?",
        "Energy of a cell (MeV)",
        "Cells of a shower",
        "spectrum",
    ),
    CurveWords("hits", "How many cells are hit?", "Cells above 0.2 MeV", _SHOWERS, "shares"),
    CurveWords(
        "visible", "How much energy is visible?", "Visible energy (GeV)", _SHOWERS, "shares"
    ),
    CurveWords(
        "response",
        "How much does the seen share vary?",
        "Visible / incident energy",
        _SHOWERS,
        "shares",
    ),
    CurveWords("angles", "Which angles are measured?", "Measured angle (rad)", _SHOWERS, "shares"),
    CurveWords(
        "belief",
        "Can it tell real from generated?",
        "Output of the judging network (1: real)",
        _SHOWERS,
        "shares",
        judged=True,
    ),
    CurveWords(
        "read_energy",
        "Which energy does it read?",
        "Incident energy (GeV)",
        "Read / incident energy",
        "curve",
        judged=True,
    ),
    CurveWords(
        "read_error",
        "How far is what it reads off?",
        "Read / incident energy − 1",
        _SHOWERS,
        "shares",
        judged=True,
    ),
    CurveWords(
        "angle_map", "Is the angle as asked?", "Asked angle (°)", "Measured angle (°)", "map"
    ),
    *(
        CurveWords(
            f"peak_{axis}", f"Where is the brightest cell along {axis}?", name, _SHOWERS, "shares"
        )
        for axis, name in (("z", "Layer"), ("y", "Cell along y"), ("x", "Cell along x"))
    ),
    *(
        CurveWords(
            f"mean_{axis}",
            f"Where is the middle along {axis}?",
            f"Mean along {axis} (cells)",
            _SHOWERS,
            "shares",
        )
        for axis in "zyx"
    ),
    *(
        CurveWords(
            f"width_{axis}",
            f"How wide along {axis}, shower by shower?",
            f"Width along {axis} (cells)",
            _SHOWERS,
            "shares",
        )
        for axis in "zyx"
    ),
    *(
        CurveWords(
            f"skew_{axis}",
            f"How lopsided along {axis}?",
            f"Cubic root of the third moment along {axis} (cells)",
            _SHOWERS,
            "shares",
        )
        for axis in "zyx"
    ),
)


# ---- numbers of a training -----------------------------------------------------------------------

G, D = "generator", "discriminator"
NETWORKS = (Network(G, "Generator", "G"), Network(D, "Discriminator", "D"))

_SCORE, _SHARE = "D's score (1 = real)", "Share classified correctly"
_REAL, _GENERATED = "Real showers", "Generated showers"
_LOSS, _NATS, _PERCENT = "Weighted loss", "Cross-entropy (nats)", "Error (%)"
_PROFILE = "Error of the profile"
_SAMPLED = "Deposited / incident energy (%)"

_LOSSES = (
    Metric(
        "loss_generator_1",
        "Loss of the generator, first update",
        _LOSS,
        LOSSES,
        "loss",
        log=True,
        network=G,
        label="G, first",
    ),
    Metric(
        "loss_generator_2",
        "Loss of the generator, second update",
        _LOSS,
        LOSSES,
        "loss",
        log=True,
        network=G,
        label="G, second",
    ),
    Metric(
        "loss_discriminator_real",
        "Loss of the discriminator, real showers",
        _LOSS,
        LOSSES,
        "loss",
        log=True,
        network=D,
        label="D, real",
    ),
    Metric(
        "loss_discriminator_fake",
        "Loss of the discriminator, generated showers",
        _LOSS,
        LOSSES,
        "loss",
        log=True,
        network=D,
        label="D, generated",
    ),
)
# What the losses weigh, in their own units. Those of G are of its second update.
_TERMS = (
    Metric(
        "d_real",
        "D's score of real showers, in training",
        _SCORE,
        SCORES_PANEL,
        "score_of_real",
        format=".3f",
        network=D,
        label=_REAL,
    ),
    Metric(
        "d_fake",
        "D's score of generated showers, in training",
        _SCORE,
        SCORES_PANEL,
        "score_of_generated",
        format=".3f",
        network=D,
        label=_GENERATED,
    ),
    Metric(
        "bce_real",
        "Cross-entropy of real showers",
        _NATS,
        "Cross-entropy",
        format=".3f",
        network=D,
        label="D, real",
    ),
    Metric(
        "bce_fake",
        "Cross-entropy of generated showers",
        _NATS,
        "Cross-entropy",
        format=".3f",
        network=D,
        label="D, generated",
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
    Metric(
        "energy_error_real",
        "Error of the energy that D reads from real showers",
        _PERCENT,
        "Energy",
        log=True,
        network=D,
        label=_REAL,
    ),
    Metric(
        "energy_error_fake",
        "Error of the energy that D reads from generated showers",
        _PERCENT,
        "Energy",
        log=True,
        network=G,
        label=_GENERATED,
    ),
    Metric(
        "angle_error",
        "Error of the measured angle, in training",
        "Error (rad)",
        "Angle",
        log=True,
        better="lower",
        network=G,
    ),
    Metric(
        "deposit_error",
        "Error of the deposited energy, in training",
        _PERCENT,
        "Deposited energy",
        log=True,
        better="lower",
        network=G,
    ),
)
_OF_AN_EPOCH = (
    Metric(
        "d_accuracy_real",
        "D's accuracy on real showers",
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
        "D's accuracy on generated showers",
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
        "D's score of real showers, after each epoch",
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
        "D's score of generated showers, after each epoch",
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
        "Spread of real showers",
        "Variance of a cell",
        "Spread",
        "spread_of_real",
        per_epoch=True,
        format=".3~g",
        label=_REAL,
    ),
    Metric(
        "spread_fake",
        "Spread of generated showers",
        "Variance of a cell",
        "Spread",
        "spread_of_generated",
        per_epoch=True,
        format=".3~g",
        network=G,
        label=_GENERATED,
    ),
    Metric(
        "sampling_fraction_error",
        "Error of the sampling fraction",
        "Error of the sampling fraction",
        "Sampling fraction",
        "quality",
        per_epoch=True,
        better="lower",
        format=".1%",
        network=G,
    ),
    Metric(
        "energy_response",
        "Energy response",
        "Generated / real deposit",
        "Response",
        "response",
        per_epoch=True,
        format=".3f",
        network=G,
        label=_GENERATED,
    ),
    Metric(
        "empty_showers",
        "Empty showers",
        "Share of the generated",
        "Empty",
        "empty_rows",
        per_epoch=True,
        better="lower",
        format=".1%",
        network=G,
        label=_GENERATED,
    ),
    Metric(
        "profile_error",
        "Error of the profiles, mean of x, y and z",
        _PROFILE,
        NOT_DRAWN,
        per_epoch=True,
        better="lower",
        format=".1%",
        network=G,
    ),
    *(
        Metric(
            f"profile_error_{axis}",
            f"Error of the profile along {axis}",
            _PROFILE,
            "Profiles",
            per_epoch=True,
            format=".1%",
            label=axis,
        )
        for axis in "xyz"
    ),
    Metric(
        "probe_angle_error",
        "Error of the measured angle, after each epoch",
        "Error (rad)",
        "Angle, after each epoch",
        per_epoch=True,
        better="lower",
        network=G,
    ),
)
WORKLOAD_METRICS = (*_LOSSES, *_TERMS, *_OF_AN_EPOCH, *METRICS)
PANELS = (
    Panel(
        LOSSES,
        "Losses of the four updates",
        "Weighted sums: 3, 0.1, 25 and 0.1 unless the run says otherwise.",
        series="Update",
        help=(
            "Weighted losses of the newest step: the generator's two updates, then the"
            " discriminator's on real and on generated showers."
        ),
    ),
    Panel(
        SCORES_PANEL,
        "Can the discriminator tell?",
        awaits="D's mean scores of real and generated showers",
        series="Showers",
        domain=(0.0, 1.0),
    ),
    Panel("Cross-entropy", "Real or generated: how sure is D?", "0.69: it guesses."),
    Panel("Energy", "How well does D read the energy?", "Also what the generator is told."),
    Panel(
        "Angle",
        "How far is the angle off?",
        "Measured on the generated image, against the one asked for.",
    ),
    Panel("Deposited energy", "How far is the sum over the cells off?", "100 %: empty showers."),
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
        "Do the generated showers vary?",
        "Far below the real ones: all the same shower.",
        "how much the showers vary",
    ),
    Panel(
        "Sampling fraction",
        "Is as much energy deposited as should be?",
        "Mean over bins of the energy; the best checkpoint is where this is smallest.",
    ),
    Panel(
        "Response",
        "How much energy do the generated showers deposit?",
        "Beside real ones of the same energy and angle; dotted: as much.",
        usual=(1.0, 1.0),
    ),
    Panel(
        "Empty",
        "How many generated showers are empty?",
        "Below a hundredth of the real deposit.",
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
    Judgement("real", "Scores of real showers", _SCORE, 0.0, 1.0, "real", _REAL),
    Judgement("fake", "Scores of generated showers", _SCORE, 0.0, 1.0, "generated", _GENERATED),
    Judgement(
        "sampled_real", "Sampling fractions of real showers", _SAMPLED, side="real", label=_REAL
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
