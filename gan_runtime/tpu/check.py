"""A compile check: its background job, its progress, and its answers.

Answers are stored in `<home>/tpu-checks`, one file for each program, named by a hash of everything
that the program depends on, so existing answers are reused. The job stores each answer at once, so
a cancelled check loses none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from gan_runtime.base import formats
from gan_runtime.base.errors import AcceleratorError, advice
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import JobDir, JobSnapshot
from gan_runtime.jobs.job import Job
from gan_runtime.jobs.process import Task
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import write_json
from gan_runtime.spec import RunSpec
from gan_runtime.tpu import estimates
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.estimates import Point, StepEstimate
from gan_runtime.tpu.plan import CheckPlan

CHECK = "check_tpu"  # the job
FOLDER = "tpu-checks"


@dataclass(frozen=True)
class CheckProgress:
    """The progress of a check. `point`: the run itself. `answers`: the existing answers, in the
    order of the plan. `points`: the number of points in total. `trouble`: why the check ended
    early, or "".
    """

    point: Point
    answers: tuple[StepEstimate, ...]
    points: int
    running: bool
    trouble: str

    @property
    def first(self) -> StepEstimate | None:
        """The answer about the run itself; other answers can come before it."""
        return next((answer for answer in self.answers if answer.point == self.point), None)


def folder(home: Home) -> Path:
    """The folder of the answers; missing before the first."""
    return home.path / FOLDER


def unanswered(home: Home, plan: CheckPlan) -> dict[str, Point]:
    """The points without an answer, by the name of the answer."""
    named = zip(plan.keys, plan.points, strict=True)
    return {name: point for name, point in named if load(folder(home), name) is None}


def as_options(home: Home, plan: CheckPlan) -> dict[str, Any]:
    """The options of the job that answers the rest of a plan.

    `plan`: the names of all answers, which identify the plan.
    """
    return {
        "spec": plan.spec.model_dump(),
        "reading": plan.reading.to_json(),
        "program": plan.program,
        "points": {name: vars(point) for name, point in unanswered(home, plan).items()},
        "plan": plan.keys,
    }


def newest(home: Home, plan: CheckPlan) -> JobSnapshot | None:
    """The newest job of this plan; None before the first."""
    return job_queue.newest(home, CHECK, plan=plan.keys)


def newest_progress(home: Home, plan: CheckPlan) -> CheckProgress:
    """The progress of the newest job of a plan, with the answers of all jobs."""
    return progress(home, plan, newest(home, plan))


def progress(home: Home, plan: CheckPlan, job: JobSnapshot | None) -> CheckProgress:
    """The progress of a check. `job`: its newest job, None before the first."""
    stored = (load(folder(home), name) for name in plan.keys)
    answers = tuple(answer for answer in stored if answer is not None)
    running = job is not None and job.is_live
    trouble = "" if len(answers) == len(plan.points) else _trouble(job)
    return CheckProgress(plan.point, answers, len(plan.points), running, trouble)


def _trouble(job: JobSnapshot | None) -> str:
    """Why a job ended early, or ""."""
    if job is None or job.end is None:
        return ""
    if job.state == "finished":
        return str(job.end.result.get("refusal", ""))
    return job.end.reason if job.state == "cancelled" else _last_message(job.job)


def _last_message(job: JobDir) -> str:
    """The last line of a compiler that crashed, or advice about it. One that a signal killed left
    no line.
    """
    lines = [line for line in job.log_tail().splitlines() if line.strip()]
    if not lines:
        memory = formats.size(psutil.virtual_memory().total)
        return (
            "the compiler was killed without a message, most likely by the system because its"
            f" memory ({memory}) ran out: check a smaller size or batch, or use a machine with more"
            " memory."
        )
    return f"the compiler exited unexpectedly: {advice(lines[-1]) or lines[-1][:300]}"


def load(answers: Path, name: str) -> StepEstimate | None:
    """A stored answer; None where it is missing or of another version."""
    try:
        return estimates.from_json(
            json.loads((answers / f"{name}.json").read_text(encoding="utf-8"))
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def store(answers: Path, name: str, answer: StepEstimate) -> None:
    """Stores an answer."""
    write_json(answers / f"{name}.json", estimates.to_json(answer))


def document(plan: CheckPlan, progress: CheckProgress) -> dict[str, Any]:
    """A check as one JSON document."""
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
                **estimates.to_json(answer),
                "step_s": answer.step_s,
                "exchange_s": answer.exchange_s,
                "share_of_peak": answer.share_of_peak,
                "share_of_memory": answer.share_of_memory,
                "epoch_s": (
                    answer.epoch_s(plan.steps_per_epoch(answer.point), plan.spec.steps_per_loop)
                    if answer.compiled
                    else None
                ),
                "assumed_overhead_per_call_s": estimates.HOST_OVERHEAD_S,
            }
            for answer in progress.answers
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
    lacking = planning.missing_library()
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
    """The work: options as in `as_options`; returns the number of answers, the compiler's
    refusals included, and why this host cannot give the rest.
    """
    from gan_runtime.tpu import compiling  # loads JAX

    options, answers = task.options, folder(task.home)
    spec, reading = RunSpec.parse(options["spec"]), planning.Reading.from_json(options["reading"])
    answers.mkdir(parents=True, exist_ok=True)
    for number, (name, values) in enumerate(options["points"].items()):
        point = Point(**values)
        report = partial(_report, task, number, f"{point.shared}, {point.precision}")
        report("")
        try:
            answer = compiling.estimate(
                planning.at(spec, point), reading, point, options["program"], report
            )
        except AcceleratorError as error:  # not stored: another host may have the memory
            return {"answers": number, "refusal": str(error)}
        store(answers, name, answer)
    return {"answers": len(options["points"])}


def _report(task: Task, number: int, what: str, memory: str) -> None:
    task.progress(number, len(task.options["points"]), f"{what}{memory and f', {memory}'}")
