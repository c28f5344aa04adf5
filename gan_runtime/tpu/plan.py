"""Which programs a check compiles, and the names under which their answers are kept.

Imports no framework.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from gan_runtime.base.errors import AcceleratorError, DatasetError, quoted
from gan_runtime.base.fields import SOURCE, Field, Fields
from gan_runtime.data import loading
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from gan_runtime.tpu.estimates import TOPOLOGIES, Point, Topology

BATCHES = (64, 128, 256, 512)  # the paper's
PRECISIONS = ("mixed_bfloat16", "float32")
LIBRARIES = ("jax", "jaxlib", "libtpu", "keras")
THERE = {
    "engine": "jax",
    "workers": 1,
    "accelerator": "tpu",
    "tpu_address": "local",
    "xla": "off",
}  # what a check takes for granted
Program = Literal[
    "step", "frame"
]  # of the training; or the prediction of a frame, in tiles over all cores
PACKAGE = Path(__file__).resolve().parent.parent
CODE = (
    "catalog",
    "domains",
    "engines",
    "tpu",
    "workloads",
)  # what decides over a program and its reading
# Options that change nothing about the program of a step.
WITHOUT_EFFECT = frozenset(
    {
        "name",
        "engine",
        "accelerator",
        "tpu_address",
        "xla",
        "seed",
        "workers",
        "epochs",
        "samples_from",
        "alarm_action",
        "still_action",
        "resume_lost",
    }
    | {
        "collapse_share",
        "d_wins_score",
        "keep_checkpoints",
        "pictures_every",
        "count_kernels",
        "all_reduce_pack_mb",
        "weight_snapshots",
    }
)


@dataclass(frozen=True)
class Reading:
    """What the steps of a run read: the fields of a batch, of how many rows, and whether
    these are streamed or lie on the device.
    """

    fields: Fields
    rows: int
    streamed: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain values, which `from_json` reads again."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Reading:
        """The record that `to_json` made."""
        fields = {name: _field(stored) for name, stored in values["fields"].items()}
        return cls(fields, values["rows"], values["streamed"])


def _field(stored: dict[str, Any]) -> Field:
    """JSON has lists where the record has tuples."""
    return Field(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored.items()
        }  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class CheckPlan:
    """A check: options of a run, what its steps read, the points to compile, the run itself
    first, and what of it is compiled.
    """

    spec: RunSpec
    reading: Reading
    points: tuple[Point, ...]
    program: Program = "step"

    @property
    def point(self) -> Point:
        """The run itself."""
        return self.points[0]

    @property
    def topology(self) -> Topology:
        """The TPU that is asked about."""
        return TOPOLOGIES[self.point.topology]

    @property
    def images(self) -> int:
        """Rows of one epoch."""
        return self.reading.rows

    @cached_property
    def keys(self) -> list[str]:
        """The names of the answers, in the order of the points."""
        return [key(self, point) for point in self.points]

    def steps_per_epoch(self, point: Point) -> int:
        """Steps of one epoch with the batch of a point."""
        return at(self.spec, point).steps_per_epoch(self.images)


def reading(spec: RunSpec, home: Home | None = None) -> Reading:
    """What the steps of a run read; a prepared data set is looked for in `home`.

    Raises:
        DatasetError: no such data set, or one that does not fit the workload.
    """
    name = spec.dataset
    return Reading(
        loading.check(spec, home), loading.rows(name, home), loading.is_streamed(name, home)
    )


def at(spec: RunSpec, point: Point) -> RunSpec:
    """`spec` on the devices of a point. Raises SpecError."""
    here = {
        "batch_size_global": point.batch_size_global,
        "precision": point.precision,
        "replicas": point.devices,
    }
    return RunSpec.parse({**spec.model_dump(), **here, **THERE})


def make(
    values: dict[str, Any],
    topology: str,
    sweep: bool = True,
    home: Home | None = None,
    program: Program = "step",
) -> CheckPlan:
    """The check of a run with these options on all devices of a topology.

    `sweep`: also the other precision, the paper's batch sizes, and fewer devices with the same
    batch. `home`: where prepared data sets lie. A frame has no batch, so that there only precision
    and devices are swept.

    Raises:
        AcceleratorError: no such topology; the message lists those there are.
        SpecError: an option is wrong, or the batch cannot be shared by the devices.
        DatasetError: the data set does not fit the workload, or fills no step, as when a run is
            submitted; or a frame is asked for, and the
            workload is not an image-to-image model.
    """
    if topology not in TOPOLOGIES:
        raise AcceleratorError(
            f"topology is {quoted(topology)}, but allowed is {', '.join(TOPOLOGIES)}: pick one of"
            " them."
        )
    devices = TOPOLOGIES[topology].devices
    spec = RunSpec.parse({**values, "replicas": devices, **THERE})
    read = reading(spec, home)
    spec.check_set(read.rows)
    point = Point(topology, devices, spec.batch_size_global, spec.precision)
    if program == "frame" and SOURCE not in read.fields:
        raise DatasetError(
            f"data set {spec.dataset} has no {SOURCE}, so there is no frame to make another of:"
            " leave out the frame, or choose a set that has."
        )
    others = [other for other in _sweep(point) if other != point] if sweep else []
    if program == "frame":
        others = [other for other in others if other.batch_size_global == point.batch_size_global]
    return CheckPlan(spec, read, (point, *others), program)


def _sweep(point: Point) -> list[Point]:
    others = [one for one in PRECISIONS if one != point.precision]
    batches = [one for one in BATCHES if one % point.devices == 0]
    fewer = [count for count in (1, 2, 4, 8) if count < point.devices]
    found = [with_precision(point, one) for one in others]
    found += [Point(point.topology, point.devices, one, point.precision) for one in batches]
    found += [
        Point(point.topology, one, point.batch_size_global, point.precision)
        for one in fewer
        if point.batch_size_global % one == 0
    ]
    return list(dict.fromkeys(found))


def with_precision(point: Point, precision: str) -> Point:
    """The same program in another number format."""
    return replace(point, precision=precision)


def missing_library() -> str:
    """Why nothing can be compiled here, in one sentence; "" when it can be."""
    lacking = [name for name in LIBRARIES if not _version(name)]
    if not lacking:
        return ""
    return (
        f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed here: the"
        " TPU's compiler exists for Linux on x86-64 only. Run `make setup` on a machine of this"
        " kind."
    )


@cache
def versions() -> dict[str, str]:
    """Of the compiler and what feeds it, without loading it."""
    return {name: _version(name) for name in LIBRARIES}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def key(plan: CheckPlan, point: Point) -> str:
    """The same for the same program: options that matter, what is read, point, versions of
    the libraries and of our own code.
    """
    matters = {
        name: value
        for name, value in at(plan.spec, point).flat().items()
        if name not in WITHOUT_EFFECT
    }
    made_of = [
        matters,
        plan.reading.to_json(),
        asdict(point),
        plan.program,
        versions(),
        code_version(),
    ]
    return hashlib.sha256(json.dumps(made_of, sort_keys=True, default=str).encode()).hexdigest()[
        :24
    ]


@cache
def code_version() -> str:
    """Of the files that decide over a program and over how it is read, as they were when this
    process first asked.
    """
    digest = hashlib.sha256()
    for place in CODE:
        for file in sorted((PACKAGE / place).rglob("*.py")):
            if file.parent.name != "tf":
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
