"""The work of a compile check: the points of a plan one after another; each answer is kept as it comes.

A process of its own, since the dashboard never loads JAX, and TensorFlow never shares a process with it.
"""

from __future__ import annotations

from typing import Any

from gan_runtime.jobs.task import Task
from gan_runtime.spec import RunSpec
from gan_runtime.tpu import check, plan
from gan_runtime.tpu.report import Point


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
