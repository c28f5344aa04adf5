"""The evaluation that computes loss surfaces: its options, and when a run has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gan_runtime.base.errors import RunStateError
from gan_runtime.base.fields import Fields
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.entries import Options, WorkloadEntry
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.evaluation.catalog import Report
from gan_runtime.jobs.job import ON_THE_CPU
from gan_runtime.records.home import Home
from gan_runtime.records.journal import ENDED
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.training import checkpoints

NAME = "loss_surface"


class SurfaceOptions(OptionRecord):
    """How fine the grid is."""

    size: int = option(
        21,
        label="Grid",
        unit="points",
        ge=5,
        le=41,
        help="Points along each side of the grid on which the losses are computed.",
        source="Li et al. 2018, arXiv:1712.09913, section 7",
        error="use 21, or fewer for a faster and coarser surface.",
    )


def applies(_entry: WorkloadEntry, _options: Options, _fields: Fields) -> str:
    """To every workload."""
    return ""


def lacking(_home: Home, run: RunDir) -> str:
    """Why a run has no loss surface now: it trains, or has kept too few weights."""
    status = latest_status(run).status
    if status not in ENDED:
        return f"run {run.run_id} is {status}: its loss surface can be computed once it has ended."
    kept = len(checkpoints.snapshot_epochs(run.snapshots))
    if kept < checkpoints.FEWEST_SNAPSHOTS:
        return (
            f"run {run.run_id} has kept {kept} weight snapshots, but a loss surface needs"
            f" {checkpoints.FEWEST_SNAPSHOTS}: train it with weight_snapshots=yes for two epochs or"
            " more."
        )
    return ""


def check(home: Home, run: RunDir, _options: SurfaceOptions) -> None:
    """Raises RunStateError where something is lacking."""
    if reason := lacking(home, run):
        raise RunStateError(reason)


def report(_home: Home, run: RunDir, _result: Mapping[str, Any]) -> Report:
    """Where the surfaces are."""
    sentence = (
        f"the loss surfaces of {run.run_id} are computed: an open dashboard draws them as Fig. 11"
        " of its Paper page."
    )
    return Report({"run_id": run.run_id, "journal": run.evaluations_journal}, [sentence])


LOSS_SURFACE = Evaluation(
    name=NAME,
    title="Loss surface",
    summary=(
        "The losses of each network on the plane of its own descent, from the weights that were"
        " kept after each epoch."
    ),
    verb="Compute loss surfaces",
    options=SurfaceOptions,
    applies=applies,
    lacking=lacking,
    check=check,
    needs_checkpoint=False,
    scores=(),
    work="gan_runtime.evaluation.loss_surface:compute",
    aliases=("surface",),
    report="gan_runtime.evaluation.surface_options:report",
    earlier_jobs=("compute_surface",),
    busy="the loss surfaces of run {run_id} are being computed",
    environment=ON_THE_CPU,
)
