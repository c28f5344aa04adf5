"""The targets of a home, in its file targets.toml: a table for each, without secrets.

[atlas]
kind = "slurm"
partition = "gpu"
accelerator = "gpu"
prelude = ["module load cuda"]

[box]
kind = "ssh"
host = "box.example.org"
home = "gan-dashboard-runs/3f2a91"
"""

from __future__ import annotations

import json
import re
import secrets
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from gan_runtime.base.errors import TargetSettingError
from gan_runtime.records import run_files
from gan_runtime.records.home import IS_INSTALLED, REPOSITORY, Home
from gan_runtime.records.run_folder import write_whole
from gan_runtime.spec import RunSpec

NAME = r"[a-z0-9][a-z0-9-]{0,39}"
# One line without control characters, so that a setting cannot add lines to a batch script.
Line = Annotated[str, StringConstraints(max_length=1_000, pattern=r"^[^\x00-\x1f\x7f]*$")]
# A value of an option of sbatch.
Value = Annotated[str, StringConstraints(max_length=200, pattern=r"^[\w.,:@&|*/+=-]*$")]

# A word of `ssh`, which would take one that begins with a hyphen for an option.
HostName = Annotated[str, StringConstraints(max_length=200, pattern=r"^([\w.@:][\w.@:+-]*)?$")]


CLONE = "gan-dashboard"  # a clone of the project in the user's folder on another host


@dataclass(frozen=True)
class QueryPace:
    """How often a target is asked. `most_seconds`: the longest pause after failures. `rest`: the
    shortest pause, in durations of the last query.
    """

    poll_seconds: float
    most_seconds: float
    rest: float


