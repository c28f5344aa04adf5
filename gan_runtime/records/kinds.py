"""What stands in the journals: one kind of record for each thing that a run, its trainer or its owner tells. Times are UTC.

A record checks itself when it is made or read: what the store or a page could not take never gets past here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gan_runtime.records.columns import (
    Attempt,
    Bytes,
    Count,
    Document,
    Kind,
    Moment,
    Name,
    Options,
    PictureName,
    Rank,
    Step,
)
from gan_runtime.records.states import Status

Level = Literal["info", "warning", "error"]


def now() -> datetime:
    """The present in UTC."""
    return datetime.now(UTC)


class _Record(BaseModel):
    # NaN must survive the way to the store: a loss that became NaN is a fact worth keeping.
    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    attempt: Attempt = 1
    at: Moment = Field(default_factory=lambda: now())


def _agree(*lists: list[float] | list[int]) -> None:
    """Raises ValueError when some lists of a record are of different lengths."""
    if len({len(numbers) for numbers in lists}) > 1:
        raise ValueError("its lists must be of one length")


class StudyPlace(BaseModel):
    """A run's place in its study: which variant (in words, and as a number from 0), which repeat (from 1).

    `question`: a key of studies/questions.py. All runs of a study say the same of it, so that it lives as long as one of them.
    """

    model_config = ConfigDict(frozen=True)
    study_id: str
    question: str
    title: str
    variant: str
    variant_index: Rank
    repeat: Rank


class Created(_Record):
    """A run was submitted. `accelerator` is the resolved one, `color` its index in the run palette, `preset` may be empty.

    `images_per_step`: real images of one step; None in a run from before it was written. `asker`: who asked for it, such as
    "dashboard"; empty where nobody wrote it down, here and below.
    """

    kind: Literal["created"] = "created"
    spec: Options
    accelerator: Kind
    color: Rank
    preset: str = ""
    study: StudyPlace | None = None
    images_per_step: Count | None = None
    asker: str = ""


class StatusChange(_Record):
    """The run passed into another state, with the reason in words. `queue_rank` orders waiting runs; `waits_for`: the job
    that prepares the data set of a waiting run, empty when the data is at hand; `asker`: of a resume or a move in the queue."""

    kind: Literal["status"] = "status"
    status: Status
    reason: str
    queue_rank: float | None = None
    waits_for: str = ""
    asker: str = ""


class Changed(_Record):
    """A person resumed the run with other values of some options: from this attempt on it has the options in `spec`."""

    kind: Literal["changed"] = "changed"
    spec: Options


class Renamed(_Record):
    """A person gave the run another name."""

    kind: Literal["renamed"] = "renamed"
    name: Name
    asker: str = ""


class HostFacts(_Record):
    """The machine and software of an attempt."""

    kind: Literal["host"] = "host"
    facts: Document


class AttemptStart(_Record):
    """An attempt goes on after `resume_step`; what earlier attempts measured beyond it is void."""

    kind: Literal["attempt"] = "attempt"
    resume_step: Step


class Plan(_Record):
    """What the attempt will do: images in the set, steps in an epoch, epochs.

    `images_per_step`: real ones that a step takes; `updates`: how often it changes each network. Old journals do not say: 0, {}.
    """

    kind: Literal["plan"] = "plan"
    images: Count
    steps_per_epoch: Step
    epochs: Step
    images_per_step: Count = 0
    updates: dict[Name, Count] = Field(default_factory=dict)


class Scalars(_Record):
    """Per-step numbers of one host call. Step numbers start at 1; `wall_s`: training seconds at the end of each step."""

    kind: Literal["scalars"] = "scalars"
    epoch: Step
    first_step: Step
    wall_s: list[float]
    values: dict[Name, list[float]]

    @model_validator(mode="after")
    def _one_number_a_step(self) -> Self:
        _agree(self.wall_s, *self.values.values())
        return self


class WorkerTimes(_Record):
    """How one of several workers spent a host call, in seconds per step: own work, and time inside collectives.

    The first call of an attempt, which holds the compiling, is left out.
    """

    kind: Literal["worker_times"] = "worker_times"
    rank: Rank
    epoch: Step
    first_step: Step
    steps: Rank
    step_s: float
    compute_s: float
    wait_s: float


class EpochDone(_Record):
    """One pass over the data. `seconds`: its training calls alone, without probes and checkpoints."""

    kind: Literal["epoch"] = "epoch"
    epoch: Step
    step: Step
    seconds: float
    images: Count
    images_per_s: float


class EpochScores(_Record):
    """Numbers that are measured once an epoch (docs/metrics.md); they are stored beside the per-step ones."""

    kind: Literal["epoch_scores"] = "epoch_scores"
    epoch: Step
    step: Step
    wall_s: float
    values: dict[Name, float]


class Histogram(_Record):
    """Counts over equal bins; `bin_left` holds the left edges and `bin_right` the right edge of the last bin."""

    kind: Literal["histogram"] = "histogram"
    epoch: Step
    step: Step
    name: Name
    bin_left: list[float]
    bin_right: float
    count: list[Count]

    @model_validator(mode="after")
    def _one_count_a_bin(self) -> Self:
        _agree(self.bin_left, self.count)
        return self


class Sample(_Record):
    """A picture after an epoch. `sample_kind`: the name of its catalog entry, or fixed_latents in older runs; `file` is relative to
    the run's folder."""

    kind: Literal["sample"] = "sample"
    epoch: Step
    step: Step
    sample_kind: PictureName
    file: str
    meta: Document


