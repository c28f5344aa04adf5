"""What a trainer writes down of an attempt: its host, its plan, and everything that it measures."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gan_runtime.records.columns import (
    MAX_METRICS,
    Bytes,
    Count,
    Document,
    Label,
    Name,
    PictureName,
    Rank,
    Step,
)
from gan_runtime.records.entry import Entry, agree

MAX_STEPS = 10_000  # of one host call, as `steps_per_loop` allows


class HostFacts(Entry):
    """The machine and software of an attempt."""

    kind: Literal["host"] = "host"
    facts: Document


class AttemptStart(Entry):
    """An attempt goes on after `resume_step`; what earlier attempts measured beyond it is void."""

    kind: Literal["attempt"] = "attempt"
    resume_step: Step


class Plan(Entry):
    """What the attempt will do: images in the set, steps in an epoch, epochs.

    `images_per_step`: real ones that a step takes; `updates`: how often it changes each network. Old journals do not say: 0, {}.
    """

    kind: Literal["plan"] = "plan"
    images: Count
    steps_per_epoch: Step
    epochs: Step
    images_per_step: Count = 0
    updates: dict[Name, Count] = Field(default_factory=dict, max_length=MAX_METRICS)


class Scalars(Entry):
    """Per-step numbers of one host call. Step numbers start at 1; `wall_s`: training seconds at the end of each step."""

    kind: Literal["scalars"] = "scalars"
    epoch: Step
    first_step: Step
    wall_s: list[float] = Field(max_length=MAX_STEPS)
    values: dict[Name, list[float]] = Field(max_length=MAX_METRICS)

    @model_validator(mode="after")
    def _one_number_a_step(self) -> Self:
        agree(self.wall_s, *self.values.values())
        return self


class WorkerTimes(Entry):
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


class EpochDone(Entry):
    """One pass over the data. `seconds`: its training calls alone, without probes and checkpoints."""

    kind: Literal["epoch"] = "epoch"
    epoch: Step
    step: Step
    seconds: float
    images: Count
    images_per_s: float


class EpochScores(Entry):
    """Numbers that are measured once an epoch (docs/metrics.md); they are stored beside the per-step ones."""

    kind: Literal["epoch_scores"] = "epoch_scores"
    epoch: Step
    step: Step
    wall_s: float
    values: dict[Name, float] = Field(max_length=MAX_METRICS)


class Histogram(Entry):
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
        agree(self.bin_left, self.count)
        return self


class Sample(Entry):
    """A picture after an epoch. `sample_kind`: the name of its catalog entry, or fixed_latents in older runs; `file` is relative to
    the run's folder."""

    kind: Literal["sample"] = "sample"
    epoch: Step
    step: Step
    sample_kind: PictureName
    file: Label
    meta: Document


class TimeShare(BaseModel):
    """What one kind of work took of the profiled steps. `share`: 0 to 1; `network` and `phase` (of the program): "" where none is known."""

    model_config = ConfigDict(frozen=True)
    network: Name
    category: Name
    seconds: float
    share: float
    phase: Name = ""


class Profile(Entry):
    """Where the time of `steps` steps went that ran under the profiler, up to and with `step`; the shares add up to 1."""

    kind: Literal["profile"] = "profile"
    step: Step
    steps: Annotated[Step, Field(ge=1)]
    seconds: float
    shares: list[TimeShare] = Field(max_length=MAX_METRICS)


class Memory(Entry):
    """Resident bytes of the trainer's process, and bytes on its fullest device (None where unknown): now, and at most so far."""

    kind: Literal["memory"] = "memory"
    epoch: Step
    step: Step
    process_bytes: Bytes
    process_peak_bytes: Bytes
    device_bytes: Bytes | None
    device_peak_bytes: Bytes | None


class Phase(Entry):
    """Seconds that one part of the attempt took: build, trace, first_call, compile, steady_step, …"""

    kind: Literal["phase"] = "phase"
    phase: Name
    seconds: float


class Kernels(Entry):
    """What one training step is made of, counted once an attempt (docs/metrics.md).

    `operations`: of the traced graph. The other three are None where XLA compiles nothing: HLO instructions that do work
    before and after XLA's optimizing, and how many of the latter are fusions.
    """

    kind: Literal["kernels"] = "kernels"
    operations: Count
    kernels_before: Count | None
    kernels_after: Count | None
    fusions: Count | None


class Surface(Entry):
    """The loss of a network in nats on the plane of its weights' path (evaluation/descent_plane.py), and the path itself.

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
        agree(self.path_epoch, self.path_x, self.path_y, self.path_loss)
        return self