class _Target(BaseModel):
    """What all targets have. `prelude`: lines of the script before the trainer starts. `most_jobs`:
    of this home at the same time. `poll_seconds`: between two queries.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    prelude: tuple[Line, ...] = ()
    most_jobs: int = Field(default=20, ge=1, le=1_000)
    poll_seconds: float = Field(default=30.0, ge=1.0, le=600.0)

    @property
    def pace(self) -> QueryPace:
        """A cluster serves many users."""
        return QueryPace(self.poll_seconds, most_seconds=600.0, rest=5.0)


class _Apart(_Target):
    """What targets have that can be apart from the home here. Paths without a slash first are of
    the user's folder there.

    `home`: a folder there that no other dashboard uses; "" if the target sees the home here.
    `project`: a clone of the project there; "" if it is installed in `python`.
    """

    project: Line | None = None
    python: Line = ""
    home: Line = ""

    @field_validator("project", "python", "home")
    @classmethod
    def _from_user_folder(cls, path: str | None) -> str | None:
        """Also accepts paths that begin with ~/."""
        return path and path.removeprefix("~/")

    @property
    def clone(self) -> str:
        """The clone of the project there, by default that of this process if its home is seen."""
        if self.project is not None:
            return self.project
        here = "" if IS_INSTALLED else str(REPOSITORY)
        return CLONE if self.home else here

    @property
    def interpreter(self) -> str:
        """The Python of the project there, by default likewise."""
        return self.python or (f"{self.clone}/.venv/bin/python" if self.home else sys.executable)


class SlurmTarget(_Apart):
    """A Slurm cluster. Its nodes see the home under the same path, or have one in the folder
    `home` there.

    `host`: as `ssh HOST` names the login node; empty if this host has Slurm's commands.
    `accelerator`: of runs with accelerator=auto. `partition` to `memory`: options of sbatch.
    `extra`: further options of sbatch. `requeue`: whether Slurm may start a job again that a node
    failure or another job has ended.
    """

    kind: Literal["slurm"] = "slurm"
    host: HostName = ""
    accelerator: Literal["cpu", "gpu"] = "cpu"
    partition: Value = ""
    account: Value = ""
    qos: Value = ""
    constraint: Value = ""
    time_limit: Value = ""
    memory: Value = ""
    cpus_per_task: int = Field(default=0, ge=0, le=1024)
    extra: tuple[Line, ...] = ()
    requeue: bool = True

    @model_validator(mode="after")
    def _is_reached(self) -> SlurmTarget:
        if self.home and not self.host:
            raise ValueError("a cluster with another home needs a login node: name its host")
        return self

    @property
    def pace(self) -> QueryPace:
        """With a home there, a round includes the time of copies, which is no load of Slurm."""
        return super().pace if not self.home else replace(super().pace, rest=0.0)


class SshTarget(_Apart):
    """A host that ssh reaches, with a home for the runs of this one.

    `host`: as `ssh HOST` names it. `command`: the words that take the place of `ssh HOST`.
    `accelerator`: of runs with accelerator=auto.
    """

    kind: Literal["ssh"]
    host: HostName = Field(min_length=1)
    command: tuple[Line, ...] = ()
    home: Line = Field(min_length=1)
    accelerator: Literal["cpu", "gpu", "tpu"] = "cpu"
    most_jobs: int = Field(default=1, ge=1, le=1_000)
    poll_seconds: float = Field(default=2.0, ge=1.0, le=600.0)

    @property
    def pace(self) -> QueryPace:
        """A laptop is often offline for a while."""
        return QueryPace(self.poll_seconds, most_seconds=30.0, rest=0.0)


class KubernetesTarget(_Target):
    """A cluster that `kubectl` reaches, with the home on a claim that its pods mount under the path
    that it has here.

    `host`: where `kubectl` runs, as `ssh HOST` names it; empty for this host. `image`: with this
    project, built from Dockerfile or Dockerfile.gpu. `claim`: the persistent volume claim.
    `cpus`, `memory`: of each worker.
    """

    kind: Literal["kubernetes"]
    host: HostName = ""
    image: Value = Field(min_length=1)
    claim: Value = Field(min_length=1)
    namespace: Value = "default"
    accelerator: Literal["cpu", "gpu"] = "cpu"
    cpus: Value = "2"
    memory: Value = "4Gi"


AnyTarget = SlurmTarget | SshTarget | KubernetesTarget


KINDS: dict[str, type[AnyTarget]] = {
    "slurm": SlurmTarget,
    "ssh": SshTarget,
    "kubernetes": KubernetesTarget,
}


def accelerators(kind: str) -> tuple[str, ...]:
    """The accelerators that a kind of target can have."""
    return get_args(KINDS[kind].model_fields["accelerator"].annotation)


def targets_of(home: Home) -> dict[str, AnyTarget]:
    """The targets by name; {} without the file.

    Raises TargetSettingError: the file cannot be read, or a setting is wrong.
    """
    path = home.targets
    try:
        text = run_files.content(path).decode()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise TargetSettingError(f"{path} cannot be read: {error}.") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TargetSettingError(f"{path} is not TOML: {error}.") from None
    return {name: parsed(name, values) for name, values in tables.items()}


def target(home: Home | None, name: str) -> AnyTarget:
    """The target of this name. Raises TargetSettingError."""
    targets = targets_of(home) if home is not None else {}
    if name not in targets:
        raise TargetSettingError(unknown(name, targets))
    return targets[name]


def is_apart(home: Home, spec: RunSpec) -> bool:
    """Whether a run trains in a home on another host, and its files are copied to here."""
    options = targets_of(home).get(spec.target)
    return isinstance(options, _Apart) and bool(options.home)


def unknown(name: str, targets: Mapping[str, AnyTarget]) -> str:
    """The sentence about a target that this home does not have."""
    known = f"use {', '.join(targets)}, or here" if targets else "use here"
    return (
        f"target is {name}, but this home has no such target: {known}, or add it (docs/cluster.md)."
    )


def parsed(name: str, values: object) -> AnyTarget:
    """The settings of one target. Raises TargetSettingError."""
    if not re.fullmatch(NAME, name):
        raise TargetSettingError(
            f"the target's name is {name!r}, but allowed are 1 to 40 of a-z, 0-9 and '-'."
        )
    kind = values.get("kind", "slurm") if isinstance(values, dict) else "slurm"
    if kind not in KINDS:
        raise TargetSettingError(
            f"target {name}: kind is {kind!r}, but allowed are {', '.join(KINDS)}."
        )
    try:
        return KINDS[kind].model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise TargetSettingError(
            f"target {name}: {place or 'its table'}: {first['msg'].lower()}."
        ) from None


def home_there(home: Home, name: str) -> str:
    """The folder for the runs of this home on another host: the present one of a known target."""
    present = targets_of(home).get(name)
    known = present.home if isinstance(present, _Apart) else ""
    return known or f"gan-dashboard-runs/{secrets.token_hex(3)}"


def add(home: Home, name: str, target: AnyTarget) -> None:
    """Adds a target to the file, or replaces the one of this name; comments in the file are lost.

    Raises TargetSettingError, HomeError.
    """
    targets = {**targets_of(home), name: parsed(name, target.model_dump())}
    tables = []
    for title, each in targets.items():
        values = {"kind": each.kind, **each.model_dump(exclude_defaults=True)}
        # Texts, numbers, booleans and lists of texts are written alike in JSON and TOML.
        lines = [
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()
        ]
        tables.append("\n".join([f"[{title}]", *lines]) + "\n")
    write_whole(home.prepare().targets, "\n".join(tables))
