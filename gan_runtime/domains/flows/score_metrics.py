"""The numbers of Pix2Pix: scores of predicted frames, what a training stores, and how Live draws
it.

A job measures the scores on checkpoints, so they come after the training. No library is needed for
this. Differences are of values from -1 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gan_runtime.base.fields import SOURCE, TARGET
from gan_runtime.base.metrics import LOSSES, NOT_DRAWN, Better, Metric, Network, Panel
from gan_runtime.base.metrics import SCORES as SCORES_PANEL
from gan_runtime.catalog.entries import Judgement, Picture

MEASURED = "flow"  # what the names of these numbers begin with (view `numbers` of the store)
# What stands beside a number: the same of the copied start frame, of the true frames, of the
# solver; or nothing. The replay of the nearest training film stands beside all that is measured of
# frames (domains/flows/rollout_answer.py).
Reference = Literal["", "persistence", "truth", "solver"]


@dataclass(frozen=True)
class RolloutScore:
    """`name`: as stored.

    `unit`: "" for a plain number. `format`: of Python. `text`: what it is. `by_step`: whether there
    is one a step, of which the single number is the mean. `quality`: whether an epoch may be the
    best by it: lower is better.
    """

    name: str
    title: str
    unit: str
    format: str
    text: str
    better: Better = ""
    reference: Reference = ""
    by_step: bool = True
    quality: bool = False

    @property
    def axis(self) -> str:
        """With the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


SCORES = (
    RolloutScore(
        "mae",
        "Mean error",
        "",
        ".4f",
        "Mean of |prediction − truth| over pixels and channels; values lie in −1 to 1.",
        "lower",
        "persistence",
        quality=True,
    ),
    RolloutScore(
        "rmse",
        "Root mean square error",
        "",
        ".4f",
        "√ of the mean of (prediction − truth)².",
        "lower",
        "persistence",
        quality=True,
    ),
    RolloutScore(
        "psnr",
        "PSNR",
        "dB",
        ".2f",
        "10 log₁₀(2² / mean square error): 2 is the range of the values.",
        "higher",
        "persistence",
    ),
    RolloutScore(
        "ssim",
        "SSIM",
        "",
        ".4f",
        "Structural similarity of prediction and truth, 1 for equal pictures (Wang et al. 2004).",
        "higher",
        "persistence",
    ),
    RolloutScore(
        "seam_ratio",
        "Seams",
        "",
        ".3f",
        "Mean difference of pixels across the borders of tiles over that of all other neighbors: 1"
        " where no seam is seen.",
        "",
        "truth",
    ),
    RolloutScore(
        "spectrum",
        "Error of the spectrum",
        "",
        ".3f",
        "Mean |log₁₀| of the ratio of both power spectra along the flow, over the wavelengths that"
        " the truth holds.",
        "lower",
        "persistence",
    ),
    RolloutScore(
        "enstrophy_ratio",
        "Enstrophy",
        "",
        ".3f",
        "Mean square of the vorticity over that of the true frame: below 1 the vortices fade.",
        "",
        "persistence",
    ),
    RolloutScore(
        "divergence",
        "Divergence",
        "U/D",
        ".4f",
        "Mean |∂u/∂x + ∂v/∂y| outside the obstacle: the fluid hardly compresses, so that of the"
        " truth is small.",
        "lower",
        "truth",
    ),
    RolloutScore(
        "probe",
        "Velocity across, at the probe",
        "U",
        ".3f",
        "In the wake of the obstacle; it swings once while a pair of vortices is shed.",
        "",
        "truth",
    ),
    RolloutScore(
        "horizon",
        "Horizon",
        "steps",
        ".0f",
        "Steps until the root mean square error first exceeds that of the copied start frame; all"
        " steps where it never does.",
        "higher",
        by_step=False,
    ),
    RolloutScore(
        "horizon_replay",
        "Replay horizon",
        "steps",
        ".0f",
        "Steps until the root mean square error first exceeds that of the replay of the nearest"
        " training film; all steps where it never does.",
        "higher",
        by_step=False,
    ),
    RolloutScore(
        "rmse_period",
        "RMSE over a period",
        "",
        ".4f",
        "Its mean over the first shedding period of the true flow: after one, a frame that stands"
        " still is right again.",
        "lower",
        "persistence",
        by_step=False,
        quality=True,
    ),
    RolloutScore(
        "ssim_period",
        "SSIM over a period",
        "",
        ".4f",
        "The same of the structural similarity.",
        "higher",
        "persistence",
        by_step=False,
    ),
    RolloutScore(
        "strouhal",
        "Strouhal number",
        "",
        ".4f",
        "f D / U, with the frequency at which the probe swings.",
        "",
        "truth",
        by_step=False,
    ),
    RolloutScore(
        "strouhal_error",
        "Error of the Strouhal number",
        "",
        ".1%",
        "Its distance from that of the true frames, over the latter.",
        "lower",
        by_step=False,
        quality=True,
    ),
    RolloutScore(
        "period",
        "Shedding period",
        "frames",
        ".1f",
        "Frames in which the probe swings once.",
        "",
        "truth",
        by_step=False,
    ),
    RolloutScore(
        "ms_frame",
        "Time of a frame",
        "ms",
        ".2f",
        "All stages of one frame but tracing and compiling; beside it the solver's own time for as"
        " many steps.",
        "lower",
        "solver",
        by_step=False,
    ),
)
BY_NAME = {score.name: score for score in SCORES}


