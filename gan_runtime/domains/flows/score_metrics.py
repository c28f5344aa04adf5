"""Scores of a model that is fed with its own pictures: what they are called, how they are read, and which number of a run each is.

A job measures them on checkpoints (domains/flows/rollout.py), so they come after the training. No library is needed for this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gan_runtime.base.metrics import NOT_DRAWN, Better, Metric

MEASURED = "flow"  # what the names of these numbers begin with (view `numbers` of the store)
# What stands beside a number: the same of the copied start frame, of the true frames, of the solver; or nothing. The replay of the nearest
# training film stands beside all that is measured of frames (domains/flows/rollout_answer.py).
Reference = Literal["", "persistence", "truth", "solver"]


@dataclass(frozen=True)
class RolloutScore:
    """`name`: as stored. `unit`: "" for a plain number. `format`: of Python. `text`: what it is. `by_step`: whether there is one a step,
    of which the single number is the mean. `quality`: whether an epoch may be the best by it: lower is better."""

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
    RolloutScore("mae", "Mean error", "", ".4f", "Mean of |prediction − truth| over pixels and channels; values lie in −1 to 1.", "lower", "persistence", quality=True),
    RolloutScore("rmse", "Root mean square error", "", ".4f", "√ of the mean of (prediction − truth)².", "lower", "persistence", quality=True),
    RolloutScore("psnr", "PSNR", "dB", ".2f", "10 log₁₀(2² / mean square error): 2 is the range of the values.", "higher", "persistence"),
    RolloutScore("ssim", "SSIM", "", ".4f", "Structural similarity of prediction and truth, 1 for equal pictures (Wang et al. 2004).", "higher", "persistence"),
    RolloutScore("seam_ratio", "Seams", "", ".3f", "Mean difference of pixels across the borders of tiles over that of all other neighbors: 1 where no seam is seen.", "", "truth"),
    RolloutScore("spectrum", "Error of the spectrum", "", ".3f", "Mean |log₁₀| of the ratio of both power spectra along the flow, over the wavelengths that the truth holds.", "lower", "persistence"),
    RolloutScore("enstrophy_ratio", "Enstrophy", "", ".3f", "Mean square of the vorticity over that of the true frame: below 1 the vortices fade.", "", "persistence"),
    RolloutScore("divergence", "Divergence", "U/D", ".4f", "Mean |∂u/∂x + ∂v/∂y| outside the obstacle: the fluid hardly compresses, so that of the truth is small.", "lower", "truth"),
    RolloutScore("probe", "Velocity across, at the probe", "U", ".3f", "In the wake of the obstacle; it swings once while a pair of vortices is shed.", "", "truth"),
    RolloutScore("horizon", "Horizon", "steps", ".0f", "Steps until the root mean square error first exceeds that of the copied start frame; all steps where it never does.", "higher", by_step=False),
    RolloutScore("horizon_replay", "Replay horizon", "steps", ".0f", "Steps until the root mean square error first exceeds that of the replay of the nearest training film; all steps where it never does.", "higher", by_step=False),
    RolloutScore("rmse_period", "RMSE over a period", "", ".4f", "Its mean over the first shedding period of the true flow: after one, a frame that stands still is right again.", "lower", "persistence", by_step=False, quality=True),
    RolloutScore("ssim_period", "SSIM over a period", "", ".4f", "The same of the structural similarity.", "higher", "persistence", by_step=False),
    RolloutScore("strouhal", "Strouhal number", "", ".4f", "f D / U, with the frequency at which the probe swings.", "", "truth", by_step=False),
    RolloutScore("strouhal_error", "Error of the Strouhal number", "", ".1%", "Its distance from that of the true frames, over the latter.", "lower", by_step=False, quality=True),
    RolloutScore("period", "Shedding period", "frames", ".1f", "Frames in which the probe swings once.", "", "truth", by_step=False),
    RolloutScore("ms_frame", "Time of a frame", "ms", ".2f", "All stages of one frame but tracing and compiling; beside it the solver's own time for as many steps.", "lower", "solver", by_step=False),
)  # fmt: skip
BY_NAME = {score.name: score for score in SCORES}


def metric(score: RolloutScore) -> Metric:
    """The score as a number of a run, which Compare, studies and the choice of the best checkpoint read: flow_rmse."""
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
