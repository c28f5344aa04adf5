"""Whether this host can train a run now, asked once for every door: form, command line, studies,
queue.

Resolves the engine and the accelerator, looks at the data set, estimates memory and disk. Writes
nothing, and fetches no data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gan_runtime.base import disk
from gan_runtime.base.errors import (
    AcceleratorError,
    CheckpointError,
    DatasetError,
    FieldError,
    SpecError,
    UnknownRunError,
)
from gan_runtime.data import loading
from gan_runtime.data.contract import Availability
from gan_runtime.hardware import host_presets
from gan_runtime.hardware.hosts import Host
from gan_runtime.jobs import data_jobs
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from gan_runtime.training import memory_estimate, starting_point

Result = TypeVar("Result")
TOO_LITTLE_MEMORY = (
    "This is more than the memory of this host: lower the global batch or the number of workers."
)


@dataclass(frozen=True)
class Admission:
    """A run that this host can train.

    `spec`: with the engine that `auto` stands for, so that every attempt has the same one.

    `accelerator`: cpu, gpu or tpu. `data`: what there is of its data set; None while that is in the
    making. `memory_bytes`: of all its processes, an estimate; None then. `checkpoint_bytes`: of all
    that it keeps on the disk; 0 then. `warnings`: what makes it slow or may end it, in sentences.
    """

    spec: RunSpec
    accelerator: str
    data: Availability | None
    memory_bytes: float | None
    checkpoint_bytes: int
    warnings: tuple[str, ...] = ()

    @property
    def waits_for_data(self) -> bool:
        """Whether its data set is in the making, or has to be fetched or made first."""
        return self.data is None or not self.data.ready


def admit(spec: RunSpec, host: Host, home: Home | None = None, after: str = "") -> Admission:
    """`home`: where prepared data sets lie.

    One in the making cannot be looked at yet: then the trainer does it. `after`: the run that this
    one waits for, if any, whose checkpoints may be still to come.

    Raises:
        SpecError: this host cannot train that, with a sentence for each option that is in the way.
    """
    wrong: list[FieldError] = []
    accelerator = _tried(lambda: host.resolve(spec), "accelerator", wrong)
    resolved = _resolved(spec, host, accelerator, wrong) if accelerator else None
    is_in_the_making = home is not None and data_jobs.preparing_job(home, spec.dataset) is not None
    data = fields = None
    if not is_in_the_making and (
        fields := _tried(lambda: loading.check(spec, home), "dataset", wrong)
    ):
        data = _tried(lambda: _enough(spec, home), "dataset", wrong)
    if home is not None:
        _tried(lambda: starting_point.check(home, spec, after), "start_from", wrong)
    if wrong or accelerator is None or resolved is None:
        raise SpecError(wrong)
    if fields is None:
        return Admission(resolved, accelerator, None, None, 0, _warnings(resolved, host, None))
    memory = memory_estimate.memory_bytes(spec, home)
    checkpoints = memory_estimate.checkpoints_bytes(spec, fields)
    return Admission(
        resolved, accelerator, data, memory, checkpoints, _warnings(resolved, host, memory)
    )


def require_space(home: Home, admissions: Sequence[Admission]) -> None:
    """A run that nobody can start or follow, or that has no room for its checkpoints, must not wait
    unseen.

    Raises:
        HomeError: the disk has too little space for these runs together.
    """
    needed = sum(admission.checkpoint_bytes for admission in admissions)
    purpose = "starting a run" if len(admissions) < 2 else f"starting {len(admissions)} runs"
    disk.require(
        home.path,
        disk.LEAST_BYTES + needed,
        f"{purpose} with its checkpoints" if needed else purpose,
    )


def _enough(spec: RunSpec, home: Home | None) -> Availability:
    data = loading.availability(spec.dataset, home)
    spec.check_set(data.images)
    return data


def _resolved(
    spec: RunSpec, host: Host, accelerator: str, wrong: list[FieldError]
) -> RunSpec | None:
    """Rules that name an accelerator or an engine hold for what `auto` stands for here as well."""
    try:
        engine = host.engine(spec)
        RunSpec.parse({**spec.model_dump(), "accelerator": accelerator, "engine": engine})
        return RunSpec.parse({**spec.model_dump(), "engine": engine})
    except SpecError as error:
        wrong.extend(error.errors)
    except AcceleratorError as error:
        wrong.append(FieldError("accelerator", str(error)))
    return None


def _tried(ask: Callable[[], Result], field: str, wrong: list[FieldError]) -> Result | None:
    try:
        return ask()
    except (AcceleratorError, DatasetError, CheckpointError, UnknownRunError) as error:
        wrong.append(FieldError(field, str(error)))
        return None


def _warnings(spec: RunSpec, host: Host, memory_bytes: float | None) -> tuple[str, ...]:
    too_large = TOO_LITTLE_MEMORY if (memory_bytes or 0.0) > host.memory_bytes else ""
    return tuple(filter(None, (host_presets.caution(spec), too_large)))
