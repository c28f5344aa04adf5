"""The compile check of a run for a GPU: its plan, its background job, and its answer.

The answer is the result of the newest finished job with the same key, a hash of everything that the
program depends on.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from gan_runtime.base.errors import AcceleratorError, quoted
from gan_runtime.gpu.cards import CARDS, Card
from gan_runtime.gpu.compiled_step import CompiledStep
from gan_runtime.gpu.program import Taps, WideConvolution
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.jobs.job import Job
from gan_runtime.jobs.process import Task
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from gan_runtime.tpu import plan as tpu_plan
from gan_runtime.tpu.plan import Reading

CHECK = "check_gpu"  # the job
# The options of every run that is checked.
ON_A_GPU = tpu_plan.ON_A_TPU | {"accelerator": "gpu", "replicas": 1}
COMPILER = Path(sys.prefix) / "gpu-compiler"  # what `make gpu-compiler` installs
LIBRARIES = ("jax", "jaxlib", "keras")
CODE = ("catalog", "domains", "engines", "gpu", "workloads")  # packages that a program depends on
PLUGINS = ("jax-cuda12-pjrt", "jax-cuda13-pjrt")


@dataclass(frozen=True)
class GpuPlan:
    """A check: the options of a run, what its steps read, and the name of a card in CARDS."""

    spec: RunSpec
    reading: Reading
    card_name: str

    @property
    def card(self) -> Card:
        """The GPU of the check."""
        return CARDS[self.card_name]

    @cached_property
    def key(self) -> str:
        """A hash of all that the program depends on: options, data, card, libraries and code."""
        parts = [
            tpu_plan.effective_options(self.spec),
            self.reading.to_json(),
            asdict(self.card),
            versions(),
            tpu_plan.code_version(CODE),
        ]
        return tpu_plan.digest(parts)


def make(values: dict[str, Any], card: str, home: Home | None = None) -> GpuPlan:
    """The check of a run with these options on one card. `home`: of prepared data sets.

    Raises:
        AcceleratorError: there is no such card, or it does not compute in the run's precision.
        SpecError: an option is wrong.
        DatasetError: the data set does not fit the workload or fills no step.
    """
    if card not in CARDS:
        raise AcceleratorError(
            f"card is {quoted(card)}, but allowed is {', '.join(CARDS)}: pick one of them."
        )
    spec = RunSpec.parse({**values, **ON_A_GPU})
    if spec.precision == "mixed_bfloat16" and not CARDS[card].has_bfloat16:
        raise AcceleratorError(
            f"{CARDS[card].title} does not compute in bfloat16: use precision=mixed_float16 or"
            " float32."
        )
    read = tpu_plan.reading(spec, home)
    spec.check_set(read.rows)
    return GpuPlan(spec, read, card)


def newest(home: Home, plan: GpuPlan) -> JobSnapshot | None:
    """The newest job of this plan that was not cancelled; None before the first."""
    return job_queue.newest(home, CHECK, also_cancelled=False, key=plan.key)


def answer(job: JobSnapshot | None) -> CompiledStep | None:
    """The answer of a job; None while it has none."""
    if job is None or job.end is None or not job.end.result:
        return None
    return CompiledStep.from_json(job.end.result)


def in_words(wide: WideConvolution) -> str:
    """For example "generator up_3, backward: 28 × 28 taps, its kernel has 5 × 5"."""
    return (
        f"{wide.layer}: {taps_in_words(wide.window)} taps, its kernel has"
        f" {taps_in_words(wide.taps)}"
        if wide.layer
        else f"a layer: {taps_in_words(wide.window)} taps, the widest kernel has"
        f" {taps_in_words(wide.taps)}"
    )


def taps_in_words(taps: Taps) -> str:
    """5 × 5; – where there are none."""
    return " × ".join(map(str, taps)) or "–"


def document(plan: GpuPlan, compiled: CompiledStep) -> dict[str, Any]:
    """A check as one JSON document."""
    return {
        "card": plan.card_name,
        "title": plan.card.title,
        "spec": plan.spec.changed_from_default(),
        "versions": versions(),
        "memory_bytes_of_card": plan.card.memory_bytes,
        **asdict(compiled),
        "memory_total": compiled.memory.total,
    }


# ---- the job -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compiler:
    """XLA's compiler for GPUs. `folder`: where its packages are; None among the installed ones."""

    name: str
    version: str
    folder: Path | None = None


def compiler() -> Compiler | None:
    """The compiler of this host: that of the installed packages, else the one in COMPILER."""
    for folder in (None, COMPILER):
        places = sys.path if folder is None else [str(folder)]
        for name in PLUGINS:
            for package in metadata.distributions(name=name, path=places):
                return Compiler(name, package.version, folder)
    return None


def versions() -> dict[str, str]:
    """The versions of the compiler and its libraries, without loading them."""
    used = compiler()
    named = {used.name: used.version} if used else {}
    return {name: tpu_plan.installed_version(name) for name in LIBRARIES} | named


def missing_compiler() -> str:
    """The reason why this host cannot compile for a GPU, as a sentence; "" if it can."""
    used, jax = compiler(), tpu_plan.installed_version("jax")
    if used is None:
        return (
            "XLA's compiler for GPUs is not installed here: run `make gpu-compiler` (0.6 GB), or"
            " install the packages of requirements-gpu-compiler.txt with pip."
        )
    if used.version.split(".")[:2] != jax.split(".")[:2]:
        return (
            f"XLA's compiler for GPUs has version {used.version}, and JAX {jax}: install both in"
            " the same version."
        )
    return ""


def needs_compiler(_home: Home, _options: object) -> None:
    """Raises AcceleratorError when the compiler is not installed here."""
    lacking = missing_compiler()
    if lacking:
        raise AcceleratorError(lacking)


JOBS = (
    Job(
        CHECK,
        "Compile for a GPU",
        "gan_runtime.gpu.check:compile_step",
        check=needs_compiler,
        same=("key",),
        busy="this step is being compiled",
        result="answers",
        # Only the compiler is used: JAX stays on the CPU, also where this host has a GPU.
        environment={
            "JAX_PLATFORMS": "cpu",
            "KERAS_BACKEND": "jax",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            # Without a card the compiler cannot choose block sizes for products of matrices,
            # and fails at some; cuBLAS computes them instead.
            "XLA_FLAGS": "--xla_gpu_enable_triton_gemm=false",
        },
        killed_at_once=True,
    ),
)


def as_options(plan: GpuPlan) -> dict[str, Any]:
    """The options of the job of a plan."""
    return {
        "key": plan.key,
        "card": plan.card_name,
        "spec": plan.spec.model_dump(),
        "reading": plan.reading.to_json(),
    }


def compile_step(task: Task) -> dict[str, Any]:
    """The work: options as in `as_options`; returns a `CompiledStep` as a document."""
    used = compiler()
    if used is not None and used.folder is not None:
        sys.path.insert(0, str(used.folder))
    from gan_runtime.gpu import compiling  # loads JAX

    options = task.options
    card = CARDS[options["card"]]
    task.progress(0, 1, f"one step for {card.title}")
    compiled = compiling.step(
        RunSpec.parse(options["spec"]), Reading.from_json(options["reading"]), card
    )
    return asdict(compiled)