class TimeShare(BaseModel):
    """What one kind of work took of the profiled steps. `share`: 0 to 1; `network`: "" where none is known."""

    model_config = ConfigDict(frozen=True)
    network: Name
    category: Name
    seconds: float
    share: float


class Profile(_Record):
    """Where the time of `steps` steps went that ran under the profiler, up to and with `step`; the shares add up to 1."""

    kind: Literal["profile"] = "profile"
    step: Step
    steps: Step
    seconds: float
    shares: list[TimeShare]


class Memory(_Record):
    """Resident bytes of the trainer's process, and bytes on its fullest device (None where unknown): now, and at most so far."""

    kind: Literal["memory"] = "memory"
    epoch: Step
    step: Step
    process_bytes: Bytes
    process_peak_bytes: Bytes
    device_bytes: Bytes | None
    device_peak_bytes: Bytes | None


class Phase(_Record):
    """Seconds that one part of the attempt took: build, trace, first_call, compile, steady_step, …"""

    kind: Literal["phase"] = "phase"
    phase: Name
    seconds: float


class Kernels(_Record):
    """What one training step is made of, counted once an attempt (docs/metrics.md).

    `operations`: of the traced graph. The other three are None where XLA compiles nothing: HLO instructions that do work
    before and after XLA's optimizing, and how many of the latter are fusions.
    """

    kind: Literal["kernels"] = "kernels"
    operations: Count
    kernels_before: Count | None
    kernels_after: Count | None
    fusions: Count | None


class Surface(_Record):
    """The loss of a network in nats on the plane of its weights' path (surface/plane.py), and the path itself.

    `loss`: row after row, `x` fastest, on the grid of `x` and `y`; `path_loss`: at the points of the path, as they lie in the
    plane. `share_x`, `share_y`: of all squared movement of the weights, along each axis. `images`: real ones looked at.
    """

    kind: Literal["surface"] = "surface"
    network: Name
    x: list[float]
    y: list[float]
    loss: list[float]
    path_epoch: list[Step]
    path_x: list[float]
    path_y: list[float]
    path_loss: list[float]
    share_x: float
    share_y: float
    images: Count

    @model_validator(mode="after")
    def _whole_grid_and_path(self) -> Self:
        if len(self.loss) != len(self.x) * len(self.y):
            raise ValueError("loss must have a number for each point of the grid")
        _agree(self.path_epoch, self.path_x, self.path_y, self.path_loss)
        return self


class Event(_Record):
    """Something worth telling a person."""

    kind: Literal["event"] = "event"
    level: Level
    topic: Name
    message: str


Record = (
    Created
    | StatusChange
    | Changed
    | Renamed
    | HostFacts
    | AttemptStart
    | Plan
    | Scalars
    | WorkerTimes
    | EpochDone
    | EpochScores
    | Histogram
    | Sample
    | Profile
    | Memory
    | Phase
    | Kernels
    | Surface
    | Event
)