def metric(score: RolloutScore) -> Metric:
    """The score as a number of a run, which Compare, studies and the choice of the best
    checkpoint read: flow_rmse.
    """
    return Metric(
        f"{MEASURED}_{score.name}",
        f"{score.title}, iterated",
        score.axis,
        NOT_DRAWN,
        "measured_quality" if score.quality else "",
        per_epoch=True,
        better=score.better,
        format=score.format,
    )


METRICS = tuple(metric(score) for score in SCORES if score.name != "probe")


# ---- numbers of a training -----------------------------------------------------------------------

G, D = "generator", "discriminator"
NETWORKS = (Network(G, "Generator", "G"), Network(D, "Discriminator", "D"))

_SCORE, _SHARE = "D's score (1 = real)", "Share of patches classified correctly"
_REAL, _GENERATED = "Real images", "Generated images"
_LOSS, _NATS, _DIFFERENCE = "Weighted loss", "Cross-entropy (nats)", "Mean difference"

_OF_A_STEP = (
    Metric(
        "loss_generator",
        "Generator loss",
        _LOSS,
        LOSSES,
        "loss",
        log=True,
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
        log=True,
        format=".3f",
        network=D,
        label="Discriminator",
    ),
    Metric(
        "d_real",
        "D's score of real images, in training",
        _SCORE,
        SCORES_PANEL,
        "score_of_real",
        format=".3f",
        network=D,
        label=_REAL,
    ),
    Metric(
        "d_fake",
        "D's score of generated images, in training",
        _SCORE,
        SCORES_PANEL,
        "score_of_generated",
        format=".3f",
        network=D,
        label=_GENERATED,
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
        "l1_difference",
        "Difference to the target, in training",
        _DIFFERENCE,
        "Difference",
        log=True,
        better="lower",
        network=G,
    ),
)
_OF_AN_EPOCH = (
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
        "Variance of a value",
        "Spread",
        "spread_of_real",
        per_epoch=True,
        format=".3~g",
        label=_REAL,
    ),
    Metric(
        "spread_fake",
        "Spread of generated images",
        "Variance of a value",
        "Spread",
        "spread_of_generated",
        per_epoch=True,
        format=".3~g",
        network=G,
        label=_GENERATED,
    ),
    Metric(
        "tile_error",
        "Difference to the target, after each epoch",
        _DIFFERENCE,
        "Difference, after each epoch",
        "quality",
        per_epoch=True,
        log=True,
        better="lower",
        network=G,
        label="Output",
    ),
    Metric(
        "unchanged_error",
        "Difference between source and target",
        _DIFFERENCE,
        "Difference, after each epoch",
        per_epoch=True,
        log=True,
        label="Source, unchanged",
    ),
)
WORKLOAD_METRICS = (*_OF_A_STEP, *_OF_AN_EPOCH, *METRICS)
PANELS = (
    Panel(
        LOSSES,
        "Generator and discriminator loss",
        "The generator's holds the difference, times its weight.",
        series="Network",
        help="Weighted losses of the newest step: generator, then discriminator.",
    ),
    Panel(
        SCORES_PANEL,
        "Can the discriminator tell?",
        awaits="D's mean scores of real and generated images",
        series="Images",
        domain=(0.0, 1.0),
    ),
    Panel("Cross-entropy", "Does the generator deceive it?", "0.69: D guesses."),
    Panel(
        "Difference",
        "How far are the outputs from their targets?",
        "Of values from -1 to 1, with dropout.",
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
        "Do the outputs vary?",
        "Far below the real ones: all the same image.",
        "how much the images vary",
    ),
    Panel(
        "Difference, after each epoch",
        "Better than leaving the source as it is?",
        "The best checkpoint is where the outputs differ least.",
        series="Taken for the target",
    ),
)
JUDGEMENTS = (
    Judgement("real", "Scores of real images", _SCORE, 0.0, 1.0, "real", _REAL),
    Judgement("fake", "Scores of generated images", _SCORE, 0.0, 1.0, "generated", _GENERATED),
)
GENERATED = "generated"  # beside source and target: what the generator makes of the source
PICTURES = (
    Picture("triplets", "Source, output and target", "triplets", (SOURCE, GENERATED, TARGET)),
)
