"""Records of a trainer's measurements in an attempt (MEASURED)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gan_runtime.records.record import (
    MAX_METRICS,
    Author,
    Bytes,
    Column,
    Count,
    Document,
    Label,
    Name,
    Origin,
    Part,
    PictureName,
    Rank,
    Record,
    Row,
    RowSeries,
    RowTable,
    Step,
    agree,
)

MAX_STEPS = 10_000  # of one host call, the maximum of `steps_per_loop`
SCALARS = RowTable(
    "scalars",
    (
        *("attempt", Column("step", "", "BIGINT"), "epoch", Column("metric", "", "VARCHAR")),
        *(Column("value", "", "DOUBLE"), Column("wall_s", "", "DOUBLE")),
    ),
    series=RowSeries("metric"),
    is_public=True,
    is_exported=True,
)


class Scalars(Record):
    """Per-step numbers of one host call. Steps count from 1; `wall_s`: training seconds at the end
    of each step.
    """

    author = Author.FIRST_WORKER
    tables = (
        replace(SCALARS, parts=lambda call, origin: _parts_of_call(call, origin)),
        RowTable(
            "arrivals",
            (
                "attempt",
                Column("step", lambda call, _: call.last_step, "BIGINT"),
                Column("written_at", "at"),
            ),
            series=RowSeries(),
        ),
    )
    is_numbers_only = True
    kind: Literal["scalars"] = "scalars"
    epoch: Step
    first_step: Step
    wall_s: list[float] = Field(max_length=MAX_STEPS)
    values: dict[Name, list[float]] = Field(max_length=MAX_METRICS)

    @model_validator(mode="after")
    def _one_number_a_step(self) -> Self:
        agree(self.wall_s, *self.values.values())
        return self

    @property
    def last_step(self) -> int:
        """The last step of the call."""
        return self.first_step + len(self.wall_s) - 1


def _parts_of_call(call: Scalars, origin: Origin) -> Iterable[Part]:
    return [
        (metric, call.last_step, partial(_steps, call, origin.run_id, metric))
        for metric in call.values
    ]


def _steps(call: Scalars, run_id: str, metric: str, newest: int) -> list[Row]:
    """The numbers of one metric after step `newest`."""
    attempt, epoch, begin = call.attempt, call.epoch, call.first_step
    first = max(0, newest - begin + 1)
    numbers = zip(call.values[metric], call.wall_s, strict=True)
    return [
        (run_id, attempt, begin + index, epoch, metric, value, wall_s)
        for index, (value, wall_s) in enumerate(numbers)
        if index >= first
    ]


class WorkerTimes(Record):
    """The time of a worker in a host call, in seconds per step: computing, and waiting in
    collectives.

    The first call of an attempt, which includes compilation, is left out.
    """

    tables = (
        RowTable(
            "worker_times",
            (
                *(
                    "attempt",
                    "rank",
                    Column("step", lambda call, _: call.first_step + call.steps - 1, "BIGINT"),
                ),
                *("epoch", "steps", "step_s", "compute_s", "wait_s"),
            ),
            series=RowSeries(is_of_worker=True),
            is_public=True,
        ),
    )
    kind: Literal["worker_times"] = "worker_times"
    rank: Rank
    epoch: Step
    first_step: Step
    steps: Rank
    step_s: float
    compute_s: float
    wait_s: float


class EpochDone(Record):
    """One pass over the data. `seconds`: training calls only, without probes and checkpoints.
    `images`, `images_per_s`: None if the batch is unknown.
    """

    author = Author.FIRST_WORKER
    tables = (RowTable("epochs", series=RowSeries(), is_public=True, is_exported=True),)
    kind: Literal["epoch"] = "epoch"
    epoch: Step
    step: Step
    seconds: float
    images: Count | None
    images_per_s: float | None


class EpochScores(Record):
    """Metrics measured once per epoch, stored in the same table as per-step metrics."""

    author = Author.FIRST_WORKER
    tables = (replace(SCALARS, parts=lambda scores, origin: _parts_of_scores(scores, origin)),)
    kind: Literal["epoch_scores"] = "epoch_scores"
    epoch: Step
    step: Step
    wall_s: float
    values: dict[Name, float] = Field(max_length=MAX_METRICS)


def _parts_of_scores(scores: EpochScores, origin: Origin) -> Iterable[Part]:
    head, wall_s = (origin.run_id, scores.attempt, scores.step, scores.epoch), scores.wall_s
    return [
        (metric, scores.step, partial(_unchanged, [(*head, metric, value, wall_s)]))
        for metric, value in scores.values.items()
    ]


def _unchanged(rows: list[Row], _newest: int) -> list[Row]:
    return rows


class Histogram(Record):
    """Counts over equal bins. `bin_left`: left edges; `bin_right`: right edge of the last bin."""

    author = Author.FIRST_WORKER
    tables = (RowTable("histograms", series=RowSeries("name"), is_public=True, is_exported=True),)
    is_numbers_only = True
    kind: Literal["histogram"] = "histogram"
    step: Step
    epoch: Step
    name: Name
    bin_left: list[float]
    bin_right: float
    count: list[Count]

    @model_validator(mode="after")
    def _one_count_a_bin(self) -> Self:
        agree(self.bin_left, self.count)
        return self


class Sample(Record):
    """A grid of sample images after an epoch.

    `sample_kind`: a name of the catalog, or fixed_latents in old runs. `file`: relative to the
    run's folder.
    """

    author = Author.FIRST_WORKER
    tables = (
        RowTable(
            "samples",
            (
                *("attempt", "step", "epoch", Column("kind", "sample_kind")),
                Column(
                    "png",
                    lambda sample, origin: origin.picture(sample),
                    "BLOB USING COMPRESSION uncompressed",
                ),
                "meta",
            ),
            series=RowSeries("kind"),
            is_public=True,
        ),
    )
    kind: Literal["sample"] = "sample"
    epoch: Step
    step: Step
    sample_kind: PictureName
    file: Label
    meta: Document


class TimeShare(BaseModel):
    """The time of one category of operations in the profiled steps.

    `share`: 0 to 1. `network`, `phase` of the program: "" if unknown.
    """

    model_config = ConfigDict(frozen=True)
    network: Name
    category: Name
    seconds: float
    share: float
    phase: Name = ""


class Profile(Record):
    """The time of the last `steps` profiled steps up to `step`, by category; the shares add up to
    1.
    """

    author = Author.FIRST_WORKER
    tables = (
        RowTable(
            "profiles",
            ("attempt", "step", "steps", "network", "category", "seconds", "share", "phase"),
            each="shares",
            series=RowSeries(),
            is_public=True,
            is_exported=True,
        ),
    )
    kind: Literal["profile"] = "profile"
    step: Step
    steps: Annotated[Step, Field(ge=1)]
    seconds: float
    shares: list[TimeShare] = Field(max_length=MAX_METRICS)


class MemoryUse(Record):
    """Resident bytes of the trainer and bytes on its fullest device (None if unknown), current and
    peak.
    """

    author = Author.FIRST_WORKER
    tables = (RowTable("memory", series=RowSeries(), is_public=True, is_exported=True),)
    kind: Literal["memory"] = "memory"
    step: Step
    epoch: Step
    process_bytes: Bytes
    process_peak_bytes: Bytes
    device_bytes: Bytes | None
    device_peak_bytes: Bytes | None


class PhaseSeconds(Record):
    """Seconds of one part of the attempt: build, trace, first_call, compile, steady_step, …"""

    tables = (RowTable("phases", is_public=True, is_exported=True),)
    kind: Literal["phase"] = "phase"
    phase: Name
    seconds: float


class KernelCounts(Record):
    """The operations of one training step, counted once per attempt.

    `operations`: of the traced graph. `kernels_before`, `kernels_after`: HLO instructions that do
    work, before and after XLA's optimization; `fusions`: the fusions among the latter. None without
    XLA.
    """

    tables = (RowTable("kernels", is_public=True, is_exported=True),)
    kind: Literal["kernels"] = "kernels"
    operations: Count
    kernels_before: Count | None
    kernels_after: Count | None
    fusions: Count | None


MEASURED: tuple[type[Record], ...] = (
    *(
        Scalars,
        WorkerTimes,
        EpochDone,
        EpochScores,
        Histogram,
        Sample,
        Profile,
        MemoryUse,
    ),
    *(PhaseSeconds, KernelCounts),
)
