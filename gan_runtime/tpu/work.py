"""The work of a compile check: the points of a plan one after another; each answer is kept as it comes.

A process of its own, since the dashboard never loads JAX, and TensorFlow never shares a process with it.
"""

from __future__ import annotations

from typing import Any

from gan_runtime.base.errors import AcceleratorError
from gan_runtime.jobs.job import Job
from gan_runtime.jobs.task import Task
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from gan_runtime.tpu import check, plan
from gan_runtime.tpu.report import Point

# Only the TPU's compiler is used: JAX stays on the CPU, and libtpu must not ask the cloud for the machine it thinks it runs on.
COMPILE_ONLY = {
    "JAX_PLATFORMS": "cpu",
    "KERAS_BACKEND": "jax",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # next to another check, or a training on this host's TPU: it touches no device
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v3-8",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def needs_compiler(_home: Home, _options: object) -> None:
    """Raises AcceleratorError when the compiler is not installed here."""
    lacking = plan.missing_library()
    if lacking:
        raise AcceleratorError(lacking)


JOBS = (
    Job(
        check.CHECK,
        "Compile for a TPU",
        "gan_runtime.tpu.work:compile_points",
        check=needs_compiler,
        result="answers",
        environment=COMPILE_ONLY,
        kept="what was compiled by then is kept",
        killed_at_once=True,
    ),
)


def compile_points(task: Task) -> dict[str, Any]:
    """Options: see `check.as_options`. Gives how many answers were found, also those of programs that the compiler refused."""
    from gan_runtime.tpu import compiling  # loads JAX

    asked, folder = task.options, check.folder(task.home)
    spec, reading = RunSpec.parse(asked["spec"]), plan.Reading.from_json(asked["reading"])
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, values) in enumerate(asked["points"].items()):
        point = Point(**values)
        task.progress(number, len(asked["points"]), f"{point.shared}, {point.precision}")
        answer = compiling.estimate(plan.at(spec, point), reading, point, asked["program"])
        check.keep(folder, name, answer)
    return {"answers": len(asked["points"])}
