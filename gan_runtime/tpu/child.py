"""Process entry of a compile check: compiles the points of a request one after another and keeps each answer.

    python -m gan_runtime.tpu.child FOLDER REQUEST

REQUEST: {"spec": {…}, "reading": {…}, "points": {name of the answer: {…}, …}}

A process of its own, since the dashboard never loads JAX, and TensorFlow never shares a process with it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gan_runtime.spec import RunSpec
from gan_runtime.tpu import check, plan
from gan_runtime.tpu.report import Point


def main(folder: Path, request: str) -> int:
    """Answers every point; 0 also when the compiler refused some."""
    from gan_runtime.tpu import compiling

    asked = json.loads(request)
    spec, reading = RunSpec.parse(asked["spec"]), plan.Reading.from_json(asked["reading"])
    for name, values in asked["points"].items():
        point = Point(**values)
        check.keep(folder, name, compiling.estimate(plan.at(spec, point), reading, point))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
