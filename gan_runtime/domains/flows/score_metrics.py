"""The metrics of Pix2Pix: scores of predicted frames, metrics of a training, and their charts.
Needs no library.

The evaluation `rollout` measures the scores on checkpoints, after the training. Differences are of
values from -1 to 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from gan_runtime.base.fields import GENERATED, SOURCE, TARGET
from gan_runtime.base.metrics import LOSSES, NOT_DRAWN, Better, Metric, Network, Panel, Role
from gan_runtime.base.metrics import SCORES as SCORES_PANEL
from gan_runtime.catalog.entries import Judgement, Picture

MEASURED = "flow"  # prefix of the scores among the numbers of a run (view `numbers`)
# What a score is compared with: that of the copied start frame, of the true frames or of the
# solver. All scores of frames are also compared with the replay of the nearest training film
# (domains/flows/films.py).
Reference = Literal["", "persistence", "truth", "solver"]


@dataclass(frozen=True)
class RolloutScore:
    """`name`: stored name. `unit`: "" for a plain number. `format`: Python format. `by_step`:
    whether it has one value per step, whose mean is the score. `quality`: whether it can select the
    best epoch.
    """

    name: str
    title: str
    unit: str
    format: str
    better: Better = ""
    reference: Reference = ""
    by_step: bool = True
    quality: bool = False

    @property
    def text(self) -> str:
        """The description, for help on pages."""
        return TEXTS[self.name]

    @property
    def axis(self) -> str:
        """Title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


OF_STEPS = (
    RolloutScore("mae", "Mean error", "", ".4f", "lower", "persistence", quality=True),
    RolloutScore("rmse", "Root mean square error", "", ".4f", "lower", "persistence", quality=True),
    RolloutScore("psnr", "PSNR", "dB", ".2f", "higher", "persistence"),
    RolloutScore("ssim", "SSIM", "", ".4f", "higher", "persistence"),
    RolloutScore("seam_ratio", "Seams", "", ".3f", "", "truth"),
    RolloutScore("spectrum", "Error of the spectrum", "", ".3f", "lower", "persistence"),
    RolloutScore("enstrophy_ratio", "Enstrophy", "", ".3f", "", "persistence"),
    RolloutScore("divergence", "Divergence", "U/D", ".4f", "lower", "truth"),
    RolloutScore("probe", "Velocity across, at the probe", "U", ".3f", "", "truth"),
)
OF_ROLLOUTS = (
    RolloutScore("horizon", "Horizon", "steps", ".0f", "higher"),
    RolloutScore("horizon_replay", "Replay horizon", "steps", ".0f", "higher"),
    RolloutScore(
        "rmse_period", "RMSE over a period", "", ".4f", "lower", "persistence", quality=True
    ),
    RolloutScore("ssim_period", "SSIM over a period", "", ".4f", "higher", "persistence"),
    RolloutScore("strouhal", "Strouhal number", "", ".4f", "", "truth"),
    RolloutScore(
        "strouhal_error", "Error of the Strouhal number", "", ".1%", "lower", quality=True
    ),
    RolloutScore("period", "Shedding period", "frames", ".1f", "", "truth"),
    RolloutScore("ms_frame", "Time of a frame", "ms", ".2f", "lower", "solver"),
)
SCORES = (*OF_STEPS, *(replace(score, by_step=False) for score in OF_ROLLOUTS))
BY_NAME = {score.name: score for score in SCORES}
TEXTS = {
    "mae": "Mean of |prediction − truth| over pixels and channels; values are from −1 to 1.",
    "rmse": "√ of the mean of (prediction − truth)². It hardly sees short waves.",
    "psnr": "10 log₁₀(2² / mean square error): 2 is the range of the values.",
    "ssim": "Structural similarity of prediction and truth, 1 for equal images (Wang et al. 2004).",
    "seam_ratio": "Mean difference of neighboring pixels across the borders of tiles, over that of"
    " all others: 1 without visible seams.",
    "spectrum": "Mean |log₁₀| of the ratio of both power spectra along the flow, over the"
    " wavelengths of the truth.",
    "enstrophy_ratio": "Mean square of the vorticity over that of the true frame: below 1 the"
    " vortices fade.",
    "divergence": "Mean |∂u/∂x + ∂v/∂y| outside the obstacle. It is small for the truth, a nearly"
    " incompressible fluid.",
    "probe": "In the wake of the obstacle; it oscillates once while a pair of vortices is shed.",
    "horizon": "Steps until the root mean square error first exceeds that of the copied start"
    " frame. All steps where it never does.",
    "horizon_replay": "Steps until the root mean square error first exceeds that of the replayed"
    " training film. All steps where it never does.",
    "rmse_period": "Mean over the first shedding period of the true flow. After one period a copied"
    " frame is right again.",
    "ssim_period": "Mean structural similarity over the same period.",
    "strouhal": "f D / U, with the frequency of the velocity at the probe.",
    "strouhal_error": "Relative difference to the Strouhal number of the true frames.",
    "period": "Frames in which the velocity at the probe oscillates once.",
    "ms_frame": "All stages of one frame except tracing and compiling, next to the solver's time"
    " for as many steps.",
}
METRICS = tuple(
    Metric(
        f"{MEASURED}_{score.name}",
        f"{score.title}, iterated",
        score.axis,
        NOT_DRAWN,
        "measured_quality" if score.quality else "",
        per_epoch=True,
        # A shorter time does not mean better frames.
        better="" if score.name == "ms_frame" else score.better,
        format=score.format,
    )
    for score in SCORES
    if score.name != "probe"
)


