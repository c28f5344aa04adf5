"""The programs that a check compiles, and the names of their answers.

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
# The options of every run on a TPU.
ON_A_TPU = {
    "engine": "jax",
    "workers": 1,
    "accelerator": "tpu",
    "tpu_address": "local",
    "xla": "off",
    "profile_steps": 0,  # JAX has no step profile
}
# A training step, or the prediction of a frame in tiles over all cores.
Program = Literal["step", "frame"]
PACKAGE = Path(__file__).resolve().parent.parent
CODE = ("catalog", "domains", "engines", "tpu", "workloads")  # packages that a program depends on
# Options that do not change the program of a step.
WITHOUT_EFFECT = frozenset(
    {
        "name",
        "engine",
        "accelerator",
        "target",
        "job_options",
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
        "quality_every",
        "count_kernels",
        "all_reduce_pack_mb",
        "weight_snapshots",
    }
)


@dataclass(frozen=True)
class Reading:
    """The input of a run's steps: the fields of a batch, the rows of the data set, and whether
    these are streamed or in the device's memory.
    """

    fields: Fields
    rows: int
    streamed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `from_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Reading:
        """The inverse of `to_json`."""
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
    """A check: the options of a run, the input of its steps, the points to compile (the run itself
    first), and the program.
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
        """The TPU of the check."""
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
    """What the steps of a run read. `home`: of prepared data sets.

    Raises:
        DatasetError: no such data set, or one that does not fit the workload.
    """
    name = spec.dataset
    return Reading(
        loading.check(spec, home), loading.rows(name, home), loading.is_streamed(name, home)
    )


def at(spec: RunSpec, point: Point) -> RunSpec:
    """`spec` on the devices of a point. Raises SpecError."""
    changed = {
        "batch_size_global": point.batch_size_global,
        "precision": point.precision,
        "replicas": point.devices,
    }
    return RunSpec.parse({**spec.model_dump(), **changed, **ON_A_TPU})


def make(
    values: dict[str, Any],
    topology: str,
    sweep: bool = True,
    home: Home | None = None,
    program: Program = "step",
) -> CheckPlan:
    """The check of a run with these options on all devices of a topology.

    `sweep`: also the other precision, the paper's batch sizes, and fewer devices with the same
    batch; for a frame, which has no batch, only precision and devices. `home`: of prepared data
    sets.

    Raises:
        AcceleratorError: no such topology; the message lists them.
        SpecError: an option is wrong, or the batch is no multiple of the devices.
        DatasetError: the data set does not fit the workload or fills no step; or the program is a
            frame, and the workload is not an image-to-image model.
    """
    if topology not in TOPOLOGIES:
        raise AcceleratorError(
            f"topology is {quoted(topology)}, but allowed is {', '.join(TOPOLOGIES)}: pick one of"
            " them."
        )
    devices = TOPOLOGIES[topology].devices
    spec = RunSpec.parse({**values, "replicas": devices, **ON_A_TPU})
    read = reading(spec, home)
    spec.check_set(read.rows)
    point = Point(topology, devices, spec.batch_size_global, spec.precision)
    if program == "frame" and SOURCE not in read.fields:
        raise DatasetError(
            f"data set {spec.dataset} has no {SOURCE}, so there is no frame to predict from:"
            " leave out --frame, or use a data set with one."
        )
    points = [other for other in _sweep(point) if other != point] if sweep else []
    if program == "frame":
        points = [other for other in points if other.batch_size_global == point.batch_size_global]
    return CheckPlan(spec, read, (point, *points), program)


def _sweep(point: Point) -> list[Point]:
    precisions = [precision for precision in PRECISIONS if precision != point.precision]
    batches = [batch for batch in BATCHES if batch % point.devices == 0]
    fewer = [count for count in (1, 2, 4, 8) if count < point.devices]
    points = [with_precision(point, precision) for precision in precisions]
    points += [replace(point, batch_size_global=batch) for batch in batches]
    points += [
        replace(point, devices=count) for count in fewer if point.batch_size_global % count == 0
    ]
    return list(dict.fromkeys(points))


def with_precision(point: Point, precision: str) -> Point:
    """The same program in another number format."""
    return replace(point, precision=precision)


def missing_library() -> str:
    """The reason why this host cannot compile for a TPU, as a sentence; "" if it can."""
    lacking = [name for name in LIBRARIES if not installed_version(name)]
    if not lacking:
        return ""
    return (
        f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed here: the"
        " TPU's compiler exists for Linux on x86-64 only. Run `make setup` on a machine of this"
        " kind."
    )


@cache
def versions() -> dict[str, str]:
    """The versions of the compiler and its libraries, without loading them."""
    return {name: installed_version(name) for name in LIBRARIES}


def installed_version(name: str) -> str:
    """The version of a package, "" if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def key(plan: CheckPlan, point: Point) -> str:
    """A hash of all that the program depends on: options, data, point, libraries and code."""
    parts = [
        effective_options(at(plan.spec, point)),
        plan.reading.to_json(),
        asdict(point),
        plan.program,
        versions(),
        code_version(),
    ]
    return digest(parts)


def effective_options(spec: RunSpec) -> dict[str, Any]:
    """The options that change the program of a step."""
    return {name: value for name, value in spec.flat().items() if name not in WITHOUT_EFFECT}


def digest(parts: list[Any]) -> str:
    """The name of an answer, from all that its program depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]


@cache
def code_version(folders: tuple[str, ...] = CODE) -> str:
    """A hash of the files of these packages, as they were at the first call."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            if file.parent.name != "tf":
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
