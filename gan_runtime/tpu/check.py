"""A compile check as the dashboard and the command line see it: a plan, and the answers that a
background job finds to it.

Answers lie in `<home>/tpu-checks`, one file a program, named by what the program is made of: the
same question is answered at once. The job writes each answer as it comes; a check that is cancelled
keeps those it has.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gan_runtime.base.errors import AcceleratorError
from gan_runtime.base.tpu_advice import advice
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobSnapshot
from gan_runtime.jobs.job import Job, Task
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import write_json
from gan_runtime.spec import RunSpec
from gan_runtime.tpu import estimates, plan
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.estimates import Point, StepEstimate
from gan_runtime.tpu.plan import CheckPlan

CHECK = "check_tpu"  # the job
FOLDER = "tpu-checks"


@dataclass(frozen=True)
class CheckProgress:
    """How far a check is.

    `point`: the run itself; `points`: how many are asked about; `answers` in the order of the plan,
    as far as known; `trouble`: why it ended early, "" if it did not or has not begun.
    """

    point: Point
    answers: tuple[StepEstimate, ...]
    points: int
    running: bool
    trouble: str

    @property
    def first(self) -> StepEstimate | None:
        """The answer about the run itself; others may be known before it."""
        return next((one for one in self.answers if one.point == self.point), None)


def folder(home: Home) -> Path:
    """Where the answers of a home lie; missing before the first."""
    return home.path / FOLDER


def unknown(home: Home, plan: CheckPlan) -> dict[str, Point]:
    """The points that have no answer yet, by its name."""
    named = zip(plan.keys, plan.points, strict=True)
    return {name: point for name, point in named if kept(folder(home), name) is None}


def as_options(home: Home, plan: CheckPlan) -> dict[str, Any]:
    """A check of what is not known yet as the options of a job.

    `plan`: the names of all answers, by which a plan is known again.
    """
    return {
        "spec": plan.spec.model_dump(),
        "reading": plan.reading.to_json(),
        "program": plan.program,
        "points": {name: vars(point) for name, point in unknown(home, plan).items()},
        "plan": plan.keys,
    }


def newest(home: Home, plan: CheckPlan) -> JobSnapshot | None:
    """The newest job that works or has worked through this plan; None before the first."""
    return job_queue.newest(home, CHECK, plan=plan.keys)


def newest_progress(home: Home, plan: CheckPlan) -> CheckProgress:
    """How far a check is, and the answers that there are by now, from this one or from others."""
    return progress(home, plan, newest(home, plan))


def progress(home: Home, plan: CheckPlan, look: JobSnapshot | None) -> CheckProgress:
    """How far a check is. `look`: its newest job, None before the first."""
    found = (kept(folder(home), name) for name in plan.keys)
    answers = tuple(answer for answer in found if answer is not None)
    running = look is not None and look.is_live
    trouble = "" if len(answers) == len(plan.points) else _trouble(look)
    return CheckProgress(plan.point, answers, len(plan.points), running, trouble)


def _trouble(look: JobSnapshot | None) -> str:
    """Why a job found no more answers; empty where none has ended early."""
    if look is None or look.end is None or look.state == "finished":
        return ""
    return look.end.reason if look.state == "cancelled" else _last_words(look.job)


def _last_words(job: JobDir) -> str:
    """What a compiler that broke down said last, or what that means."""
    lines = [line for line in job.log_tail().splitlines() if line.strip()]
    last = lines[-1] if lines else "no message"
    return f"the compiler's process ended early: {advice(last) or last[:300]}"


def kept(answers: Path, name: str) -> StepEstimate | None:
    """An answer from before; None where there is none that this version can read."""
    try:
        return estimates.from_json(
            json.loads((answers / f"{name}.json").read_text(encoding="utf-8"))
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def keep(answers: Path, name: str, answer: StepEstimate) -> None:
    """Keeps an answer for the next who asks."""
    write_json(answers / f"{name}.json", estimates.to_json(answer))


def document(plan: CheckPlan, progress: CheckProgress) -> dict[str, Any]:
    """Everything that is known, as one JSON document."""
    return {
        "topology": plan.point.topology,
        "program": plan.program,
        "spec": plan.spec.changed_from_default(),
        "versions": planning.versions(),
        "label": estimates.ESTIMATE,
        "label_of_exchange_s": estimates.EXCHANGE_ESTIMATE,
        "chip": vars(plan.topology.chip),
        "images": plan.images,
        "trouble": progress.trouble,
        "answers": [
            {
                **estimates.to_json(one),
                "step_s": one.step_s,
                "exchange_s": one.exchange_s,
                "share_of_peak": one.share_of_peak,
                "share_of_memory": one.share_of_memory,
                "epoch_s": (
                    one.epoch_s(plan.steps_per_epoch(one.point), plan.spec.steps_per_loop)
                    if one.compiled
                    else None
                ),
                "assumed_overhead_per_call_s": estimates.HOST_OVERHEAD_S,
            }
            for one in progress.answers
        ],
    }


# Only the TPU's compiler is used: JAX stays on the CPU, and libtpu must not ask the cloud for the
# machine it thinks it runs on.
COMPILE_ONLY = {
    "JAX_PLATFORMS": "cpu",
    "KERAS_BACKEND": "jax",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": (
        "1"
    ),  # next to another check, or a training on this host's TPU: it touches no device
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
        CHECK,
        "Compile for a TPU",
        "gan_runtime.tpu.check:compile_points",
        check=needs_compiler,
        result="answers",
        environment=COMPILE_ONLY,
        stored="its answers so far are stored",
        killed_at_once=True,
    ),
)


def compile_points(task: Task) -> dict[str, Any]:
    """Options: see `check.as_options`.

    Gives how many answers were found, also those of programs that the compiler refused.
    """
    from gan_runtime.tpu import compiling  # loads JAX

    asked, kept = task.options, folder(task.home)
    spec, reading = RunSpec.parse(asked["spec"]), plan.Reading.from_json(asked["reading"])
    kept.mkdir(parents=True, exist_ok=True)
    for number, (name, values) in enumerate(asked["points"].items()):
        point = Point(**values)
        task.progress(number, len(asked["points"]), f"{point.shared}, {point.precision}")
        answer = compiling.estimate(plan.at(spec, point), reading, point, asked["program"])
        keep(kept, name, answer)
    return {"answers": len(asked["points"])}