# ---- numbers of a training -----------------------------------------------------------------------

G, D = "generator", "discriminator"
NETWORKS = (Network(G, "Generator", "G"), Network(D, "Discriminator", "D"))

_SCORE, _SHARE = "D's score (1 = target)", "Share of patches classified correctly"
_TARGET, _GENERATED = "Target images", "Generated images"
_LOSS, _NATS, _DIFFERENCE = "Weighted loss", "Cross-entropy (nats)", "Mean difference"
_AFTER_EPOCH = "Difference, after each epoch"


def _both(
    metric: Metric, roles: tuple[Role, Role], networks: tuple[str, str] = (D, D)
) -> Iterator[Metric]:
    """The metric for target images, stored as "real", and for generated images, "fake"."""
    sides = (("real", "target", _TARGET), ("fake", "generated", _GENERATED))
    for (kind, side, label), role, network in zip(sides, roles, networks, strict=True):
        name, title = metric.name.format(kind), metric.title.format(side)
        yield replace(metric, name=name, title=title, role=role, network=network, label=label)


_TRAINING = (
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
    *_both(
        Metric("d_{}", "D's score of {} images, in training", _SCORE, SCORES_PANEL, format=".3f"),
        ("score_of_real", "score_of_generated"),
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
_EPOCH = (
    *_both(
        Metric("d_accuracy_{}", "D's accuracy on {} images", _SHARE, "Accuracy", format=".1%"),
        ("accuracy_on_real", "accuracy_on_generated"),
    ),
    *_both(
        Metric(
            "probe_score_{}",
            "D's score of {} images, after each epoch",
            _SCORE,
            NOT_DRAWN,
            format=".3f",
        ),
        # No roles: in training, batch norm in D reads targets and outputs by the statistics of
        # their own batches, and outputs can be of a rollout; after an epoch it uses stored
        # statistics and one frame. The same D then separates them far less, so these scores do not
        # show which network wins.
        ("", ""),
    ),
    *_both(
        Metric("spread_{}", "Spread of {} images", "Variance of a value", "Spread"),
        ("spread_of_real", "spread_of_generated"),
        networks=("", G),
    ),
    Metric(
        "tile_error",
        "Difference to the target, after each epoch",
        _DIFFERENCE,
        _AFTER_EPOCH,
        "quality",
        log=True,
        better="lower",
        network=G,
        label="Output",
    ),
    Metric(
        "unchanged_error",
        "Difference between source and target",
        _DIFFERENCE,
        _AFTER_EPOCH,
        log=True,
        label="Source, unchanged",
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
        "Generator and discriminator loss",
        "The generator's includes the weighted difference.",
        series="Network",
        help="Weighted losses of the newest step: generator, then discriminator.",
        meaning="No level is good: watch for a network that runs away from the other.",
    ),
    Panel(
        SCORES_PANEL,
        "Scores of the discriminator",
        awaits="D's mean scores of target and generated images",
        series="Images",
        domain=(0.0, 1.0),
        meaning="Near 0.5 on both the discriminator guesses; far apart it wins.",
    ),
    Panel("Cross-entropy", "Does the generator deceive D?", "At 0.69 D guesses."),
    Panel(
        "Difference",
        "How far are the outputs from their targets?",
        "Of values from -1 to 1, with dropout.",
    ),
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
        "Do the outputs vary?",
        "Far below the targets: always the same image.",
        "how much the images vary",
    ),
    Panel(
        _AFTER_EPOCH,
        "Better than leaving the source unchanged?",
        "At the best checkpoint the outputs differ least.",
        series="Compared with the target",
    ),
)
JUDGEMENTS = (
    Judgement("real", "Scores of target images", _SCORE, 0.0, 1.0, "real", _TARGET),
    Judgement("fake", "Scores of generated images", _SCORE, 0.0, 1.0, "generated", _GENERATED),
)
PICTURES = (
    Picture("triplets", "Source, output and target", "triplets", (SOURCE, GENERATED, TARGET)),
)
